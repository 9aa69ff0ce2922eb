"""The worker process of DataLoader, and how it returns batches.

A batch is pickled; the memory of its tensors and the pickle are written to one block of shared memory (`_shared`),
whose descriptor is sent over the pipe. Messages are therefore small, a killed process leaves nothing behind, and the
loader's tensors lie in that block.
"""

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
import sys
import traceback
from multiprocessing import reduction
from typing import Any, NamedTuple

from tensord.engine import _shared

_ALIGNMENT = 64
_info = None


class WorkerInfo(NamedTuple):
    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info():
    """Information about this worker process; None in any other process."""
    return _info


class WorkerError:
    """An exception of a worker, raised again with its own type and the worker's traceback."""

    def __init__(self, worker: int):
        kind = sys.exc_info()[0]
        self.kind = kind if _can_be_sent(kind) else RuntimeError
        self.message = f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {traceback.format_exc()}"

    def reraise(self):
        try:
            error = self.kind(self.message)
        except Exception:  # a kind that wants other arguments
            error = RuntimeError(self.message)
        raise error from None


def _can_be_sent(kind) -> bool:
    try:
        return pickle.loads(pickle.dumps(kind)) is kind
    except Exception:
        return False


def send(connection, value) -> None:
    buffers = []
    head = pickle.dumps(value, protocol=5, buffer_callback=lambda buffer: buffers.append(buffer.raw()))
    places, end = [], 0
    for size in (len(head), *(buffer.nbytes for buffer in buffers)):
        places.append((end, size))
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    file = _shared.file_of(((offset, part) for (offset, _), part in zip(places, (memoryview(head), *buffers))), end)
    try:
        connection.send((places, end))
        reduction.send_handle(connection, file, None)
    finally:
        os.close(file)


def receive(connection):
    places, end = connection.recv()
    memory = memoryview(_shared.bytes_of(reduction.recv_handle(connection), end))
    parts = [memory[offset:offset + size] for offset, size in places]
    return pickle.loads(parts[0], buffers=parts[1:])


def fetch_batches(dataset, collate, is_iterable: bool, is_batched: bool):
    """A function: indices (of an iterable dataset the number of samples) → the batch. Raises StopIteration at the end."""
    if is_iterable:
        samples = iter(dataset)

        def fetch(count):
            if not is_batched:
                return collate(next(samples))
            size, drop_last = count
            batch = list(itertools.islice(samples, size))
            if not batch or (drop_last and len(batch) < size):
                raise StopIteration
            return collate(batch)

        return fetch
    if is_batched and hasattr(dataset, "__getitems__"):
        return lambda indices: collate(dataset.__getitems__(indices))
    if is_batched:
        return lambda indices: collate([dataset[index] for index in indices])
    return lambda index: collate(dataset[index])


def run_worker(settings: dict, worker: int, orders, results, others: list) -> None:
    """Runs the worker: reads orders until None and sends results."""
    global _info
    for connection in others:  # inherited by fork: a pipe is closed only when its last end is
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader handles Ctrl-C and ends its workers
    from tensord import engine

    seed = settings["seed"] + worker
    _info = WorkerInfo(worker, settings["num_workers"], seed, settings["dataset"])
    try:
        engine.set_num_threads(1)
        engine.manual_seed(seed % 2**63)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2**32)
        start_error = None
        try:
            if settings["init"] is not None:
                settings["init"](worker)
            fetch = fetch_batches(settings["dataset"], settings["collate"], settings["is_iterable"], settings["is_batched"])
        except Exception:
            start_error = WorkerError(worker)
        while (order := orders.recv()) is not None:
            try:
                answer = ("error", start_error) if start_error else ("batch", fetch(order))
            except StopIteration:
                answer = ("end", None)
            except Exception:
                answer = ("error", WorkerError(worker))
            try:
                send(results, answer)
            except (pickle.PicklingError, TypeError, AttributeError):
                send(results, ("error", WorkerError(worker)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the loader is gone
    finally:
        sys.stdout.flush()
        os._exit(0)  # skips the exit handlers inherited from the loader's process
