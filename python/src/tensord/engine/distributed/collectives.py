"""Collective operations on tensors. With async_op they return a Work immediately; the tensors must not be used until it
has completed.

`src` and `dst` are ranks in the world, `group_src` and `group_dst` ranks in the group.
"""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.distributed.groups import ReduceOp, get_global_rank, resolve, root_of
from tensord.engine.distributed.stores import seconds_of


class Work:
    """A running operation."""

    def __init__(self, native, group=None, keeps=()):
        self._native, self._group, self._keeps = native, group, keeps

    def wait(self, timeout=None) -> bool:
        """Waits for completion and raises the operation's error. After a timeout the operation continues, and may be
        waited for again."""
        self._native.wait(None if timeout is None else seconds_of(timeout))
        return True

    def is_completed(self) -> bool:
        return self._native.is_completed()

    def is_success(self) -> bool:
        return self._native.is_success()

    def exception(self):
        """The message of the error that wait would raise; None while the operation runs and after success."""
        return self._native.exception()

    def source_rank(self) -> int:
        """For a recv: the sender's rank in the world."""
        return get_global_rank(self._group, self._native.source_rank())

    _source_rank = source_rank


def _run(group, async_op: bool, name: str, *arguments):
    work = Work(getattr(group._native, name)(*arguments), group, arguments)
    if async_op:
        return work
    work.wait()
    return None


def _op(op):
    if not isinstance(op, ReduceOp.RedOpType):
        raise TypeError(f"op: expected a ReduceOp, got {type(op).__name__}")
    return str(op), op.factor


def broadcast(tensor, src=None, group=None, async_op: bool = False, group_src=None):
    """Sends the root's tensor to all ranks."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "broadcast", tensor, root_of(group, src, group_src))


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """Reduces the tensors of all ranks in place."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_reduce", tensor, *_op(op))


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """Does the same for several tensors of one dtype in one message."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_reduce_coalesced", list(tensors), *_op(op))


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op: bool = False, group_dst=None):
    """Reduces on the root only; the tensors of other ranks are unchanged."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "reduce", tensor, root_of(group, dst, group_dst), *_op(op))


def all_gather(tensor_list, tensor, group=None, async_op: bool = False):
    """tensor_list[r] receives the tensor of rank r; sizes may differ if all ranks know them."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_gather", list(tensor_list), tensor)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op: bool = False):
    """Concatenates the tensors of all ranks."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_gather_into_tensor", output_tensor, input_tensor)


def gather(tensor, gather_list=None, dst=None, group=None, async_op: bool = False, group_dst=None):
    """gather_list, on the root only, receives the tensors of all ranks."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "gather", list(gather_list or ()), tensor, root_of(group, dst, group_dst))


def scatter(tensor, scatter_list=None, src=None, group=None, async_op: bool = False, group_src=None):
    """The tensor receives this rank's entry of the root's scatter_list."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "scatter", tensor, list(scatter_list or ()), root_of(group, src, group_src))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """`output` receives the reduction of input_list[this rank] over all ranks."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "reduce_scatter", output, list(input_list), *_op(op))


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op: bool = False):
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "reduce_scatter_tensor", output, input, *_op(op))


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op: bool = False):
    """output_tensor_list[s] receives the entry for this rank in rank s's input_tensor_list."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_to_all", list(output_tensor_list), list(input_tensor_list))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op: bool = False):
    """Does the same for rows of one tensor, with the number of rows from and to each rank; without sizes, equal
    parts."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "all_to_all_single", output, input, list(output_split_sizes or ()), list(input_split_sizes or ()))


def barrier(group=None, async_op: bool = False):
    """Returns when all ranks have entered it."""
    if (group := resolve(group)) is not None:
        return _run(group, async_op, "barrier")


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """A barrier whose error on rank 0 names the ranks that have not entered it."""
    if (group := resolve(group)) is not None:
        group._native.monitored_barrier(None if timeout is None else seconds_of(timeout), wait_all_ranks)


# Point to point.


def isend(tensor, dst=None, group=None, tag: int = 0, group_dst=None):
    if (group := resolve(group)) is not None:
        return _run(group, True, "send", tensor, root_of(group, dst, group_dst), tag)


def irecv(tensor, src=None, group=None, tag: int = 0, group_src=None):
    """Receives from any rank if no source is given."""
    if (group := resolve(group)) is not None:
        source = -1 if src is None and group_src is None else root_of(group, src, group_src)
        return _run(group, True, "recv", tensor, source, tag)


def send(tensor, dst=None, group=None, tag: int = 0, group_dst=None) -> None:
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag: int = 0, group_src=None) -> int:
    """Returns the sender's rank, or -1 if this rank is not in the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """A send or recv for batch_isend_irecv: `op` is isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag: int = 0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``isend`` or ``irecv``.")
        if not isinstance(tensor, _engine.Tensor):
            raise TypeError(f"tensor: expected a tensor, got {type(tensor).__name__}")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list) -> list:
    """Starts the operations together, so that cyclic exchanges do not deadlock. Returns works that cover all of
    them."""
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: there are no operations")
    by_group = {}
    for each in p2p_op_list:
        if (group := resolve(each.group)) is None:
            continue
        has_peer = each.peer is not None or each.group_peer is not None
        peer = root_of(group, each.peer, each.group_peer) if has_peer or each.op is isend else -1
        by_group.setdefault(group, []).append((each.op is isend, each.tensor, peer, each.tag))
    return [Work(native, group, messages) for group, messages in by_group.items() for native in group._native.start_messages(messages)]
