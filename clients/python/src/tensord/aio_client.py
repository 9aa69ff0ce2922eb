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
from tensord._data_files import Path, as_job_file
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

    The keyword arguments are those of `Settings`. Every call takes `timeout`, in seconds over all its attempts, and
    `headers`. All errors are TensordErrors.

    The synchronous client is thread-safe. The asyncio client must be created and used in one running event loop; its
    methods are awaited, and cancelling a task cancels its call on the server.
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

        An input is an array (of NumPy, or of any library with DLPack or `__array_interface__`, without a copy), or
        lists and numbers, which are converted to the model's type. Arrays keep their type.

        outputs: names of the wanted outputs, all if empty; or a mapping from them to arrays in shared memory, which
        receive the results. classes: return the largest values of each row instead of each output, see
        `Result.classes`. version: a number, or a label of tensord. queue_timeout: seconds that the request may wait for
        a worker. parameters: further parameters of the protocol or of the model.
        """
        options = InferOptions(outputs, str(version), request_id, priority, queue_timeout, classes, parameters or {})
        return await self._infer(model, inputs, options, {}, True, timeout, headers)

    async def infer_stream(self, model: str, *inputs: Union[TensorLike, Mapping[str, TensorLike]],
                           outputs: Outputs = (), version: Union[int, str] = "", request_id: str = "",
                           priority: int = 0, queue_timeout: Optional[float] = None,
                           parameters: Optional[Mapping[str, Parameter]] = None, timeout: Optional[float] = None,
                           headers: Optional[Mapping[str, str]] = None) -> AsyncIterator[Result]:
        """Streams the responses of a decoupled model to one request, such as the tokens of generated text."""
        options = InferOptions(outputs, str(version), request_id, priority, queue_timeout, 0, parameters or {})
        async with AsyncInferStream(self, timeout, {**STATUS_HEADERS, **(headers or {})}) as stream:
            await stream.send_with(model, inputs, options, {})
            await stream.finish()
            async for answer in stream:
                result = answer.get()
                if len(result) > 0 or not answer.is_final:
                    yield result

    def stream(self, timeout: Optional[float] = None, headers: Optional[Mapping[str, str]] = None) -> AsyncInferStream:
        """Many requests, to any models, over one call. Use in `async with`."""
        return AsyncInferStream(self, timeout, headers)

    def sequence(self, model: str, sequence_id: Union[int, str, None] = None,
                 version: Union[int, str] = "") -> AsyncInferSequence:
        """A sequence of requests whose state the model keeps; its ID is random unless given."""
        return AsyncInferSequence(self, model, sequence_id, str(version))

    @contextlib.asynccontextmanager
    async def shared_memory(self, byte_size: int, name: str = "",
                            timeout: Optional[float] = None) -> AsyncIterator[SharedMemory]:
        """Memory shared with a server on this machine: `infer` does not send arrays allocated in it."""
        region = SharedMemory(byte_size, name)
        try:
            await self._run(_operations.register_region(region), timeout)
            self._regions.add(region)
            try:
                yield region
            finally:
                self._regions.remove(region)
                # A server that is gone or was restarted no longer has the region.
                with contextlib.suppress(NotFoundError, UnavailableError):
                    await self._run(_operations.unregister_region(region.name), timeout)
        finally:
            region.unlink()

    async def regions(self, name: str = "", timeout: Optional[float] = None) -> List[Region]:
        """The shared memory regions of all clients that are registered with the server."""
        return await self._run(_operations.regions(name), timeout)

    # Health and metadata

    async def live(self, timeout: Optional[float] = None) -> bool:
        return await self._run(_operations.live(), timeout)

    async def ready(self, model: str = "", version: Union[int, str] = "", timeout: Optional[float] = None) -> bool:
        """Whether the server, or a model, accepts requests."""
        return await self._run(_operations.ready(model, str(version)), timeout)

    async def wait_until_ready(self, model: str = "", version: Union[int, str] = "", timeout: float = 60.0) -> None:
        """Returns when the server, or the model, is ready. Also waits for a server that has not started yet."""
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
        """The status of the standard gRPC health service: "SERVING", "NOT_SERVING" …"""
        return await self._run(_operations.health_check(service), timeout)

    async def server_metadata(self, timeout: Optional[float] = None) -> ServerMetadata:
        return await self._run(_operations.server_metadata(), timeout)

    async def metadata(self, model: str, version: Union[int, str] = "",
                       timeout: Optional[float] = None) -> ModelMetadata:
        """Names, types and shapes of a model's inputs and outputs."""
        return await self._run(_operations.metadata(model, str(version)), timeout)

    async def config(self, model: str, version: Union[int, str] = "",
                     timeout: Optional[float] = None) -> Dict[str, Any]:
        """The model's effective configuration, as a dict with config.pbtxt's fields."""
        return await self._run(_operations.config(model, str(version)), timeout)

    async def statistics(self, model: str = "", version: Union[int, str] = "",
                         timeout: Optional[float] = None) -> List[ModelStatistics]:
        """Statistics of a model's versions, or of all models."""
        return await self._run(_operations.statistics(model, str(version)), timeout)

    async def trace_settings(self, model: str = "", changes: Optional[Mapping[str, Setting]] = None,
                             timeout: Optional[float] = None) -> Dict[str, List[str]]:
        """Applies changes and returns the trace settings; None restores the server's value."""
        return await self._run(_operations.trace_settings(model, changes or {}), timeout)

    async def log_settings(self, changes: Optional[Mapping[str, Union[bool, int, str]]] = None,
                           timeout: Optional[float] = None) -> Dict[str, Union[bool, int, str]]:
        """Applies changes and returns the log settings."""
        return await self._run(_operations.log_settings(changes or {}), timeout)

    # The repository

    async def models(self, ready: bool = False, timeout: Optional[float] = None) -> List[ModelIndex]:
        """All versions of the models in the repository, or only those that are ready."""
        return await self._run(_operations.models(ready), timeout)

    async def load(self, model: str, *, config: Optional[Mapping[str, Any]] = None,
                   files: Optional[Mapping[str, FileSource]] = None, timeout: float = 600.0) -> None:
        """Loads a model, or reloads what has changed.

        config: replaces config.pbtxt. files: a mapping from paths in the model's folder ("1/model.pt") to local paths
        or contents, which replaces that folder.
        """
        await self._run(_operations.load(model, config, files or {}), timeout)

    async def load_weights(self, model: str, weights: FileSource, *, version: int, weights_format: str = "",
                           timeout: float = 600.0) -> None:
        """Loads new weights into the served model as a new version (tensord only).

        weights: a state dict of torch.save, or a safetensors file; `weights_format` is "pt" or "safetensors" if it is
        given as bytes.
        """
        files = _operations.weights_file(weights, version, weights_format)
        await self._run(_operations.load(model, None, files), timeout)

    async def label(self, model: str, labels: Mapping[str, Union[int, str]], timeout: Optional[float] = None) -> None:
        """Moves version labels atomically, such as {"stable": 3}; a version of "" removes the label (tensord only)."""
        await self._run(_operations.load(model, None, {}, labels), timeout)

    async def unload(self, model: str, *, dependents: bool = False, timeout: float = 600.0) -> None:
        """Unloads a model; with `dependents`, also the models that were loaded for an ensemble."""
        await self._run(_operations.unload(model, dependents), timeout)

    # Training

    async def train(self, model: Union[str, ModelSource], *, timeout: Optional[float] = None,
                    **spec: Unpack[JobSpec]) -> AsyncJob:
        """Starts a training job from a served model or an upload, {"upload_id": …}; see `JobSpec` for the fields."""
        return AsyncJob(self, await self._run(_job_operations.create(job_spec_message(model, **spec)), timeout))

    async def job(self, job_id: str, timeout: Optional[float] = None) -> AsyncJob:
        """The job with this id, or with this name if no other job has it."""
        return AsyncJob(self, await self._run(_job_operations.get(job_id), timeout))

    async def jobs(self, model: str = "", states: Iterable[JobState] = (), timeout: Optional[float] = None, *,
                   tags: Optional[Mapping[str, str]] = None) -> List[JobInfo]:
        """The jobs, oldest first; optionally only those of one model, in given states, and with all of these tags."""
        return await self._run(_job_operations.list_jobs(model, list(states), tags or {}), timeout)

    async def upload(self, archive: _job_operations.Archive, timeout: Optional[float] = None) -> str:
        """Uploads a model file (TorchScript, .pt2 or ONNX) as a base for jobs. Returns the ID of the upload."""
        async def messages() -> AsyncIterator[bytes]:
            for message in _job_operations.upload_messages(archive):
                yield message

        return _job_operations.parse_upload(await self._send_stream(_job_operations.UPLOAD, messages(), timeout))

    async def upload_data(self, path: Path, timeout: Optional[float] = None, *,
                          columns: Optional[Iterable[str]] = None) -> str:
        """Uploads data for jobs: .npz, .safetensors, .pt, .csv, or .parquet, which pyarrow reads here; or images, as a
        folder with a folder for each class or a .zip of it.

        Returns what `data={"file": …}` and `evaluation={"file": …}` of a job take. `columns`: only these of a .parquet
        file; by default all that hold numbers, or lists of numbers of one length.
        """
        with as_job_file(path, columns) as file:
            upload = _job_operations.DataUpload(file)

            async def messages() -> AsyncIterator[bytes]:
                for message in upload.messages():
                    yield message

            return upload.name(await self._send_stream(_job_operations.UPLOAD_DATA, messages(), timeout))

    async def rollback(self, model: str, timeout: Optional[float] = None) -> int:
        """Serves the previous version again and returns its number."""
        _, served = await self._run(_job_operations.rollback(model), timeout)
        return served
