"""A training job, of the client for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Iterable, List, Optional, Union

import grpc
import grpc.aio

from tensord import _job_operations
from tensord._connection import Operation
from tensord._job_operations import Batch, JobUpdate, Watch
from tensord._progress import ProgressBar
from tensord.aio_stream import each
from tensord.errors import DeadlineExceededError, JobFailedError
from tensord.jobs import History, JobInfo, JobState, Point, history_of

if TYPE_CHECKING:
    from tensord.aio_client import AsyncClient


class AsyncJob:
    """A job on the server. `info` is what was last heard of it."""

    def __init__(self, client: AsyncClient, info: JobInfo) -> None:
        self._client = client
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def state(self) -> JobState:
        return self.info.state

    def __repr__(self) -> str:
        return f"AsyncJob({self.id}, {self.state.name}, step {self.info.progress.step})"

    async def refresh(self, timeout: Optional[float] = None) -> JobInfo:
        self.info = await self._client._run(_job_operations.get(self.id), timeout)
        return self.info

    async def watch(self, timeout: Optional[float] = None, reconnect_seconds: float = 30.0) -> AsyncIterator[JobUpdate]:
        """See `Job.watch`."""
        watch = Watch(self.id, reconnect_seconds)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            call: Any = self._client._any_channel.unary_stream(_job_operations.WATCH)(
                watch.request(), timeout=left, metadata=self._client._call_headers())
            try:
                while True:
                    message = await call.read()
                    if message is grpc.aio.EOF:
                        return
                    update = watch.update(message)
                    self.info = update.info
                    yield update
            except grpc.RpcError as error:
                delay = watch.delay_after(error)
            finally:
                call.cancel()
            await asyncio.sleep(delay)

    async def wait(self, progress: Union[bool, Any] = False, timeout: Optional[float] = None,
                   check: bool = True) -> JobInfo:
        """See `Job.wait`."""
        bar = ProgressBar(progress)
        try:
            async for update in self.watch(timeout):
                bar.show(update)
        except DeadlineExceededError:
            raise DeadlineExceededError(f"job {self.id}: still {self.state.name} after {timeout} seconds") from None
        finally:
            bar.close()
        if check and self.state in (JobState.FAILED, JobState.CANCELLED):
            raise JobFailedError(f"job {self.id}: {self.state.name}: {self.info.message or 'no reason given'}", self.id)
        return self.info

    async def history(self, timeout: Optional[float] = None) -> History:
        """The curves so far."""
        points: List[Point] = []
        async for update in self.watch(timeout):
            points = update.points
            break
        return history_of(points)

    async def pause(self, timeout: Optional[float] = None) -> JobInfo:
        """Stops after the current step, with a checkpoint."""
        return await self._act(_job_operations.pause(self.id), timeout)

    async def resume(self, timeout: Optional[float] = None, *, world_size: int = 0) -> JobInfo:
        """Goes on, from the last checkpoint; a job with a distribution by `world_size` processes from now on."""
        return await self._act(_job_operations.resume(self.id, world_size), timeout)

    async def cancel(self, timeout: Optional[float] = None) -> JobInfo:
        """Stops for good; checkpoints stay until the job is deleted."""
        return await self._act(_job_operations.cancel(self.id), timeout)

    async def delete(self, timeout: Optional[float] = None) -> None:
        """Forgets the job with its checkpoints. Published versions stay."""
        await self._client._run(_job_operations.delete(self.id), timeout)

    async def feed(self, batches: Union[Iterable[Batch], AsyncIterable[Batch]], first: int = 0, complete: bool = True,
                   timeout: Optional[float] = None) -> int:
        """See `Job.feed`; the batches may be an asynchronous iterable too."""
        next_batch = (await self.refresh()).progress.next_batch

        async def messages() -> AsyncIterator[bytes]:
            number = first
            async for batch in each(batches):
                if number >= next_batch:
                    yield _job_operations.batch_message(self.id, number, batch)
                number += 1
            if complete:
                yield _job_operations.end_of_data(self.id)

        answer = await self._client._send_stream(_job_operations.STREAM_DATA, messages(), timeout)
        return _job_operations.parse_data_answer(answer)

    async def _act(self, operation: Operation[JobInfo], timeout: Optional[float]) -> JobInfo:
        self.info = await self._client._run(operation, timeout)
        return self.info
