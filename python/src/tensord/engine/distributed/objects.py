"""Collectives on picklable objects. All ranks must be trusted, because loading a pickle runs code."""

from __future__ import annotations

import pickle

from tensord.engine import _engine
from tensord.engine.distributed.collectives import recv, send
from tensord.engine.distributed.groups import resolve, root_of


def all_gather_object(object_list, obj, group=None) -> None:
    """object_list[r] receives the object of rank r."""
    if (group := resolve(group)) is not None:
        _check_size("object_list", object_list, group.size())
        object_list[:] = map(pickle.loads, group._native.all_gather_bytes(pickle.dumps(obj)))


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """object_gather_list, on the root only, receives the objects of all ranks."""
    if (group := resolve(group)) is not None:
        root = root_of(group, dst, group_dst)
        is_root = group.rank() == root
        if is_root:
            _check_size("object_gather_list", object_gather_list, group.size())
        elif object_gather_list:
            raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
        found = group._native.gather_bytes(pickle.dumps(obj), root)
        if is_root:
            object_gather_list[:] = map(pickle.loads, found)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """The list receives the root's objects; it must have the same length."""
    if (group := resolve(group)) is not None:
        root = root_of(group, src, group_src)
        own = pickle.dumps(list(object_list)) if group.rank() == root else b""
        found = pickle.loads(group._native.broadcast_bytes(own, root))
        _check_size("object_list", object_list, len(found))
        object_list[:] = found


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None) -> None:
    """scatter_object_output_list[0] receives this rank's entry of the root's list."""
    if (group := resolve(group)) is not None:
        root = root_of(group, src, group_src)
        if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
            raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
        parts = []
        if group.rank() == root:
            _check_size("scatter_object_input_list", scatter_object_input_list, group.size())
            parts = [pickle.dumps(part) for part in scatter_object_input_list]
        scatter_object_output_list[0] = pickle.loads(group._native.scatter_bytes(parts, root))


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None) -> None:
    data = pickle.dumps(list(object_list))
    send(_engine._make_tensor(len(data), None), dst, group, 0, group_dst)
    send(_as_tensor(data), dst, group, 0, group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None) -> int:
    """Returns the sender's rank in the world."""
    size = _engine._make_tensor(0, None)
    sender = recv(size, src, group, 0, group_src)
    if sender < 0:
        return sender
    data = _engine._operator("aten::empty")((int(size.item()),), dtype=_engine.uint8)
    recv(data, sender, group, 0)
    found = pickle.loads(bytes(memoryview(data)))
    _check_size("object_list", object_list, len(found))
    object_list[:] = found
    return sender


def _as_tensor(data: bytes):
    from tensord import engine

    return engine.frombuffer(bytearray(data), dtype=engine.uint8)


def _check_size(name: str, given, size: int) -> None:
    if not isinstance(given, list) or len(given) != size:
        raise ValueError(f"{name}: expected a list of {size}, got {f'one of {len(given)}' if isinstance(given, list) else given!r}")
