"""Module: parameters, buffers, submodules, hooks and the state dict."""

from __future__ import annotations

import collections
import itertools
from typing import Any

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._tensor_methods import cuda_device
from tensord.engine.nn.parameter import Buffer, Parameter, is_lazy


class _Hooks:
    """Hooks by id, in the order of registration."""

    _ids = itertools.count()

    def __init__(self):
        self._hooks = collections.OrderedDict()

    def add(self, hook, prepend: bool = False):
        hook_id = next(self._ids)
        self._hooks[hook_id] = hook
        if prepend:
            self._hooks.move_to_end(hook_id, last=False)
        return _Handle(self._hooks, hook_id)

    def __iter__(self):
        return iter(list(self._hooks.values()))

    def __bool__(self):
        return bool(self._hooks)


class _Handle:
    def __init__(self, hooks, hook_id):
        self._hooks, self._hook_id = hooks, hook_id

    def remove(self) -> None:
        self._hooks.pop(self._hook_id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Difference(collections.namedtuple("Difference", ["missing_keys", "unexpected_keys"])):
    """The result of load_state_dict(strict=False)."""


class Module:
    """A layer or model: subclass it, assign parameters and modules in __init__, write forward()."""

    def __init__(self):
        set_ = super().__setattr__
        set_("training", True)
        set_("_parameters", {})
        set_("_buffers", {})
        set_("_non_persistent", set())
        set_("_modules", {})
        set_("_forward_pre_hooks", _Hooks())
        set_("_forward_hooks", _Hooks())
        set_("_backward_hooks", _Hooks())

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args, **kwargs) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks):
            return self.forward(*args, **kwargs)
        for hook, takes_kwargs in self._forward_pre_hooks:
            found = hook(self, args, kwargs) if takes_kwargs else hook(self, args)
            if found is not None and takes_kwargs:
                args, kwargs = found
            elif found is not None:
                args = found if isinstance(found, tuple) else (found,)
        result = self._with_backward_hooks(args, kwargs)
        for hook, takes_kwargs in self._forward_hooks:
            found = hook(self, args, kwargs, result) if takes_kwargs else hook(self, args, result)
            result = result if found is None else found
        return result

    def _with_backward_hooks(self, args, kwargs):
        if not self._backward_hooks or not _engine.is_grad_enabled():
            return self.forward(*args, **kwargs)
        from tensord.engine.nn.backward_hooks import run

        return run(self, args, kwargs)

    # Attribute assignment.

    def __setattr__(self, name: str, value):
        fields = self.__dict__.get("_parameters")
        if fields is None:
            if isinstance(value, (Parameter, Module)):
                raise AttributeError(f"{type(self).__name__}: call super().__init__() before assigning '{name}'")
            return super().__setattr__(name, value)
        table = self._table_of(value, name)
        if table is None:
            return super().__setattr__(name, value)
        for other in (self._parameters, self._buffers, self._modules):
            if other is not table:
                other.pop(name, None)
        self.__dict__.pop(name, None)
        table[name] = value
        if isinstance(value, Buffer) and not value.persistent:
            self._non_persistent.add(name)

    def _table_of(self, value, name):
        if isinstance(value, Parameter):
            return self._parameters
        if isinstance(value, Module):
            return self._modules
        if isinstance(value, Buffer):
            return self._buffers
        if name in self._buffers and (value is None or isinstance(value, Tensor)):
            return self._buffers
        for table in (self._parameters, self._modules):
            if name in table:
                if value is None:
                    return table
                raise TypeError(f"cannot assign '{type(value).__name__}' as '{name}' of {type(self).__name__}: it was a "
                                f"{'Parameter' if table is self._parameters else 'Module'}")
        return None

    def __getattr__(self, name: str):
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                return
        super().__delattr__(name)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, parameter) -> None:
        self._check_name(name)
        self._parameters[name] = parameter

    def register_buffer(self, name: str, tensor, persistent: bool = True) -> None:
        self._check_name(name)
        self._buffers[name] = tensor
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def register_module(self, name: str, module) -> None:
        self._check_name(name)
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"{name!r} is not a name for a part of a module")
        if hasattr(self, name) and name not in {**self._parameters, **self._buffers, **self._modules}:
            raise KeyError(f"attribute '{name}' already exists")

    # Contents.

    def named_modules(self, memo=None, prefix: str = ""):
        seen = set() if memo is None else memo
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, prefix + ("." if prefix else "") + name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_children(self):
        return ((name, module) for name, module in self._modules.items() if module is not None)

    def children(self):
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool):
        seen = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, tensor in getattr(module, table).items():
                # A tensor's hash is its identity; == would compare elements.
                if tensor is None or hash(tensor) in seen:
                    continue
                seen.add(hash(tensor))
                yield path + ("." if path else "") + name, tensor

    def named_parameters(self, prefix: str = "", recurse: bool = True):
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True):
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True):
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True):
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        module = self
        for name in target.split(".") if target else []:
            if name not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no module '{name}'")
            module = module._modules[name]
        return module

    def get_parameter(self, target: str) -> "Parameter":
        return self._part(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        return self._part(target, "_buffers", "buffer")

    def _part(self, target: str, table: str, kind: str):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in getattr(module, table):
            raise AttributeError(f"{type(module).__name__} has no {kind} '{name}'")
        return getattr(module, table)[name]

    # State besides tensors: if both methods are overridden, it is stored in the state dict as "_extra_state".

    def get_extra_state(self) -> Any:
        raise RuntimeError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError(f"{type(self).__name__} takes no extra state")

    # State dict.

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict:
        """Parameters and persistent buffers by name; the tensors are the module's own."""
        out = {}
        for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
            if tensor is not None and name not in self._non_persistent:
                out[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            out[prefix + "_extra_state"] = self.get_extra_state()
        for name, module in self.named_children():
            out.update(module.state_dict(prefix=f"{prefix}{name}.", keep_vars=keep_vars))
        return out

    def load_state_dict(self, state: dict, strict: bool = True) -> Difference:
        """Copies into the module's tensors. Nothing is copied if names (with `strict`) or shapes differ."""
        own = self.state_dict()
        found = Difference([name for name in own if name not in state], [name for name in state if name not in own])
        problems = [f"missing {found.missing_keys}"] * bool(found.missing_keys) + [
            f"unexpected {found.unexpected_keys}"] * bool(found.unexpected_keys) if strict else []
        extra = {name for name in own if name.rpartition(".")[2] == "_extra_state"}
        for name, tensor in own.items():
            if name in state and name not in extra and not is_lazy(tensor):
                if is_lazy(state[name]):
                    problems.append(f"{name}: an uninitialized one cannot be loaded into an initialized one; call forward() on its module first")
                elif tuple(state[name].shape) != tuple(tensor.shape):
                    problems.append(f"{name}: expected shape {list(tensor.shape)}, got {list(state[name].shape)}")
        if problems:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}: " + "; ".join(problems))
        for name, tensor in own.items():
            if name in extra and name in state:
                self.get_submodule(name.rpartition(".")[0]).set_extra_state(state[name])
            elif name in state and not is_lazy(state[name]):
                if is_lazy(tensor):
                    tensor.materialize(state[name].shape)
                tensor.detach().copy_(state[name])
        return found

    # Modes and conversions.

    def train(self, mode: bool = True) -> "Module":
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self) -> "Module":
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def share_memory(self) -> "Module":
        """Moves parameters and buffers to shared memory (`Tensor.share_memory_`)."""
        for tensor in itertools.chain(self.parameters(), self.buffers()):
            tensor.share_memory_()
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else parameter.grad.detach().zero_()

    def apply(self, function) -> "Module":
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def _convert(self, convert) -> "Module":
        made = {}  # tensors shared by several modules stay shared

        def once(tensor, make):
            if hash(tensor) not in made:
                made[hash(tensor)] = make(tensor)
            return made[hash(tensor)]

        for module in self.modules():
            for name, parameter in module._parameters.items():
                if is_lazy(parameter):
                    once(parameter, lambda x: x._convert(convert))
                elif parameter is not None:
                    module._parameters[name] = once(parameter, lambda x: Parameter(convert(x.detach()), x.requires_grad))
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = once(buffer, lambda x: x._convert(convert) if is_lazy(x) else convert(x))
        return self

    def to(self, *args, **kwargs) -> "Module":
        """Converts floating-point parameters and buffers to a dtype, or moves all to a device."""
        dtypes = [item for item in [*args, *kwargs.values()] if isinstance(item, _engine.dtype)]

        def convert(tensor):
            if dtypes and not tensor.dtype.is_floating_point:
                others = [item for item in args if not isinstance(item, _engine.dtype)]
                return tensor.to(*others) if others else tensor
            return tensor.to(*args, **kwargs)

        return self._convert(convert)

    def type(self, dtype) -> "Module":
        """Converts all parameters and buffers, including integer ones."""
        return self._convert(lambda tensor: tensor.to(dtype))

    def to_empty(self, *, device) -> "Module":
        """Allocates parameters and buffers on the device, uninitialized."""
        return self._convert(lambda tensor: _engine._operator("aten::empty_like")(tensor, device=device))

    def cpu(self) -> "Module":
        return self.to("cpu")

    def cuda(self, device=None) -> "Module":
        return self.to(cuda_device(device))

    def float(self):
        return self.to(_engine.float32)

    def double(self):
        return self.to(_engine.float64)

    def half(self):
        return self.to(_engine.float16)

    def bfloat16(self):
        return self.to(_engine.bfloat16)

    # Hooks.

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False):
        return self._forward_pre_hooks.add((hook, with_kwargs), prepend)

    def register_forward_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False):
        return self._forward_hooks.add((hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False):
        """Registers a hook called with (module, grad_input, grad_output) once the module's gradients are computed; it
        may replace grad_input."""
        return self._backward_hooks.add(hook, prepend)

    def extra_repr(self) -> str:
        return ""

    def __repr__(self):
        lines = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}(\n  " + "\n  ".join([extra, *lines] if extra else lines) + "\n)"
