"""The process groups of this process."""

from __future__ import annotations

import datetime
import os
import urllib.parse
import warnings

from tensord.engine import _engine
from tensord.engine.distributed.stores import DEFAULT_TIMEOUT, FileStore, PrefixStore, Store, TCPStore, seconds_of

_native = _engine._distributed
DEFAULT_GROUP_TIMEOUT, DEFAULT_NCCL_TIMEOUT = datetime.timedelta(minutes=30), datetime.timedelta(minutes=10)
BACKENDS = {None: "gloo", "gloo": "gloo", "cpu:gloo": "gloo", "mpi": "mpi", "cpu:mpi": "mpi", "nccl": "nccl", "cuda:nccl": "nccl"}


class ReduceOp:
    """Reduction operations."""

    class RedOpType(str):
        """The name of an operation, with its factor for PREMUL_SUM."""

        factor = 1.0

        def __repr__(self):
            return f"ReduceOp.{self.upper()}"

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = map(RedOpType, ("sum", "avg", "product", "min", "max", "band", "bor", "bxor"))


def make_premul_sum(factor: float) -> ReduceOp.RedOpType:
    """Multiplies each rank's elements by the factor before the sum."""
    made = ReduceOp.RedOpType("premul_sum")
    made.factor = float(factor)
    return made


class ProcessGroup:
    """Ranks that call the same collectives in the same order; created by init_process_group and new_group."""

    def __init__(self, native, ranks):
        self._native, self._ranks = native, list(ranks)

    def rank(self) -> int:
        return self._native.rank

    def size(self) -> int:
        return self._native.size

    @property
    def group_name(self) -> str:
        return self._native.name

    def abort(self, reason: str = "aborted") -> None:
        """Ends the group on all ranks: current and later operations raise."""
        self._native.abort(reason)

    def __repr__(self):
        return f"<ProcessGroup {self.group_name}: rank {self.rank()} of {self.size()}>"


class _Groups(type):
    # The group of all ranks, or None.
    @property
    def WORLD(cls):  # noqa: N802
        return _state.world


class GroupMember(metaclass=_Groups):
    NON_GROUP_MEMBER = object()


class group(metaclass=_Groups):  # noqa: N801
    """`group.WORLD`, as in PyTorch."""


class _State:
    world = None
    store = None
    serves = False
    groups: dict = {}  # keyed by group; holds the only reference to those that new_group made
    generation = 0


_state = _State()


def is_available() -> bool:
    return True


def is_gloo_available() -> bool:
    return _native.has_gloo()


def is_mpi_available() -> bool:
    return _native.has_mpi()


def is_nccl_available() -> bool:
    """Whether a CUDA device and the NCCL library are available."""
    return _native.has_nccl()


def is_initialized() -> bool:
    return _state.world is not None


def world() -> ProcessGroup:
    if _state.world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _state.world


def resolve(given) -> "ProcessGroup | None":
    """The selected group; None, with a warning, if this rank is not in it."""
    if given is None:
        return world()
    if given is GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"rank {world().rank()} is not in this group: the call does nothing", stacklevel=3)
        return None
    if not isinstance(given, ProcessGroup):
        raise TypeError(f"group: expected a ProcessGroup, got {type(given).__name__}")
    return given


def _variable(name: str) -> str:
    """torchrun's variable; if RANK is not set, what mpirun or Slurm provide instead."""
    return os.environ.get(name, "") or _native.variables_of_other_launchers().get(name, "")


