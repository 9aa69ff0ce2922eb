"""Samples of PyTorch's operator database as traced archives."""

from __future__ import annotations

import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "build" / "op_db"))
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

MOST_SAMPLES = 6


def name_of(info) -> str:
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def all_operators() -> list:
    # jiterator_*: code for CUDA only.
    return [info for info in op_db if not info.name.startswith("jiterator")]


def tensors_in(value) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def is_continuous(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


class Sample:
    """One call: `tensors` are inputs of the run, everything else is part of the program."""

    def __init__(self, info, sample):
        self.info = info
        self.tensors = []
        self.call = self._take([sample.input, list(sample.args), sample.kwargs])

    def _take(self, value):
        if isinstance(value, torch.Tensor):
            self.tensors.append(value.detach())
            return _Place(len(self.tensors) - 1)
        if isinstance(value, (list, tuple)):
            return type(value)(self._take(item) for item in value) if type(value) in (list, tuple) else value
        if isinstance(value, dict):
            return {key: self._take(item) for key, item in value.items()}
        return value

    def function(self, tensors):
        first, args, kwargs = _put(self.call, tensors)
        return self.info(first, *args, **kwargs)

    def results(self, tensors):
        return tuple(tensors_in(self.function(tensors)))

    def loss(self, tensors):
        """One number that depends on every floating-point or complex result."""
        total = torch.zeros((), dtype=torch.float64)
        for i, result in enumerate(self.results(tensors)):
            if result.is_complex():
                result = torch.view_as_real(result.resolve_conj())
            if result.is_floating_point():
                weights = torch.linspace(0.5, 1.5, max(result.numel(), 1), dtype=torch.float64)[: result.numel()].reshape(result.shape).to(result.dtype)
                total = total + (result * (weights + i)).sum()
        return total


class _Place:
    def __init__(self, index):
        self.index = index


def _put(value, tensors):
    if isinstance(value, _Place):
        return tensors[value.index]
    if type(value) in (list, tuple):
        return type(value)(_put(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _put(item, tensors) for key, item in value.items()}
    return value


def samples_of(info, dtype, most: int = MOST_SAMPLES) -> list:
    """The first samples; all if `most` is 0."""
    torch.manual_seed(0)
    found = []
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        found.append(Sample(info, sample))
        if len(found) == most:
            break
    return [sample for sample in found if sample.tensors]


class Gradients(torch.nn.Module):
    """First gradients of a traced loss, and those of their squares' sum."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, tensors: list[torch.Tensor], wanted: list[int]):
        inputs: list[torch.Tensor] = []
        for i in wanted:
            tensors[i] = tensors[i].detach().requires_grad_(True)
            inputs.append(tensors[i])
        first = torch.autograd.grad([self.loss(tensors)], inputs, None, True, True, True)
        total = torch.zeros([], dtype=torch.float64)
        found: list[torch.Tensor] = []
        for x, g in zip(inputs, first):
            # The gradient of an unused input may be None or zeros.
            if g is None:
                found.append(torch.zeros_like(x))
            else:
                found.append(g.detach().resolve_conj())
                real = torch.view_as_real(g.resolve_conj()) if g.is_complex() else g
                total = total + (real * real).sum()
        if total.requires_grad:
            second = torch.autograd.grad([total], inputs, None, None, False, True)
            for x, g in zip(inputs, second):
                found.append(torch.zeros_like(x) if g is None else g.detach().resolve_conj())
        else:
            for x in inputs:
                found.append(torch.zeros_like(x))
        return found


def archive_of(sample: Sample, gradients: bool):
    """The scripted program and its arguments."""
    function = sample.loss if gradients else sample.results
    traced = torch.jit.trace(_Call(function), (sample.tensors,), check_trace=False, strict=False)
    if not gradients:
        return traced, (sample.tensors,)
    wanted = [i for i, tensor in enumerate(sample.tensors) if is_continuous(tensor)]
    return torch.jit.script(Gradients(traced)), (sample.tensors, wanted)


class _Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, tensors):
        return self.function(tensors)
