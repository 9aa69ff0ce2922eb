"""Loaded models as callables."""

from __future__ import annotations

import os
from typing import Any

from tensord.engine import _engine

__all__ = ["ScriptModule", "TracerWarning", "load", "save", "script", "trace"]


def _bound(names, values: tuple):
    """Returns (args, kwargs): arguments with a default are passed by name. A script's calls do not record which were
    named."""
    return (tuple(value for (_, has_default), value in zip(names, values) if not has_default),
            {name: value for (name, has_default), value in zip(names, values) if has_default})


def _unbound(names, args: tuple, kwargs: dict) -> tuple:
    """The positional form of a hook's (args, kwargs)."""
    known = dict(kwargs)
    out = list(args)
    for name, _ in names[len(args):]:
        if name not in known:
            break
        out.append(known.pop(name))
    if known:
        raise TypeError(f"forward pre-hook: unexpected or missing arguments beside {', '.join(known)}")
    return tuple(out)


class _Hooked:
    """Hooks of a loaded module, as in nn.Module. While a hook is registered, the model runs as written, without passes
    and plans."""

    _loaded_module: Any
    _module_name: str

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False):
        """Registers a hook called with (module, args), or (module, args, kwargs), where kwargs has the arguments with a
        default; it may return new ones."""

        def call(names, values):
            if not with_kwargs:
                found = hook(self, values)
                return found if found is None or isinstance(found, tuple) else (found,)
            found = hook(self, *_bound(names, values))
            if found is not None and not (isinstance(found, tuple) and len(found) == 2):
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {found}.")
            return None if found is None else _unbound(names, *found)

        return self._loaded_module.add_forward_pre_hook(self._module_name, call, prepend)

    def register_forward_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False):
        """Registers a hook called with (module, args, output), or (module, args, kwargs, output); it may return another
        output."""

        def call(names, values, result):
            found = hook(self, *_bound(names, values), result) if with_kwargs else hook(self, values, result)
            return None if found is None else (found,)

        return self._loaded_module.add_forward_hook(self._module_name, call, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False):
        """Registers a hook called with (module, grad_input, grad_output); it may return another grad_input. Requires a
        model loaded with trainable=True."""
        return self._loaded_module.add_full_backward_hook(self._module_name, lambda *grads: _gradients(hook(self, *grads)), prepend)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False):
        """Registers a hook called with (module, grad_output) before the module's own backward; it may return another
        grad_output."""
        return self._loaded_module.add_full_backward_pre_hook(self._module_name, lambda *grads: _gradients(hook(self, *grads)), prepend)

    def named_modules(self) -> list:
        prefix = self._module_name + "." if self._module_name else ""
        found = [(name, kind) for name, kind in self._loaded_module.named_modules() if name == self._module_name or name.startswith(prefix)]
        return [(name[len(prefix):], self if name == self._module_name else Submodule(self._loaded_module, name, kind)) for name, kind in found]

    def modules(self) -> list:
        return [module for _, module in self.named_modules()]

    def get_submodule(self, target: str):
        for name, module in self.named_modules():
            if name == target:
                return module
        raise AttributeError(f"there is no module '{target}'")


def _gradients(found):
    return found if found is None or isinstance(found, tuple) else (found,)


class Submodule(_Hooked):
    """A submodule of a loaded model, by name: for hooks and inspection."""

    def __init__(self, loaded, name: str, kind: str):
        self._loaded_module, self._module_name, self._kind = loaded, name, kind

    def __getattr__(self, name: str):
        known = {} if name.startswith("_") else {**dict(self.named_modules()), **dict(self.named_parameters())}
        if name not in known:
            raise AttributeError(f"{self.original_name} has no module or parameter '{name}'")
        return known[name]

    @property
    def original_name(self) -> str:
        return self._kind.rsplit(".", 1)[-1]

    def named_parameters(self) -> list:
        prefix = self._module_name + "."
        return [(name[len(prefix):], tensor) for name, tensor in self._loaded_module.named_parameters() if name.startswith(prefix)]

    def parameters(self) -> list:
        return [tensor for _, tensor in self.named_parameters()]

    def __repr__(self):
        return f"Submodule({self._module_name}: {self.original_name})"