def _number(name: str, given: int) -> int:
    if given >= 0:
        return given
    value = _variable(name)
    if not value:
        raise ValueError(f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set")
    return int(value)


def _rendezvous(init_method: str, rank: int, world_size: int, timeout: float):
    """The store of all ranks, the rank, the world size, the master's address, and whether this process serves the
    store."""
    url = urllib.parse.urlparse(init_method)
    query = dict(urllib.parse.parse_qsl(url.query))
    rank = int(query["rank"]) if rank < 0 and "rank" in query else rank
    world_size = int(query["world_size"]) if world_size < 0 and "world_size" in query else world_size
    if url.scheme == "env":
        rank, world_size = _number("RANK", rank), _number("WORLD_SIZE", world_size)
        host, port = _variable("MASTER_ADDR"), _number("MASTER_PORT", -1)
        if not host:
            raise ValueError("environment variable MASTER_ADDR expected, but not set")
        # The launcher already serves its own store.
        serves = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    elif url.scheme in ("tcp", "file"):
        if rank < 0 or world_size < 0:
            raise ValueError(f"{url.scheme}:// rendezvous: rank and world_size are needed")
        host, port, serves, start = url.hostname, url.port, rank == 0, "0"
        if url.scheme == "file":
            return FileStore(url.path), rank, world_size, "127.0.0.1", False
        if not host or port is None:
            raise ValueError(f"init_method: '{init_method}' has no port")
    else:
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    store = TCPStore(host, port, None, serves, timeout)
    return PrefixStore(f"start_{start}", store), rank, world_size, host, serves


def init_process_group(backend: "str | None" = None, init_method: "str | None" = None, timeout=None, world_size: int = -1,
                       rank: int = -1, store: "Store | None" = None, group_name: str = "") -> None:
    """Creates the group of all ranks. Every rank calls it.

    `init_method` is env:// (the default: torchrun's variables, or mpirun's or Slurm's), tcp://HOST:PORT or
    file:///PATH; alternatively a `store` is given, with rank and world_size. The backend is "gloo" (the default),
    "nccl" for tensors on CUDA devices, or "mpi" under mpirun, which provides ranks and store itself. `timeout` is the
    default for operations: 30 minutes, or 10 with NCCL.
    """
    if _state.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if backend not in BACKENDS:
        raise ValueError(f"backend: '{backend}' is none of gloo, nccl, mpi")
    backend = BACKENDS[backend]
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    default = DEFAULT_NCCL_TIMEOUT if backend == "nccl" else DEFAULT_GROUP_TIMEOUT
    timeout = seconds_of(default if timeout is None else timeout)
    checks_all = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL"
    if backend == "mpi":
        return _init_mpi(timeout, checks_all, rank >= 0 or world_size >= 0 or store is not None or init_method not in (None, "env://"))
    if backend == "nccl":
        _native.check_nccl()
    serves, master = False, "127.0.0.1"
    if store is None:
        store, rank, world_size, master, serves = _rendezvous(init_method or "env://", rank, world_size,
                                                              min(timeout, DEFAULT_TIMEOUT.total_seconds()))
    elif rank < 0 or world_size < 1:
        raise ValueError("a store needs rank and world_size")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank: must be from 0 to {world_size - 1}, got {rank}")
    _state.generation += 1
    native = _native.make_group(PrefixStore(f"init_{_state.generation}", store)._native, group_name or "world", rank, world_size,
                                backend, master, timeout, checks_all)
    _state.world, _state.store, _state.serves = ProcessGroup(native, range(world_size)), store, serves


def _init_mpi(timeout: float, checks_all: bool, is_placed: bool) -> None:
    if is_placed:
        warnings.warn("With the backend mpi rank, world_size, store and init_method are mpirun's: what was given is ignored",
                      stacklevel=3)
    native = _native.make_mpi_world(timeout, checks_all)
    _state.world, _state.store, _state.serves = ProcessGroup(native, range(native.size)), None, native.rank == 0


def destroy_process_group(group: "ProcessGroup | None" = None) -> None:
    """Destroys a group, or all of them; waits a while for the last operations of other ranks."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    which = world() if group is None else group
    if which is not _state.world:
        _state.groups.pop(which, None)
        which._native.close(10.0, False)
        return
    for other in _state.groups:
        other._native.close(10.0, False)
    _state.groups.clear()
    which._native.close(10.0, _state.serves)
    _state.world = _state.store = None


def new_group(ranks=None, timeout=None, backend: "str | None" = None):
    """Creates a group of some ranks, or of all. Every rank of the world calls it, in the same order.

    Returns GroupMember.NON_GROUP_MEMBER on ranks that are not in it. The backend is the world's, and so is the default
    timeout.
    """
    whole = world()
    if backend is not None and BACKENDS.get(backend) != get_backend():
        raise ValueError(f"backend: '{backend}' is not {get_backend()}, which the world's is")
    chosen = sorted(range(whole.size()) if ranks is None else ranks)
    if len(set(chosen)) != len(chosen) or any(not 0 <= rank < whole.size() for rank in chosen) or not chosen:
        raise ValueError(f"new_group: {chosen} are no different ranks of a world of {whole.size()}")
    native = whole._native.new_group(chosen, None if timeout is None else seconds_of(timeout))
    if native is None:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(native, chosen)
    _state.groups[made] = None
    return made


def get_rank(group=None) -> int:
    """This process's rank in the group; -1 if it is not in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else (group or world()).rank()


def get_world_size(group=None) -> int:
    return -1 if group is GroupMember.NON_GROUP_MEMBER else (group or world()).size()


def get_backend(group=None) -> str:
    return (group or world())._native.backend


def get_process_group_ranks(group=None) -> list:
    return list((group or world())._ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group._ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    if global_rank not in group._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group._ranks.index(global_rank)


def root_of(group: ProcessGroup, global_rank, group_rank) -> int:
    """The group's rank for one of the two arguments."""
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_src and src")
    if group_rank is not None:
        get_global_rank(group, group_rank)
        return group_rank
    return get_group_rank(group, 0 if global_rank is None else global_rank)
