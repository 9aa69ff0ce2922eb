"""ScriptModule: a loaded model that is called as a Module is, with its submodules, hooks and graphs."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from tensord.engine import _engine


def _bound(names, values: tuple):
    """(args, kwargs): arguments that have a default by name. A script's calls do not say which were named."""
    return (tuple(value for (_, has_default), value in zip(names, values) if not has_default),
            {name: value for (name, has_default), value in zip(names, values) if has_default})


def _unbound(names, args: tuple, kwargs: dict) -> tuple:
    """What a hook that takes both gave, by position."""
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
    """Hooks of a loaded module, as nn.Module has them. While there is one the model runs as it is written, without passes and plans."""

    _loaded_module: Any
    _module_name: str

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False):
        """Called with (module, args), or (module, args, kwargs), where kwargs has the arguments with a default; may give new ones."""

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
        """Called with (module, args, output), or (module, args, kwargs, output); may give another output."""

        def call(names, values, result):
            found = hook(self, *_bound(names, values), result) if with_kwargs else hook(self, values, result)
            return None if found is None else (found,)

        return self._loaded_module.add_forward_hook(self._module_name, call, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False):
        """Called with (module, grad_input, grad_output); may give another grad_input. For a model loaded with trainable=True."""
        return self._loaded_module.add_full_backward_hook(self._module_name, lambda *grads: _gradients(hook(self, *grads)), prepend)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False):
        """Called with (module, grad_output) before the module's own backward; may give another one."""
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
    """A module inside of a loaded model, by its name: for hooks and to look at."""

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
    """A model from a file: call it, or its other methods by name. Threads may call it side by side."""

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
        """Sets the mode of all modules inside. Only for a model loaded with `trainable=True`."""
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
        """The tensors by name; they are the model's own. Not to be written unless it was loaded with `trainable=True`: others have
        weights packed away, so their tensors, and arrays over them, are read-only."""
        return {name: tensor.detach() for name, tensor in [*self.named_parameters(), *self.named_buffers()]}

    def load_state_dict(self, state: dict, strict: bool = True) -> None:
        """Copies into the model's tensors. Only for a model loaded with `trainable=True`: others have weights packed away."""
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
        """As Triton calls it: "pytorch_libtorch", "onnxruntime_onnx" …"""
        return self._loaded_module.platform()

    def schema(self, method: str = "forward") -> str:
        return self._loaded_module.schema(method)

    def to(self, device) -> "ScriptModule":
        if str(_engine.device(device) if isinstance(device, str) else device) != "cpu":
            raise _engine.UnimplementedError(f"to: a loaded model cannot be moved to {device}")
        return self

    def save(self, path) -> None:
        """Writes an archive of the format that the model came in, with its tensors as they are now."""
        self._loaded_module.save(os.fspath(path))

    def __repr__(self):
        return f"ScriptModule({self.original_name}, methods: {', '.join(self._loaded_module.method_names())})"


class Graph:
    """A method's graph after the passes: printed by str(), as Graphviz source by `dot`, as SVG in notebooks if dot is installed."""

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


def load_module(path: str, is_trainable: bool, is_optimized: bool) -> ScriptModule:
    return ScriptModule(_engine._load_module(path, is_trainable, is_optimized), path)


def load_written(write) -> ScriptModule:
    """Loads the archive that `write(path)` writes. The file is deleted afterwards; its memory stays mapped."""
    with tempfile.TemporaryDirectory(prefix="tensord-") as folder:
        path = os.path.join(folder, "model.pt")
        write(path)
        return load_module(path, True, True)