class ScriptModule(_Hooked):
    """A model from a file: call it, or its other methods by name. Thread-safe."""

    _module_name = ""

    def __init__(self, loaded, path: str):
        self._loaded_module = loaded
        self._path = path

    def __call__(self, *args, **kwargs):
        return self._loaded_module.call("forward", *args, **kwargs)

    def forward(self, *args, **kwargs):
        return self._loaded_module.call("forward", *args, **kwargs)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._loaded_module.method_names():
            for known, kind in self._loaded_module.named_modules():
                if known == name:
                    return Submodule(self._loaded_module, name, kind)
            raise AttributeError(f"{self.original_name} has no method '{name}'; it has {', '.join(self._loaded_module.method_names())}")
        return lambda *args, **kwargs: self._loaded_module.call(name, *args, **kwargs)

    @property
    def original_name(self) -> str:
        return self._loaded_module.class_name().rsplit(".", 1)[-1]

    @property
    def training(self) -> bool:
        return self._loaded_module.is_training()

    def train(self, mode: bool = True) -> "ScriptModule":
        """Sets the mode of all submodules. Requires a model loaded with `trainable=True`."""
        if mode != self.training:
            self._loaded_module.set_training(mode)
        return self

    def eval(self) -> "ScriptModule":
        return self.train(False)

    def named_parameters(self) -> list:
        return self._loaded_module.named_parameters()

    def parameters(self) -> list:
        return [tensor for _, tensor in self.named_parameters()]

    def named_buffers(self) -> list:
        return self._loaded_module.named_buffers()

    def buffers(self) -> list:
        return [tensor for _, tensor in self.named_buffers()]

    def state_dict(self) -> dict:
        """The model's own tensors by name. Read-only unless the model was loaded with `trainable=True`, because weights
        of other models are packed; arrays over them are read-only too."""
        return {name: tensor.detach() for name, tensor in [*self.named_parameters(), *self.named_buffers()]}

    def load_state_dict(self, state: dict, strict: bool = True) -> None:
        """Copies into the model's tensors. Requires a model loaded with `trainable=True`, because weights of other
        models are packed."""
        if not self._loaded_module.is_trainable():
            raise _engine.FailedPreconditionError("load_state_dict: load the model with trainable=True to change its weights")
        own = self.state_dict()
        missing, unexpected = [n for n in own if n not in state], [n for n in state if n not in own]
        if strict and (missing or unexpected):
            raise KeyError(f"load_state_dict: missing {missing}, unexpected {unexpected}")
        for name, tensor in own.items():
            if name in state and tuple(state[name].shape) != tuple(tensor.shape):
                raise ValueError(f"load_state_dict: {name} has shape {list(tensor.shape)}, the state's {list(state[name].shape)}")
        for name, tensor in own.items():
            if name in state:
                tensor.copy_(state[name])

    def requires_grad_(self, requires_grad: bool = True) -> "ScriptModule":
        for tensor in self.parameters():
            tensor.requires_grad_(requires_grad)
        return self

    def zero_grad(self) -> None:
        for tensor in self.parameters():
            tensor.grad = None

    @property
    def graph(self) -> "Graph":
        return Graph(self._loaded_module, "forward")

    def graph_for(self, method: str) -> "Graph":
        return Graph(self._loaded_module, method)

    @property
    def format(self) -> str:
        """Triton's name of the format: "pytorch_libtorch", "onnxruntime_onnx" …"""
        return self._loaded_module.platform()

    def schema(self, method: str = "forward") -> str:
        return self._loaded_module.schema(method)

    def to(self, device) -> "ScriptModule":
        if str(_engine.device(device) if isinstance(device, str) else device) != "cpu":
            raise _engine.UnimplementedError(f"to: a loaded model cannot be moved to {device}")
        return self

    def save(self, path) -> None:
        """Writes an archive in the model's original format with the current values of its tensors."""
        self._loaded_module.save(os.fspath(path))

    def __repr__(self):
        return f"ScriptModule({self.original_name}, methods: {', '.join(self._loaded_module.method_names())})"


class Graph:
    """A method's graph after the passes: text with str(), Graphviz with `dot`, an image in notebooks if dot is
    installed."""

    def __init__(self, loaded, method: str):
        self._loaded, self._method = loaded, method

    def __str__(self):
        return self._loaded.graph(self._method)

    __repr__ = __str__

    @property
    def dot(self) -> str:
        return self._loaded.graph_dot(self._method)

    def _repr_svg_(self):
        import shutil
        import subprocess

        if not shutil.which("dot"):
            return None
        return subprocess.run(["dot", "-Tsvg"], input=self.dot, capture_output=True, text=True, check=True).stdout


def load(path, *, trainable: bool = False, optimize: bool = True) -> ScriptModule:
    """Like engine.load, for models only."""
    path = os.fspath(path)
    with open(path, "rb"):
        pass
    return ScriptModule(_engine._load_module(path, trainable, optimize), path)


def save(module: ScriptModule, path) -> None:
    module.save(path)


def trace(function, example_inputs, *, check_trace: bool = True, rtol: float = 1e-5, atol: float = 1e-5) -> ScriptModule:
    """Makes a model of the operators that `function` (or a Module) calls for these inputs: see
    tensord.engine._tracing."""
    from tensord.engine._tracing import trace_function

    return trace_function(function, example_inputs, check_trace, rtol, atol)


def script(function_or_module) -> ScriptModule:
    """Compiles a function or Module from its Python source, including control flow: see tensord.engine._scripting."""
    from tensord.engine._scripting import script_object

    return script_object(function_or_module)


class TracerWarning(UserWarning):
    """The traced function reads elements of tensors; the trace keeps their values as constants."""
