"""Functions of PyTorch that are not operators themselves but are composed of operators."""

from __future__ import annotations

import math

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._interchange import from_dlpack
from tensord.engine._lowrank import pca_lowrank, svd_lowrank
from tensord.engine._operators import aten

__all__ = [
    "as_strided_", "as_tensor", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "can_cast", "cartesian_prod", "cdist", "conj_physical_", "e", "einsum", "from_dlpack", "get_float32_matmul_precision", "inf", "is_storage",
    "is_tensor", "meshgrid", "nan", "newaxis", "nonzero", "norm", "numel", "pca_lowrank", "pi", "promote_types", "resize_as_", "seed",
    "set_float32_matmul_precision", "split", "svd_lowrank", "tensor", "tensordot", "unique", "unique_consecutive",
]


e: float = math.e
inf: float = math.inf
nan: float = math.nan
pi: float = math.pi
newaxis: None = None


def tensor(data, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A new tensor with the values of `data`: nested lists, a number, an array or a tensor. Always a copy."""
    try:
        made = _engine._make_tensor(data, dtype)
    except TypeError:
        listed = _as_lists(data)
        if listed is data:
            raise
        made = _engine._make_tensor(listed, dtype)
    if device is not None and str(_device(device)) != "cpu":
        made = made.to(device)
    if requires_grad:
        made.requires_grad = True
    return made


def _as_lists(data):
    """Ranges and other sequences as lists, at any depth; the object itself if it contains none."""
    if isinstance(data, (list, tuple)):
        made = [_as_lists(item) for item in data]
        return data if all(a is b for a, b in zip(made, data)) else made
    if isinstance(data, (str, bytes, dict, Tensor)) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        return data
    return [_as_lists(data[i]) for i in range(len(data))]


def as_shape(sizes) -> tuple:
    """One size or several as a shape."""
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


def _device(given):
    return given if isinstance(given, _engine.device) else _engine.device(given)


def as_tensor(data, *, dtype=None, device=None) -> Tensor:
    """Like tensor(), but shares the memory of an array or tensor if it has the right dtype and device."""
    if isinstance(data, Tensor):
        made = data
    elif hasattr(data, "__array_interface__"):
        made = _engine.from_numpy(data)
    else:
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None and made.dtype is not dtype:
        made = made.to(dtype)
    return made if device is None or _device(device) == made.device else made.to(device)


def asarray(data, *, dtype=None, device=None, copy=None) -> Tensor:
    """Like as_tensor(); copy=True always copies, copy=False never does (ValueError if a copy is necessary)."""
    if copy:
        return tensor(data, dtype=dtype, device=device)
    if not isinstance(data, Tensor) and hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        data = from_dlpack(data)
    made = as_tensor(data, dtype=dtype, device=device)
    if copy is False and not (made is data or (hasattr(data, "__array_interface__") and (dtype is None or made.dtype is dtype))):
        raise ValueError("asarray: copy=False, but a copy is needed")
    return made


def is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def is_storage(value) -> bool:
    from tensord.engine._storage import TypedStorage

    return isinstance(value, (TypedStorage, _engine.UntypedStorage))


def as_strided_(input: Tensor, size, stride, storage_offset=None) -> Tensor:
    return input.as_strided_(size, stride, storage_offset)


def conj_physical_(input: Tensor) -> Tensor:
    return input.conj_physical_()


def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    return input.resize_as_(the_template)


def numel(input: Tensor) -> int:
    return input.numel()


def seed() -> int:
    """Seeds the default generator with a random number of the system, and returns it."""
    import secrets

    value = secrets.randbits(63)
    _engine.manual_seed(value)
    return value


def set_float32_matmul_precision(precision: str) -> None:
    """Whether products of float32 on CUDA may round their operands to TF32: "highest" (no, the default), "high" or "medium"."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f'set_float32_matmul_precision: expected "highest", "high" or "medium", but got {precision!r}')
    _engine._allow_tf32(True, precision != "highest")


def get_float32_matmul_precision() -> str:
    return "high" if _engine._allows_tf32(True) else "highest"


def promote_types(type1, type2):
    """The result dtype of two dtypes."""
    if type1.is_complex or type2.is_complex:
        wide = (_engine.complex128, _engine.float64)
        return _engine.complex128 if type1 in wide or type2 in wide else _engine.complex64
    return aten("result_type")(aten("empty")((1,), dtype=type1), aten("empty")((1,), dtype=type2))


def can_cast(from_, to) -> bool:
    """Whether an in-place operator may write results of dtype `from_` into `to`."""
    ranks = [1 if d.is_floating_point else 2 if d.is_complex else 0 if d is not _engine.bool else -1 for d in (from_, to)]
    return ranks[0] <= ranks[1]


def _listed(tensors):
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def einsum(equation: str, *operands) -> Tensor:
    return aten("einsum")(equation, _listed(operands))


def meshgrid(*tensors, indexing: str = "ij"):
    return tuple(aten("meshgrid")(_listed(tensors), indexing=indexing))


def broadcast_tensors(*tensors):
    return tuple(aten("broadcast_tensors")(_listed(tensors)))


def block_diag(*tensors) -> Tensor:
    return aten("block_diag")(_listed(tensors))


def cartesian_prod(*tensors) -> Tensor:
    return aten("cartesian_prod")(_listed(tensors))


def _at_least(name: str, tensors):
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return aten(name)(tensors[0])
    return tuple(aten(name)(item) for item in _listed(tensors))


def atleast_1d(*tensors):
    return _at_least("atleast_1d", tensors)


def atleast_2d(*tensors):
    return _at_least("atleast_2d", tensors)


def atleast_3d(*tensors):
    return _at_least("atleast_3d", tensors)


def broadcast_shapes(*shapes):
    """The shape to which tensors of these shapes broadcast."""
    sizes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    out = [1] * max((len(s) for s in sizes), default=0)
    for shape in sizes:
        for i, size in enumerate(reversed(shape), 1):
            if size != 1 and out[-i] not in (1, size):
                raise ValueError(f"broadcast_shapes: shapes {sizes} cannot be broadcast to one")
            out[-i] = size if size != 1 else out[-i]
    return _engine.Size(out)


def split(tensor: Tensor, split_size_or_sections, dim: int = 0):
    sizes = split_size_or_sections
    return tuple(aten("split")(tensor, list(sizes) if isinstance(sizes, (list, tuple)) else sizes, dim))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Pairwise distances between the rows of two batches of matrices; `compute_mode` is only a hint."""
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"cdist: compute_mode {compute_mode!r} is not one of {', '.join(modes)}")
    mode_code = modes.index(compute_mode)
    return _engine._operator("aten::cdist")(x1, x2, p, mode_code or None)


def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    """Contracts `dims` dimensions: their number at the end of `a` and the start of `b`, or two lists of them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise ValueError(f"tensordot: expected dims >= 0, got {dims}")
        dims = (list(range(-dims, 0)), list(range(dims)))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return aten("tensordot")(a, b, first, second)


def nonzero(input: Tensor, *, as_tuple: bool = False):
    """Where elements are not zero: a row for each, or, `as_tuple`, an index tensor for each dimension."""
    return tuple(aten("nonzero_numpy")(input)) if as_tuple else aten("nonzero")(input)


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim=None):
    if dim is None:
        found = aten("_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = aten("unique_dim")(input, dim, sorted, return_inverse, return_counts)
    return _wanted(found, return_inverse, return_counts)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim=None):
    return _wanted(aten("unique_consecutive")(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def _wanted(found, has_inverse: bool, has_counts: bool):
    out = (found[0], *((found[1],) if has_inverse else ()), *((found[2],) if has_counts else ()))
    return out if len(out) > 1 else out[0]


def norm(input: Tensor, p="fro", dim=None, keepdim: bool = False, out=None, dtype=None) -> Tensor:
    """Vector norms ("fro" treats all elements as one vector), or the nuclear norm of matrices for p="nuc"."""
    if out is not None:
        return out.copy_(norm(input, p, dim, keepdim, dtype=dtype))
    if p == "nuc":
        dims = [-2, -1] if dim is None else list(dim)
        return aten("linalg_matrix_norm")(input, "nuc", dims, keepdim, dtype=dtype)
    order = 2 if p in ("fro", None) else p
    dims = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
    return aten("linalg_vector_norm")(input, order, dims, keepdim, dtype=dtype)
