"""Compares results of `tensord run` with PyTorch's."""

import torch


def difference(actual, expected, tolerance, where="result"):
    """None if equal, otherwise one line that says where and how they differ."""
    if isinstance(expected, torch.Tensor):
        return tensor_difference(actual, expected, tolerance, where)
    if type(actual) is not type(expected):
        return f"{where}: {type(actual).__name__} instead of {type(expected).__name__}"
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return f"{where}: {len(actual)} items instead of {len(expected)}"
        pairs = [(f"{where}[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected))]
    elif isinstance(expected, dict):
        if list(actual) != list(expected):
            return f"{where}: keys {list(actual)} instead of {list(expected)}"
        pairs = [(f"{where}[{key!r}]", actual[key], expected[key]) for key in expected]
    elif isinstance(expected, float):
        close = abs(actual - expected) <= tolerance * max(1.0, abs(expected))
        return None if close or actual != actual and expected != expected else f"{where}: {actual} instead of {expected}"
    else:
        return None if actual == expected else f"{where}: {actual!r} instead of {expected!r}"
    for place, a, e in pairs:
        found = difference(a, e, tolerance, place)
        if found:
            return found
    return None


def tensor_difference(actual, expected, tolerance, where):
    if not isinstance(actual, torch.Tensor):
        return f"{where}: {type(actual).__name__} instead of a tensor"
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{where}: {actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.numel() == 0:
        return None
    if not expected.is_floating_point():
        return None if torch.equal(actual, expected) else f"{where}: other values"
    a, e = actual.double(), expected.double()
    error = ((a - e).abs() / e.abs().max().clamp(min=1e-6)).max().item()
    return None if error <= tolerance else f"{where}: relative error {error:.3g}"
