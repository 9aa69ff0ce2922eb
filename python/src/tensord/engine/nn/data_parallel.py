"""One model on several devices of one process: torch.nn.DataParallel and the functions it is built from."""

from __future__ import annotations

import itertools
import warnings

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine.nn.module import Module
from tensord.engine.nn.parameter import refuse_lazy

_cat = _engine._operator("aten::cat")


def _device(given):
    if isinstance(given, int):
        return _engine.device(f"cuda:{given}")
    found = given if isinstance(given, _engine.device) else _engine.device(given)
    return _engine.device("cuda:0") if str(found) == "cuda" else found


def _all_devices() -> list:
    return [_device(i) for i in range(_engine._distributed.cuda_device_count())]


def _is_namedtuple(value) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like(value, items):
    """Items in the same kind of sequence as `value`."""
    return type(value)(*items) if _is_namedtuple(value) else type(value)(items)


def scatter(inputs, target_gpus, dim: int = 0):
    """Splits inputs between devices: tensors into chunks along `dim`, in lists, tuples and dicts at any depth; other
    values are repeated.

    Returns fewer parts than devices if a tensor has fewer rows.
    """
    devices = [_device(each) for each in target_gpus]
    if not devices:
        raise ValueError("scatter: no devices")

    def parts_of(value) -> list:
        if isinstance(value, Tensor):
            return [part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices)]
        if isinstance(value, (list, tuple)) and len(value) > 0:
            return [_like(value, items) for items in zip(*map(parts_of, value))]
        if isinstance(value, dict) and len(value) > 0:
            return [type(value)(zip(value, items)) for items in zip(*map(parts_of, value.values()))]
        return [value for _ in devices]

    return parts_of(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim: int = 0):
    """Splits arguments and keyword arguments, into two tuples of equal length."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    pairs = list(itertools.zip_longest(inputs, kwargs))
    return tuple(() if own is None else tuple(own) for own, _ in pairs), tuple(own or {} for _, own in pairs)


def gather(outputs, target_device, dim: int = 0):
    """Combines the devices' results on one device: concatenates tensors along `dim`; numbers become a vector."""
    device = _device("cpu" if target_device == -1 else target_device)

    def gathered(parts):
        first = parts[0]
        if isinstance(first, Tensor):
            moved = [part.to(device) for part in parts]
            if not all(part.ndim == 0 for part in moved):
                return _cat(moved, dim)
            if dim == 0:
                warnings.warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze "
                              "and return a vector.", stacklevel=2)
            return _cat([part.unsqueeze(0) for part in moved], 0)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(part) != len(first) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, gathered([part[key] for part in parts])) for key in first)
        if isinstance(first, (list, tuple)):
            return _like(first, [gathered(list(items)) for items in zip(*parts)])
        raise TypeError(f"gather: {type(first).__name__} is not a tensor, and nothing that holds tensors")

    outputs = list(outputs)
    if not outputs:
        raise ValueError("gather: no outputs")
    return gathered(outputs)


def replicate(network: Module, devices, detach: bool = False) -> list:
    """Copies of a module, one per device. Gradients of their parameters flow to the module's own, unless `detach`.

    The first replica shares tensors that are already on its device, so buffer changes in its forward persist.
    """
    refuse_lazy(network, "DataParallel")
    return [_replica(network, _device(device), i > 0, detach) for i, device in enumerate(devices)]


def _replica(network, device, is_copy: bool, detach: bool):
    modules, tensors = {}, {}

    def tensor_of(tensor, is_parameter):
        if tensor is None:
            return None
        # A tensor's hash is its identity, so tensors shared within the module stay shared.
        if hash(tensor) not in tensors:
            source = tensor if is_parameter and not detach else tensor.detach()
            tensors[hash(tensor)] = source.to(device, copy=True) if is_copy else source.to(device)
        return tensors[hash(tensor)]

    def module_of(module):
        if module is None:
            return None
        if id(module) not in modules:
            made = modules[id(module)] = object.__new__(type(module))
            made.__dict__.update(module.__dict__)
            made.__dict__["_parameters"] = {name: tensor_of(own, True) for name, own in module._parameters.items()}
            made.__dict__["_buffers"] = {name: tensor_of(own, False) for name, own in module._buffers.items()}
            made.__dict__["_modules"] = {name: module_of(own) for name, own in module._modules.items()}
        return modules[id(module)]

    return module_of(network)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Runs each module on its arguments. Devices work concurrently, because their work is queued."""
    modules, inputs = list(modules), list(inputs)
    kwargs = [{}] * len(modules) if kwargs_tup is None else list(kwargs_tup)
    if not len(modules) == len(inputs) == len(kwargs) or (devices is not None and len(devices) != len(modules)):
        raise ValueError(f"parallel_apply: {len(modules)} modules, {len(inputs)} inputs, {len(kwargs)} keywords"
                         + ("" if devices is None else f", {len(devices)} devices"))
    return [module(*(own if isinstance(own, (list, tuple)) else (own,)), **named) for module, own, named in zip(modules, inputs, kwargs)]


class DataParallel(Module):
    """A module that splits each batch between devices: torch.nn.DataParallel.

    `device_ids` are indices of CUDA devices, or devices; by default all CUDA devices, and without any the module runs as it is.
    The module's parameters and buffers lie on the first one. Gradients of all devices add up in them.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = _all_devices() if device_ids is None else [_device(each) for each in device_ids]
        if not self.device_ids:
            self.output_device = None
            return
        self.output_device = self.device_ids[0] if output_device is None else _device(output_device)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        first = self.device_ids[0]
        for tensor in itertools.chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != first:
                raise RuntimeError(f"module must have its parameters and buffers on device {first} (device_ids[0]) but found one of "
                                   f"them on device: {tensor.device}")
        own, named = self.scatter(inputs, kwargs, self.device_ids)
        if not own:
            own, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*own[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[:len(own)])
        return self.gather(self.parallel_apply(replicas, own, named), self.output_device)

    # Hooks for subclasses.

    def replicate(self, module, device_ids):
        return replicate(module, device_ids, not _engine.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[:len(replicas)])

    def gather(self, outputs, output_device):
        return gather(outputs, output_device, self.dim)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """DataParallel's forward as a function."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
