"""DataLoader: batches of a dataset, made in this process or by workers."""

from __future__ import annotations

import multiprocessing
import time
import warnings
import weakref
from collections.abc import Iterator
from multiprocessing import connection
from typing import Any

from tensord.engine._functions import tensor
from tensord.engine.data import sampler as samplers
from tensord.engine.data.collate import default_collate, default_convert, pin
from tensord.engine.data.dataset import IterableDataset
from tensord.engine.data.worker import fetch_batches, receive, run_worker

_SIGNAL_CHECK_SECONDS = 1.0


class DataLoader:
    """Batches of `dataset` in the sampler's order, like torch.utils.data.DataLoader.

    With `num_workers`, that many processes make batches, each up to `prefetch_factor` ahead; their tensors are in
    shared memory. Exceptions of a worker are raised here; a worker that dies raises RuntimeError. Workers are forked
    unless `multiprocessing_context` says otherwise, and use one thread each. With `pin_memory`, tensors are copied to
    pinned memory if there is a device that uses it.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers: int = 0, collate_fn=None, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers: bool = False,
                 pin_memory: bool = False):
        if num_workers < 0 or timeout < 0:
            raise ValueError("DataLoader: num_workers and timeout must not be negative")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers or timeout):
            raise ValueError("DataLoader: prefetch_factor, persistent_workers and timeout are for num_workers > 0")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"DataLoader: expected a positive prefetch_factor, got {prefetch_factor}")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: a sampler and shuffle exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last is for batches")
        self.is_iterable = isinstance(dataset, IterableDataset)
        if self.is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an IterableDataset has its own order: no shuffle, sampler or batch_sampler")
        self.dataset, self.num_workers, self.timeout, self.generator = dataset, num_workers, timeout, generator
        self.batch_size, self.drop_last = (None if batch_sampler is not None else batch_size), drop_last
        self.worker_init_fn, self.prefetch_factor, self.persistent_workers = worker_init_fn, prefetch_factor or 2, persistent_workers
        self.is_batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if self.is_batched else default_convert)
        self._context = multiprocessing.get_context(multiprocessing_context or "fork") if not hasattr(multiprocessing_context, "Process") else multiprocessing_context
        self._team = None
        self.pin_memory = pin_memory and _can_pin()
        if sampler is None and not self.is_iterable:
            sampler = samplers.RandomSampler(dataset, generator=generator) if shuffle else samplers.SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not self.is_iterable:
            batch_sampler = samplers.BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        """Number of batches; for an iterable dataset, as far as its own length is correct."""
        if not self.is_iterable:
            return len(self.batch_sampler if self.is_batched else self.sampler)
        count = len(self.dataset)
        if not self.is_batched:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _orders(self):
        """The indices to fetch for each batch."""
        if self.is_iterable:
            while True:
                yield (self.batch_size, self.drop_last)
        yield from self.batch_sampler if self.is_batched else self.sampler

    def __iter__(self) -> Iterator[Any]:
        seed = samplers.draw_seed(self.generator)
        batches = self._alone() if self.num_workers == 0 else self._with_workers(seed)
        return map(pin, batches) if self.pin_memory else batches

    def _alone(self):
        fetch = fetch_batches(self.dataset, self.collate_fn, self.is_iterable, self.is_batched)
        for order in self._orders():
            try:
                batch = fetch(order)
            except StopIteration:
                return
            yield batch

    def _with_workers(self, seed: int):
        team = self._team if self.persistent_workers and self._team and self._team.is_idle and not self.is_iterable else _Team(self, seed)
        if self.persistent_workers:
            self._team = team
        try:
            yield from team.run(self._orders())
        finally:
            if not (self.persistent_workers and team.is_idle):
                team.close()
                self._team = None


def _can_pin() -> bool:
    try:
        tensor(0.0).pin_memory()
    except NotImplementedError:
        warnings.warn("DataLoader: pin_memory has no effect: there is no device that pinned memory is for", stacklevel=3)
        return False
    return True


class _Worker:
    def __init__(self, process, orders, results):
        self.process, self.orders, self.results = process, orders, results
        self.waiting = 0  # requests without an answer
        self.is_done = False  # its part of an iterable dataset is exhausted


class _Team:
    """The worker processes of one pass over the data."""

    def __init__(self, loader: DataLoader, seed: int):
        self._loader = loader
        self.is_idle = True
        self._workers = []
        settings = {"dataset": loader.dataset, "collate": loader.collate_fn, "is_iterable": loader.is_iterable, "is_batched": loader.is_batched,
                    "init": loader.worker_init_fn, "num_workers": loader.num_workers, "seed": seed}
        context, ours = loader._context, []
        for worker in range(loader.num_workers):
            orders_in, orders = context.Pipe(duplex=False)
            # File descriptors can be sent over sockets only.
            results, results_out = context.Pipe(duplex=True)
            ours += [orders, results]
            others = list(ours) if context.get_start_method() == "fork" else []
            process = context.Process(target=run_worker, args=(settings, worker, orders_in, results_out, others), daemon=True)
            process.start()
            orders_in.close()
            results_out.close()
            self._workers.append(_Worker(process, orders, results))
        self._finalizer = weakref.finalize(self, _end_workers, self._workers)

    def run(self, orders):
        """Batches in the order of `orders`: worker k modulo the number of remaining workers makes batch k."""
        self.is_idle = False
        asked = []  # the workers in the order of requests
        turn = 0
        is_over = False

        def ask() -> bool:
            nonlocal turn, is_over
            for _ in range(len(self._workers)):
                worker = self._workers[turn % len(self._workers)]
                turn += 1
                if not worker.is_done:
                    break
            else:
                return False
            order = next(orders, None) if not is_over else None
            if order is None:
                is_over = True
                return False
            self._send(worker, order)
            asked.append(worker)
            return True

        for _ in range(self._loader.prefetch_factor * len(self._workers)):
            if not ask():
                break
        while asked:
            worker = asked.pop(0)
            kind, value = self._answer(worker)
            if kind == "end":
                worker.is_done = True
                continue
            if not worker.is_done:
                ask()
            if kind == "error":
                value.reraise()
            yield value
        self.is_idle = True

    def _send(self, worker: _Worker, order) -> None:
        try:
            worker.orders.send(order)
        except (BrokenPipeError, ConnectionResetError):
            self._died(worker)
        worker.waiting += 1

    def _answer(self, worker: _Worker):
        deadline = time.monotonic() + self._loader.timeout if self._loader.timeout else None
        while True:
            # Python handles signals between bytecode instructions, so a signal just before the wait, or in another
            # thread, does not end it.
            left = _SIGNAL_CHECK_SECONDS if deadline is None else min(_SIGNAL_CHECK_SECONDS, max(0.0, deadline - time.monotonic()))
            ready = connection.wait([worker.results, worker.process.sentinel], left)
            if worker.results in ready:
                try:
                    answer = receive(worker.results)
                except (EOFError, ConnectionResetError, RuntimeError):
                    self._died(worker)
                worker.waiting -= 1
                return answer
            if ready:
                self._died(worker)
            if deadline is None or time.monotonic() < deadline:
                continue
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")

    def _died(self, worker: _Worker):
        worker.process.join(5)
        code = worker.process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
        raise RuntimeError(f"DataLoader worker (pid {worker.process.pid}) {how}")

    def close(self) -> None:
        self._finalizer()


def _end_workers(workers: list) -> None:
    for worker in workers:
        try:
            worker.orders.send(None)
        except OSError:
            pass
        worker.orders.close()
        worker.results.close()
    deadline = time.monotonic() + 5
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
