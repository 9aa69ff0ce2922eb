"""finfo and iinfo: the numeric limits of a dtype."""

from __future__ import annotations

from tensord.engine import _engine

_FLOATS = {  # mantissa bits, smallest and largest exponent, all bits, decimal digits
    _engine.float16: (10, -14, 15, 16, 3), _engine.bfloat16: (7, -126, 127, 16, 2), _engine.float32: (23, -126, 127, 32, 6),
    _engine.float64: (52, -1022, 1023, 64, 15),
}
_PARTS = {_engine.complex64: _engine.float32, _engine.complex128: _engine.float64}
_INTS = (_engine.uint8, _engine.int8, _engine.int16, _engine.int32, _engine.int64)


class finfo:  # noqa: N801: torch.finfo is named so
    """For a floating-point dtype, or the parts of a complex one; without an argument, for the default dtype."""

    def __init__(self, type=None):
        given = _engine.get_default_dtype() if type is None else type
        kind = _PARTS.get(given, given)
        if kind not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{given}'")
        mantissa, lowest, highest, self.bits, digits = _FLOATS[kind]
        self.dtype = kind.name
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**highest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**lowest
        self.resolution = 10.0**-digits

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:  # noqa: N801: torch.iinfo is named so
    """For an integer dtype."""

    def __init__(self, type):
        if type not in _INTS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        self.dtype, self.bits = type.name, 8 * type.itemsize
        signs = 0 if type is _engine.uint8 else 1
        self.min, self.max = -signs * 2 ** (self.bits - 1), 2 ** (self.bits - signs) - 1

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
