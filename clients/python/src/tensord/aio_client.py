"""The client."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Iterable, List, Mapping, Optional, Union

from tensord import _job_operations, _operations
from tensord._aio_calls import sleep
from tensord._aio_client_base import AsyncClientBase
from tensord._inference import InferOptions, Outputs, Parameter, Result
from tensord._operations import FileSource, Setting
from tensord._shared_memory import SharedMemory
from tensord._streaming import STATUS_HEADERS
from tensord._tensors import TensorLike
from tensord.aio_job import AsyncJob
from tensord.aio_stream import AsyncInferSequence, AsyncInferStream
from tensord.errors import DeadlineExceededError, NotFoundError, UnavailableError
from tensord.job_spec import JobSpec, ModelSource, job_spec_message
from tensord.jobs import JobInfo, JobState
from tensord.types import ModelIndex, ModelMetadata, ModelStatistics, Region, ServerMetadata

if TYPE_CHECKING:
    from typing_extensions import Unpack

_READY_INTERVAL_S = 0.1


class AsyncClient(AsyncClientBase):
    """Calls a server at `address`: "host:port", "grpcs://host:port" or "unix:/path".

    The keyword arguments are those of `Settings`. Every call takes `timeout` in seconds, which bounds all its attempts,
    and `headers`. What goes wrong is a TensordError.

    The synchronous client is safe for threads. The one for asyncio is to be made and used inside of one running event
    loop, its methods are to be awaited, and a cancelled task cancels its call on the server too.
    """

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Inference

    async def infer(self, model: str, *inputs: Union[TensorLike, Mapping[str, TensorLike]], outputs: Outputs = (),
                    version: Union[int, str] = "", request_id: str = "", priority: int = 0,
                    queue_timeout: Optional[float] = None, classes: int = 0,
                    parameters: Optional[Mapping[str, Parameter]] = None, timeout: Optional[float] = None,
                    headers: Optional[Mapping[str, str]] = None) -> Result:
        """Runs the model on its inputs: by position, in the model's order, or by name, in one mapping.

        An input is an array (NumPy, or any library's with DLPack or `__array_interface__`, used without a copy), or
        lists and numbers, which take the model's type. Arrays keep theirs.

        outputs: names of those that are wanted, all when empty; or a mapping to arrays in shared memory, which they
            are written to. classes: instead of each output the largest values of its rows, see `Result.classes`.
        version: a number, or a label of tensord. queue_timeout: seconds that the request may wait for a worker.
        parameters: what else the protocol, or the model, knows.
        """
        options = InferOptions(outputs, str(version), request_id, priority, queue_timeout, classes, parameters or {})
        return await self._infer(model, inputs, options, {}, True, timeout, headers)

    async def infer_stream(self, model: str, *inputs: Union[TensorLike, Mapping[str, TensorLike]],
                           outputs: Outputs = (), version: Union[int, str] = "", request_id: str = "",
                           priority: int = 0, queue_timeout: Optional[float] = None,
                           parameters: Optional[Mapping[str, Parameter]] = None, timeout: Optional[float] = None,
                           headers: Optional[Mapping[str, str]] = None) -> AsyncIterator[Result]:
        """The responses of a decoupled model to one request, such as the tokens of a text, as they come."""
        options = InferOptions(outputs, str(version), request_id, priority, queue_timeout, 0, parameters or {})
        async with AsyncInferStream(self, timeout, {**STATUS_HEADERS, **(headers or {})}) as stream:
            await stream.send_with(model, inputs, options, {})
            await stream.finish()
            async for answer in stream:
                result = answer.get()
                if len(result) > 0 or not answer.is_final:
                    yield result

    def stream(self, timeout: Optional[float] = None, headers: Optional[Mapping[str, str]] = None) -> AsyncInferStream:
        """Many requests, to any models, and their answers over one call. To be used in `async with`."""
        return AsyncInferStream(self, timeout, headers)

    def sequence(self, model: str, sequence_id: Union[int, str, None] = None,
                 version: Union[int, str] = "") -> AsyncInferSequence:
        """A sequence of requests of which the model keeps the state; with a new random id, or a given one."""
        return AsyncInferSequence(self, model, sequence_id, str(version))

    @contextlib.asynccontextmanager
    async def shared_memory(self, byte_size: int, name: str = "",
                            timeout: Optional[float] = None) -> AsyncIterator[SharedMemory]:
        """Memory shared with a server on this machine: `infer` does not send the arrays that are cut from it."""
        region = SharedMemory(byte_size, name)
        try:
            await self._run(_operations.register_region(region), timeout)
            self._regions.add(region)
            try:
                yield region
            finally:
                self._regions.remove(region)
                # A server that is gone, or was started again, has no region to give back.
                with contextlib.suppress(NotFoundError, UnavailableError):
                    await self._run(_operations.unregister_region(region.name), timeout)
        finally:
            region.unlink()

    async def regions(self, name: str = "", timeout: Optional[float] = None) -> List[Region]:
        """The shared memory regions that the server has, of all clients."""
        return await self._run(_operations.regions(name), timeout)

    # Health and what there is

    async def live(self, timeout: Optional[float] = None) -> bool:
        return await self._run(_operations.live(), timeout)

    async def ready(self, model: str = "", version: Union[int, str] = "", timeout: Optional[float] = None) -> bool:
        """Whether the server, or a model, takes requests."""
        return await self._run(_operations.ready(model, str(version)), timeout)

    async def wait_until_ready(self, model: str = "", version: Union[int, str] = "", timeout: float = 60.0) -> None:
        """Returns when the server, or the model, is ready; waits for a server that is not there yet too."""
        deadline = time.monotonic() + timeout
        reason = "it answers that it is not"
        while True:
            left = deadline - time.monotonic()
            try:
                if left > 0 and await self.ready(model, version, timeout=left):
                    return
            except (UnavailableError, DeadlineExceededError) as error:
                reason = error.message
            if deadline - time.monotonic() <= _READY_INTERVAL_S:
                raise DeadlineExceededError(f"{model or self.address}: not ready after {timeout:g} seconds: {reason}")
            await sleep(_READY_INTERVAL_S)

    async def health(self, service: str = "", timeout: Optional[float] = None) -> str:
        """Of the standard health service: "SERVING", "NOT_SERVING" …"""
        return await self._run(_operations.health_check(service), timeout)

    async def server_metadata(self, timeout: Optional[float] = None) -> ServerMetadata:
        return await self._run(_operations.server_metadata(), timeout)

    async def metadata(self, model: str, version: Union[int, str] = "",
                       timeout: Optional[float] = None) -> ModelMetadata:
        """Names, types and shapes of a model's inputs and outputs."""
        return await self._run(_operations.metadata(model, str(version)), timeout)

    async def config(self, model: str, version: Union[int, str] = "",
                     timeout: Optional[float] = None) -> Dict[str, Any]:
        """The configuration that the model runs with, as a dict of config.pbtxt's fields."""
        return await self._run(_operations.config(model, str(version)), timeout)

    async def statistics(self, model: str = "", version: Union[int, str] = "",
                         timeout: Optional[float] = None) -> List[ModelStatistics]:
        """What was counted of a model's versions, or of all models."""
        return await self._run(_operations.statistics(model, str(version)), timeout)

    async def trace_settings(self, model: str = "", changes: Optional[Mapping[str, Setting]] = None,
                             timeout: Optional[float] = None) -> Dict[str, List[str]]:
        """The trace settings after the changes; a change to None takes the server's value again."""
        return await self._run(_operations.trace_settings(model, changes or {}), timeout)

    async def log_settings(self, changes: Optional[Mapping[str, Union[bool, int, str]]] = None,
                           timeout: Optional[float] = None) -> Dict[str, Union[bool, int, str]]:
        """The log settings after the changes."""
        return await self._run(_operations.log_settings(changes or {}), timeout)

    # The repository

    async def models(self, ready: bool = False, timeout: Optional[float] = None) -> List[ModelIndex]:
        """The versions of all models of the repository, or only those that are ready."""
        return await self._run(_operations.models(ready), timeout)

    async def load(self, model: str, *, config: Optional[Mapping[str, Any]] = None,
                   files: Optional[Mapping[str, FileSource]] = None, timeout: float = 600.0) -> None:
        """Loads a model, or what has changed of it.

        config: instead of config.pbtxt. files: paths in the model's folder ("1/model.pt") to paths here, or contents,
        instead of that folder.
        """
        await self._run(_operations.load(model, config, files or {}), timeout)

    async def load_weights(self, model: str, weights: FileSource, *, version: int, weights_format: str = "",
                           timeout: float = 600.0) -> None:
        """Puts new weights into the served archive, as a version (tensord only).

        weights: a state dict of torch.save, or safetensors; `weights_format` says "pt" or "safetensors" of bytes.
        """
        files = _operations.weights_file(weights, version, weights_format)
        await self._run(_operations.load(model, None, files), timeout)

    async def label(self, model: str, labels: Mapping[str, Union[int, str]], timeout: Optional[float] = None) -> None:
        """Moves version labels in one step, {"stable": 3}; a version of "" takes the label away (tensord only)."""
        await self._run(_operations.load(model, None, {}, labels), timeout)

    async def unload(self, model: str, *, dependents: bool = False, timeout: float = 600.0) -> None:
        """Unloads a model; with `dependents` also the models that were loaded for an ensemble."""
        await self._run(_operations.unload(model, dependents), timeout)

    # Training

    async def train(self, model: Union[str, ModelSource], *, timeout: Optional[float] = None,
                    **spec: Unpack[JobSpec]) -> AsyncJob:
        """Starts a training job from a served model, or {"upload_id": …}; `JobSpec` has the fields."""
        return AsyncJob(self, await self._run(_job_operations.create(job_spec_message(model, **spec)), timeout))

    async def job(self, job_id: str, timeout: Optional[float] = None) -> AsyncJob:
        return AsyncJob(self, await self._run(_job_operations.get(job_id), timeout))

    async def jobs(self, model: str = "", states: Iterable[JobState] = (),
                   timeout: Optional[float] = None) -> List[JobInfo]:
        """The jobs, of a model and in certain states where they are given; the oldest first."""
        return await self._run(_job_operations.list_jobs(model, list(states)), timeout)

    async def upload(self, archive: _job_operations.Archive, timeout: Optional[float] = None) -> str:
        """Brings a model file (TorchScript, .pt2 or ONNX) for jobs to start from; the id of the upload."""
        async def messages() -> AsyncIterator[bytes]:
            for message in _job_operations.upload_messages(archive):
                yield message

        return _job_operations.parse_upload(await self._send_stream(_job_operations.UPLOAD, messages(), timeout))

    async def rollback(self, model: str, timeout: Optional[float] = None) -> int:
        """Serves the version before the served one again; which one that is."""
        _, served = await self._run(_job_operations.rollback(model), timeout)
        return served
