"""The engine in Python: tensors, operators, autograd, modules and models, under PyTorch's names.

    from tensord import engine

    x = engine.randn(3, 4, requires_grad=True)
    (x @ x.T).sum().backward()
    print(x.grad)

Every operator of the engine is a function here and, if its first argument is a tensor, a method. `engine.ops.aten` has
them by overload. docs/engine.md lists the differences from PyTorch.
"""

import builtins as _builtins
import os as _os

# OpenMP's idle threads spin for milliseconds by default, which takes CPU time from other libraries' threads (PyTorch
# has its own thread pool). OpenMP reads the variable when it is loaded; child processes do not inherit it.
_spins = not ({"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & _os.environ.keys())
if _spins:
    _os.environ["GOMP_SPINCOUNT"] = "1000"
from tensord.engine import _engine  # noqa: E402

if _spins:
    del _os.environ["GOMP_SPINCOUNT"]
from tensord.engine._engine import *  # noqa: F403
from tensord.engine._engine import (
    AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error, FailedPreconditionError, Generator,
    InternalError, InvalidArgumentError, NotFoundError, OutOfRangeError, ResourceExhaustedError, ScriptError, Size, Tensor,
    UnavailableError, UnimplementedError, default_generator, device, dtype, layout, memory_format,
)
from tensord.engine import _python_methods, _operator_module, _aliases, _shared, _tensor_methods
from tensord.engine._autocast import autocast, get_autocast_cpu_dtype, get_autocast_gpu_dtype, is_autocast_cpu_enabled, is_autocast_enabled
from tensord.engine._dtype_info import finfo, iinfo
from tensord.engine._functions import *  # noqa: F403
from tensord.engine._functions import __all__ as _functions
from tensord.engine._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tensord.engine._printing import set_printoptions
from tensord.engine._operators import ops
from tensord.engine.files import load, save

__version__ = "0.1.0"

_tensor_methods.install(Tensor)
_shared.install()
# Imported on first use, so that `import tensord.engine` stays fast.
_SUBMODULES = ("array_api", "autograd", "backends", "cuda", "data", "distributed", "fft", "func", "jit", "linalg", "nested", "nn", "optim", "special", "utils")


def __getattr__(name: str):
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"tensord.engine.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("plan_step", "PlannedStep"):
        from tensord.engine import _planned_step

        return getattr(_planned_step, name)
    if name in ("serve", "Server"):
        from tensord.engine import _serving

        return getattr(_serving, name)
    try:
        found = _engine._operator("aten::" + name)
    except AttributeError:
        raise AttributeError(f"module 'tensord.engine' has no attribute '{name}'") from None
    if not hasattr(_builtins, name):  # aten::sorted would hide sorted() in this file
        globals()[name] = found
    return found


def __dir__():
    names = {name.removeprefix("aten::") for name in _engine._operator_names() if name.startswith("aten::")}
    return sorted({*globals(), *_SUBMODULES, *_aliases.NAMES, *(name for name in names if not name.startswith("_"))})
