"""Prints tensors in PyTorch's layout."""

from __future__ import annotations

import contextlib
import math

from tensord.engine import _engine


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None) -> None:
    """Sets the precision, the number of elements above which tensors are summarized, and the line width."""
    given = dict(_PROFILES[profile]) if profile is not None else {}
    for name, value in [("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems), ("linewidth", linewidth)]:
        if value is not None:
            given[name] = value
    for name, value in given.items():
        setattr(_Options, name, value)
    _Options.sci_mode = sci_mode


class _NumberFormat:
    """The format of one tensor's elements, all of one width."""

    def __init__(self, values, is_float: bool):
        self.is_float = is_float
        self.is_integral_float = True
        self.is_scientific = False
        self.width = 1
        if not self.is_float:
            self.width = max((len(str(value)) for value in values), default=1)
            return
        finite = [abs(value) for value in values if math.isfinite(value) and value != 0]
        if finite:
            self._choose(finite, values)
            # sci_mode overrides the notation but not the width.
            self.is_scientific = self.is_scientific if _Options.sci_mode is None else _Options.sci_mode

    def _choose(self, finite, values):
        largest, smallest = max(finite), min(finite)
        self.is_integral_float = all(value == math.ceil(value) for value in finite)
        if self.is_integral_float:
            self.is_scientific = largest / smallest > 1000 or largest > 1e8
        else:
            self.is_scientific = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
        # The width of the longest finite number; infinities and their signs are counted separately.
        self.width = max((len(self._plain(value)) for value in values if math.isfinite(value) and value != 0), default=1)

    def _plain(self, value) -> str:
        if self.is_scientific:
            return f"{{:.{_Options.precision}e}}".format(value)
        if self.is_integral_float:
            digits = f"{value:.0f}"
            return digits + "." if math.isfinite(value) else digits
        return f"{{:.{_Options.precision}f}}".format(value)

    def format(self, value) -> str:
        if not self.is_float:
            return str(value).rjust(self.width)
        return self._plain(value).rjust(self.width)


def _line(items, indent, width) -> str:
    per_line = max(1, int((_Options.linewidth - indent) // (width + 2)))
    lines = [items[i: i + per_line] for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _with_gap(parts, size: int, gap: str) -> list:
    """Inserts the gap if only the edges of `size` items are shown."""
    edge = _Options.edgeitems
    return parts if len(parts) == size else [*parts[:edge], gap, *parts[edge:]]


def _body(values, sizes, indent: int, write, width: int) -> str:
    if not sizes:
        return write(values)
    if len(sizes) == 1:
        return _line(_with_gap([write(value) for value in values], sizes[0], " ..."), indent, width)
    parts = _with_gap([_body(value, sizes[1:], indent + 1, write, width) for value in values], sizes[0], "...")
    return "[" + ("," + "\n" * (len(sizes) - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(tensor):
    """The part of a large tensor that is shown."""
    edge = _Options.edgeitems
    for dim in range(tensor.ndim):
        size = tensor.shape[dim]
        if size > 2 * edge:
            tensor = _engine._operator("aten::cat")([tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge)], dim)
    return tensor


def _format_values(tensor, indent: int) -> str:
    sizes = tuple(tensor.shape)
    seen = _edges(tensor) if tensor.numel() > _Options.threshold else tensor
    if seen.dtype in (_engine.float16, _engine.bfloat16):
        seen = seen.float()
    values = seen.reshape(-1).tolist()
    if not seen.dtype.is_complex:
        number_format = _NumberFormat(values, seen.dtype.is_floating_point)
        return _body(seen.tolist(), sizes, indent, number_format.format, number_format.width)
    real, imag = _NumberFormat([value.real for value in values], True), _NumberFormat([value.imag for value in values], True)

    def write(value):
        part = imag.format(value.imag).lstrip()
        return real.format(value.real) + ("" if part.startswith("-") else "+") + part + "j"

    return _body(seen.tolist(), sizes, indent, write, real.width + imag.width + 1)


def tensor_repr(self) -> str:
    with contextlib.ExitStack() as stack:
        before = _engine._set_grad_enabled(False)
        stack.callback(_engine._restore_grad_mode, before)
        return _format_tensor(self)


def _sparse_parts(tensor) -> list[tuple]:
    if tensor.layout is _engine.sparse_coo:
        return [("indices", tensor._indices()), ("values", tensor._values())]
    if tensor.layout in (_engine.sparse_csr, _engine.sparse_bsr):
        return [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices()), ("values", tensor.values())]
    return [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices()), ("values", tensor.values())]


def _format_quantized(tensor) -> str:
    body = "tensor(" + _format_values(tensor.dequantize(), len("tensor("))
    suffixes = [f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"]
    if tensor.qscheme() == 0:  # one scale
        suffixes += ["quantization_scheme=engine.per_tensor_affine", f"scale={tensor.q_scale()}", f"zero_point={tensor.q_zero_point()}"]
    return _with_suffixes(body, suffixes)


def _format_sparse(tensor) -> str:
    gap = ",\n" + " " * len("tensor(")
    parts = []
    for name, part in _sparse_parts(tensor):
        lines = tensor_repr(part).split("\n")
        parts.append(f"{name}=" + ("\n" + " " * len(f"tensor({name}=")).join(lines))
    if tensor.layout is not _engine.sparse_coo:
        dtypes = [] if tensor.dtype is _engine.float32 else [f"dtype={tensor.dtype}"]
        suffixes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}", *dtypes, f"layout={tensor.layout}"]
        return _with_suffixes("tensor(" + gap.join(parts), suffixes)
    dtype = "" if tensor.dtype is _engine.float32 else f", dtype={tensor.dtype}"
    return f"tensor({gap.join(parts)}{gap}size={tuple(tensor.shape)}, nnz={tensor._nnz()}{dtype}, layout={tensor.layout})"


def _format_tensor(tensor) -> str:
    if tensor.layout is not _engine.strided:
        return _format_sparse(tensor)
    if tensor.is_quantized:
        return _format_quantized(tensor)
    prefix = "tensor("
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.is_meta:
        body = "..."
        suffixes.append(f"size={tuple(tensor.shape)}")
    elif tensor.numel() == 0:
        if tensor.ndim != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        body = "[]"
    else:
        body = _format_values(tensor.detach(), len(prefix))
    is_default = tensor.dtype in (_engine.float32, _engine.int64, _engine.bool, _engine.complex64) and tensor.numel() > 0
    if not is_default and not (tensor.numel() == 0 and tensor.dtype is _engine.float32):
        suffixes.append(f"dtype={tensor.dtype}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + body, suffixes)


def _with_suffixes(printed: str, suffixes) -> str:
    last = len(printed) - printed.rfind("\n") + 1
    out = [printed]
    for suffix in suffixes:
        if last + len(suffix) + 2 > _Options.linewidth:
            out.append(",\n" + " " * len("tensor(") + suffix)
            last = len("tensor(") + len(suffix)
        else:
            out.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(out) + ")"
