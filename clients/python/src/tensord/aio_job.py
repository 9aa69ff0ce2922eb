"""A training job."""

from __future__ import annotations

import os
import time
from typing import Any, AsyncIterator, List, Optional, Union

import grpc

from tensord import _job_operations
from tensord._aio_calls import Items, each, received, sleep
from tensord._aio_client_base import AsyncClientBase
from tensord._connection import Operation
from tensord._job_operations import Batch, JobUpdate, Watch
from tensord._progress import ProgressBar
from tensord.errors import DeadlineExceededError, JobFailedError, from_rpc
from tensord.jobs import History, JobInfo, JobState, Point, history_of


class AsyncJob:
    """A job on the server. `info` is its last known state."""

    def __init__(self, client: AsyncClientBase, info: JobInfo) -> None:
        self._client = client
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def state(self) -> JobState:
        return self.info.state

    def __repr__(self) -> str:
        progress = self.info.progress
        return f"AsyncJob({self.id}, {self.state.name}, step {progress.step} of {progress.total_steps})"

    async def refresh(self, timeout: Optional[float] = None) -> JobInfo:
        self.info = await self._client._run(_job_operations.get(self.id), timeout)
        return self.info

    async def watch(self, timeout: Optional[float] = None, reconnect_seconds: float = 30.0) -> AsyncIterator[JobUpdate]:
        """Yields the job's state with all points of its curves, then each change, until the job ends or pauses.

        Waits for a daemon that disappears: jobs continue when it is restarted.
        """
        watch = Watch(self.id, reconnect_seconds)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            call: Any = self._client._channel.unary_stream(_job_operations.WATCH)(
                watch.request(), timeout=left, metadata=self._client._call_headers())
            try:
                async for message in received(call):
                    update = watch.update(message)
                    self.info = update.info
                    yield update
                return
            except grpc.RpcError as error:
                delay = watch.delay_after(error)
            finally:
                call.cancel()
            await sleep(delay)

    async def wait(self, progress: Union[bool, Any] = False, timeout: Optional[float] = None,
                   check: bool = True) -> JobInfo:
        """Waits until the job ends or pauses. With `check`, a failed or cancelled job raises JobFailedError.

        progress: True shows a tqdm bar; a class like tqdm.tqdm is used instead.
        """
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
        """Stops the job after the current step, with a checkpoint."""
        return await self._act(_job_operations.pause(self.id), timeout)

    async def resume(self, timeout: Optional[float] = None, *, world_size: int = 0) -> JobInfo:
        """Continues from the last checkpoint; `world_size` changes the number of processes of a distributed job."""
        return await self._act(_job_operations.resume(self.id, world_size), timeout)

    async def cancel(self, timeout: Optional[float] = None) -> JobInfo:
        """Stops the job for good; its checkpoints remain until it is deleted."""
        return await self._act(_job_operations.cancel(self.id), timeout)

    async def finish(self, timeout: Optional[float] = None) -> JobInfo:
        """Ends the training after the current step as if it were complete: it is evaluated, and published as configured."""
        return await self._act(_job_operations.finish(self.id), timeout)

    async def download(self, folder: "Union[str, os.PathLike[str]]", timeout: Optional[float] = None) -> List[str]:
        """Brings the job's model to a new folder: the published version, otherwise the best or the last weights.

        Returns the paths of its files.
        """
        download = _job_operations.Download(self.id, folder)
        call: Any = self._client._channel.unary_stream(_job_operations.DOWNLOAD)(
            download.request, timeout=timeout, metadata=self._client._call_headers())
        try:
            async for message in received(call):
                download.take(message)
            return download.finish()
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()
            download.abandon()

    async def delete(self, timeout: Optional[float] = None) -> None:
        """Deletes the job and its checkpoints. Published versions remain."""
        await self._client._run(_job_operations.delete(self.id), timeout)

    async def feed(self, batches: Items[Batch], first: int = 0, complete: bool = True,
                   timeout: Optional[float] = None) -> int:
        """Streams a job's data (`data={"streamed": True}`): mappings of arrays with the same number of rows.

        With asyncio, `batches` may also be an asynchronous iterable. The first batch has the number `first`. Batches
        that the job already has, from before this client or the daemon was restarted, are skipped, so that feeding the
        same data again continues where it stopped. `complete` ends the data. Returns the number of batches that were
        accepted.
        """
        info = await self.refresh()
        next_batch = info.progress.next_batch

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
