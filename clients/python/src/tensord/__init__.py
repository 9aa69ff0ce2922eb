"""Client of tensord, and of other servers of the KServe v2 and Triton gRPC protocols.

    from tensord import Client

    with Client("localhost:8001") as client:
        scores = client.infer("resnet50", image)["scores"]

`AsyncClient` is the same for asyncio.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

# `tensord.engine` is a separate distribution and may be installed in another folder.
__path__ = pkgutil.extend_path(__path__, __name__)

from tensord._connection import NO_RETRY, TLS, Retry, Settings
from tensord._inference import InferOptions, Result
from tensord._job_operations import JobUpdate
from tensord._shared_memory import SharedMemory
from tensord._streaming import StreamAnswer
from tensord._tensors import Tensor, TensorLike, bfloat16
from tensord.aio_client import AsyncClient
from tensord.aio_job import AsyncJob
from tensord.aio_stream import AsyncInferSequence, AsyncInferStream
from tensord.client import Client
from tensord.errors import *  # noqa: F403
from tensord.errors import __all__ as _errors
from tensord.job import Job
from tensord.job_spec import JobSpec, ModelSource
from tensord.jobs import History, JobInfo, JobState, Point, Progress
from tensord.stream import InferSequence, InferStream
from tensord.types import *  # noqa: F403
from tensord.types import __all__ as _types

if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "engine":
            raise AttributeError(f"module 'tensord' has no attribute {name!r}")
        try:
            return importlib.import_module("tensord.engine")
        except ModuleNotFoundError as missing:
            if missing.name != "tensord.engine":
                raise
        raise ModuleNotFoundError("tensord.engine is the package tensord-engine, which is not installed; this is the client", name="tensord.engine")

__version__ = "0.1.0"

__all__ = [
    "AsyncClient", "AsyncInferSequence", "AsyncInferStream", "AsyncJob", "Client", "History", "InferOptions",
    "InferSequence", "InferStream", "Job", "JobInfo", "JobSpec", "JobState", "JobUpdate", "ModelSource", "NO_RETRY",
    "Point", "Progress", "Result", "Retry", "Settings", "SharedMemory", "StreamAnswer", "TLS", "Tensor", "TensorLike",
    "bfloat16", *_errors, *_types,
]
