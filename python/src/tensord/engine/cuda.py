"""CUDA devices under torch.cuda's names. There is no current device: "cuda" is cuda:0, and functions without a device mean that one."""

import sys
from collections import namedtuple

from tensord.engine import _engine
from tensord.engine._functions import tensor

__all__ = ["Event", "Stream", "current_stream", "device_count", "empty_cache", "get_device_capability", "get_device_name",
           "get_device_properties", "get_rng_state", "initial_seed", "is_available", "manual_seed", "manual_seed_all",
           "max_memory_allocated", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "set_rng_state", "stream",
           "synchronize"]

DeviceProperties = namedtuple("DeviceProperties", "name major minor total_memory multi_processor_count")


def _index(device) -> int:
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    found = _engine.device(str(device))
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return found.index


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return _engine._cuda_device_count()


def why_not_available() -> str:
    """What `tensord devices` says where there is no GPU; otherwise empty."""
    return _engine._cuda_problem()


def synchronize(device=None) -> None:
    """Waits for all work of the device. Raises what its kernels have found wrong."""
    _engine._cuda_synchronize(_index(device))


def memory_stats(device=None) -> dict:
    return _engine._cuda_memory_stats(_index(device))


def memory_allocated(device=None) -> int:
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None) -> int:
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None) -> int:
    return memory_stats(device)["reserved_bytes.all.current"]


def mem_get_info(device=None) -> tuple:
    """Free and total bytes of the device."""
    return _engine._cuda_memory_info(_index(device))


def empty_cache() -> None:
    _engine._cuda_empty_cache()


def get_device_properties(device=None) -> DeviceProperties:
    return DeviceProperties(**_engine._cuda_properties(_index(device)))


def get_device_name(device=None) -> str:
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple:
    found = get_device_properties(device)
    return found.major, found.minor


def get_rng_state(device=None):
    """The state of the default generator for the device: its seed and offset, 16 bytes on the CPU."""
    return _engine._device_rng_state(_engine.device("cuda", _index(device)))


def set_rng_state(new_state, device=None) -> None:
    _engine._set_device_rng_state(_engine.device("cuda", _index(device)), new_state)


def initial_seed() -> int:
    """The seed of cuda:0."""
    return int.from_bytes(bytes(get_rng_state()[:8].tolist()), sys.byteorder)


def _seed(seed: int, index: int) -> None:
    state = (int(seed) % 2**64).to_bytes(8, sys.byteorder) + bytes(8)
    set_rng_state(tensor(list(state), dtype=_engine.uint8), index)


def manual_seed(seed: int) -> None:
    """Of cuda:0; manual_seed_all is for all devices, and engine.manual_seed for the CPU besides."""
    _seed(seed, 0)


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        _seed(seed, index)


class Stream:
    """A queue of a device's work. The lower the priority, the sooner it runs beside others."""

    def __init__(self, device=None, priority: int = 0, *, _made=None):
        self._made = _engine._CudaStream(_index(device), priority) if _made is None else _made

    @property
    def device(self):
        return _engine.device("cuda", self._made.index)

    @property
    def cuda_stream(self) -> int:
        return self._made.handle

    def synchronize(self) -> None:
        self._made.synchronize()

    def query(self) -> bool:
        return self.record_event().query()

    def record_event(self, event: "Event" = None) -> "Event":
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        self._made.wait_event(event._made)

    def wait_stream(self, stream: "Stream") -> None:
        self.wait_event(stream.record_event())

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<tensord.engine.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A point in a stream's work; none until `record`. Points have no times."""

    def __init__(self, enable_timing: bool = False):
        if enable_timing:
            raise _engine.UnimplementedError("Event: enable_timing=True")
        self._made = _engine._CudaEvent()

    def record(self, stream: Stream = None) -> None:
        self._made.record((current_stream() if stream is None else stream)._made)

    def wait(self, stream: Stream = None) -> None:
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        return self._made.query()

    def synchronize(self) -> None:
        self._made.synchronize()


class stream:
    """Context manager: the calling thread's work on the stream's device goes to it."""

    def __init__(self, stream: Stream):
        self._stream, self._before = stream, []

    def __enter__(self) -> None:
        if self._stream is not None:
            self._before.append(self._stream._made.enter())

    def __exit__(self, *_) -> None:
        if self._stream is not None:
            _engine._cuda_leave_stream(self._before.pop())


def current_stream(device=None) -> Stream:
    return Stream(_made=_engine._cuda_current_stream(_index(device)))
