"""Loaded models as something to call."""

from __future__ import annotations

import os

from tensord.engine import _engine

__all__ = ["ScriptModule", "TracerWarning", "load", "save", "script", "trace"]


class ScriptModule:
    """A model from a file: call it, or its other methods by name. Threads may call it side by side."""

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
        """The tensors by name; they are the model's own."""
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
    """A method's graph after the passes: its text by str(), Graphviz by `dot`, a picture in notebooks where dot is installed."""

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
    """As engine.load, for models alone."""
    path = os.fspath(path)
    with open(path, "rb"):
        pass
    return ScriptModule(_engine._load_module(path, trainable, optimize), path)


def save(module: ScriptModule, path) -> None:
    module.save(path)


def trace(function, example_inputs, *, check_trace: bool = True, rtol: float = 1e-5, atol: float = 1e-5) -> ScriptModule:
    """The operators that `function` (or a Module) calls for these inputs, as a model: see tensord.engine._tracing."""
    from tensord.engine._tracing import trace_function

    return trace_function(function, example_inputs, check_trace, rtol, atol)


def script(function_or_module) -> ScriptModule:
    """A function or Module from its Python source, control flow and all: see tensord.engine._scripting."""
    from tensord.engine._scripting import script_object

    return script_object(function_or_module)


class TracerWarning(UserWarning):
    """The traced function looks at numbers inside of tensors; the trace keeps what they were."""
