"""Every TorchScript operator on plain numbers, booleans and strings, over a grid of values."""

import itertools

import torch

from tests.ops.case import Case

VALUES = {
    "int": [1, -7, 3, 12],  # PyTorch crashes on an integer division by zero
    "float": [0.0, 1.5, -2.25, 1e10],
    "bool": [True, False],
    "str": ["a b", "Hello World", "b"],  # PyTorch loops forever on some empty ones
    "number": [2, -1.5, True],
}
NAMES = set("""
add sub mul div floordiv remainder pow neg eq ne lt le gt ge __and__ __or__ __xor__ __lshift__ __rshift__ __not__
floor ceil round sqrt exp log log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 fabs fmod
degrees radians erf erfc expm1 gamma lgamma copysign isnan isinf isfinite gcd Int Float Bool str min max abs len ord hex
oct bin lower upper capitalize title swapcase strip lstrip rstrip find rfind startswith endswith isdigit isalpha isalnum
isupper islower isspace istitle isidentifier isprintable isdecimal isnumeric __contains__ __getitem__ __range_length
__derive_index mathremainder divmod trunc IntImplicit FloatImplicit ScalarImplicit
""".split())


def _grid(schema):
    lists = [VALUES.get(str(argument.type)) for argument in schema.arguments]
    if not schema.arguments or len(schema.arguments) > 3 or any(values is None for values in lists):
        return []
    return itertools.product(*lists)


def _rows():
    rows = []
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        if namespace not in ("aten", "prim") or name not in NAMES:
            continue
        full_name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        returns = [str(value.type) for value in schema.returns]
        if any(kind not in ("int", "float", "bool", "str", "number", "List[str]") for kind in returns):
            continue
        # PyTorch computes the Scalar variants in float32.
        rtol = 1e-6 if schema.overload_name == "Scalar" else 1e-12
        for values in _grid(schema):
            if name in ("__lshift__", "__rshift__") and values[-1] < 0:
                continue  # undefined in PyTorch
            rows.append(Case(full_name, values, {}, [torch.float32], False, rtol, 0.0, "values", None, None, optional=True))
    return rows


CASES = _rows()


def _hash_of_int(value: int) -> int:
    return hash(value)


def _hash_of_float(value: float) -> int:
    return hash(value)


def _hash_of_bool(value: bool) -> int:
    return hash(value)


def _hash_of_str(value: str) -> int:
    return hash(value)


# PyTorch's operator only accepts script values.
HASHES = {int: _hash_of_int, float: _hash_of_float, bool: _hash_of_bool, str: _hash_of_str}
CASES += [Case("aten::hash.generic", (value,), {}, [torch.float32], False, 0.0, 0.0, "values", torch.jit.script(HASHES[type(value)]), None)
          for value in (3, -7, 2.5, -0.0, True, "a b", "")]
