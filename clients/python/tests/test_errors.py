"""One exception class for every gRPC status."""

import pickle

import grpc
import pytest

import tensord
from tensord.errors import from_status


@pytest.mark.parametrize("status", [status for status in grpc.StatusCode if status is not grpc.StatusCode.OK])
def test_every_status(status):
    error = from_status(status.name, "why")
    assert isinstance(error, tensord.TensordError)
    assert error.code == status.name and str(error) == f"why [{status.name}]"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and (again.message, again.code) == ("why", status.name)


def test_they_are_what_python_calls_them_too():
    assert issubclass(tensord.DeadlineExceededError, TimeoutError) and issubclass(tensord.NotFoundError, LookupError)
    assert issubclass(tensord.InvalidArgumentError, ValueError)
    assert issubclass(tensord.UnavailableError, ConnectionError)
    job_error = pickle.loads(pickle.dumps(tensord.JobFailedError("why", "job-1")))
    assert (job_error.job_id, job_error.message, job_error.code) == ("job-1", "why", "JOB_FAILED")
