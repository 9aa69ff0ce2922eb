"""Key-value stores shared by the processes of a job."""

from __future__ import annotations

import datetime
import time

from tensord.engine import _engine

_native = _engine._distributed
_PIECE = 0.2  # seconds
DEFAULT_TIMEOUT = datetime.timedelta(minutes=5)


def seconds_of(timeout) -> float:
    return timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)


def _bytes(value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Base of the stores below. Values are bytes; strings are encoded as UTF-8. Timeouts are timedeltas."""

    def __init__(self, native):
        self._native = native

    def set(self, key: str, value) -> None:
        self._native.set(key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Waits until the key exists."""
        self.wait([key])
        return self._native.get(key)

    def wait(self, keys, timeout=None) -> None:
        """Waits until all keys exist, in slices, so that Ctrl-C works."""
        keys, seconds = list(keys), self._native.timeout if timeout is None else seconds_of(timeout)
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            try:
                return self._native.wait(keys, min(max(left, 0.0), _PIECE))
            except _engine.DeadlineExceededError:
                if left <= _PIECE:
                    raise _engine.DeadlineExceededError(f"store: wait timeout after {round(seconds * 1000)}ms, keys: {', '.join(keys)}") from None

    def check(self, keys) -> bool:
        return self._native.check(list(keys))

    def add(self, key: str, amount: int) -> int:
        return self._native.add(key, amount)

    def compare_set(self, key: str, expected_value, desired_value) -> bytes:
        return self._native.compare_set(key, _bytes(expected_value), _bytes(desired_value))

    def append(self, key: str, value) -> None:
        self._native.append(key, _bytes(value))

    def multi_get(self, keys) -> list:
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def delete_key(self, key: str) -> bool:
        return self._native.delete_key(key)

    def num_keys(self) -> int:
        return self._native.num_keys()

    def list_keys(self) -> list:
        return self._native.list_keys()

    def set_timeout(self, timeout) -> None:
        self._native.set_timeout(seconds_of(timeout))

    @property
    def timeout(self) -> datetime.timedelta:
        return datetime.timedelta(seconds=self._native.timeout)


class TCPStore(Store):
    """A store served by one process (`is_master`); port 0 selects a free port. With a `world_size`, the constructor
    waits for all processes."""

    def __init__(self, host_name: str, port: int, world_size=None, is_master: bool = False, timeout=DEFAULT_TIMEOUT,
                 wait_for_workers: bool = True):
        waits_for = world_size if world_size is not None and wait_for_workers else 0
        super().__init__(_native.tcp_store(host_name, port, waits_for, is_master, seconds_of(timeout)))
        self.host, self.port = host_name, _native.tcp_store_port(self._native)


class FileStore(Store):
    """A store in a file shared by all processes; the last one removes it."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__(_native.file_store(file_name, DEFAULT_TIMEOUT.total_seconds()))
        self.path = file_name


class HashStore(Store):
    """A store for the threads of one process."""

    def __init__(self):
        super().__init__(_native.memory_store(DEFAULT_TIMEOUT.total_seconds()))


class PrefixStore(Store):
    """The keys of another store that begin with `prefix/`."""

    def __init__(self, prefix: str, store: Store):
        super().__init__(_native.prefix_store(prefix, store._native))
        self.underlying_store = store
