"""Helpers of the tests with NVIDIA's client."""

import queue

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import np_to_triton_dtype

from tests.e2e.clients.example_server import EXAMPLES, WAIT_S, add_sub_terms, start, strings  # noqa: F401


def noting(client_class):
    """The class, and the set of names of its public methods that were called on any object of it."""
    called = set()

    class Noting(client_class):
        def __getattribute__(self, name):
            if not name.startswith("_"):
                called.add(name)
            return super().__getattribute__(name)

    return Noting, called


def public_methods(client_class):
    return {name for name in dir(client_class) if not name.startswith("_")}


def tensor(name, values, datatype=None, kind=grpcclient.InferInput):
    """An input with this data. The datatype is that of the array, or BYTES."""
    values = np.asarray(values)
    if datatype is None:
        datatype = "BYTES" if values.dtype == np.object_ else np_to_triton_dtype(values.dtype.type)
    out = kind(name, list(values.shape), datatype)
    out.set_data_from_numpy(values)
    return out


def add_sub_inputs(dtype=np.int32, batch=1):
    a, b = add_sub_terms(dtype, batch)
    return a, b, [tensor("INPUT0", a), tensor("INPUT1", b)]


class Answers:
    """The callback of a stream; keeps the responses."""

    def __init__(self):
        self.queue = queue.Queue()

    def __call__(self, result, error):
        self.queue.put((result, error))

    def take(self):
        return self.queue.get(timeout=WAIT_S)

    def take_result(self):
        result, error = self.take()
        if error is not None:
            raise error
        return result
