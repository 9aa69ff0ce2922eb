"""engine.plan_step: a training step, loss and gradients, that is planned when it repeats, as served models are.

The operators of a step are recorded, and a planned step runs them without Python. So a plan is valid for one
state of all that the loss depends on besides tensors' elements. This file finds that state: modules, tensors and plain values by what the function
names (closure, globals, defaults, `self`), and looks at it before each step.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import numbers
import types
from typing import Any, Callable

from tensord.engine import _engine, jit, nn
from tensord.engine._engine import Tensor

__all__ = ["PlannedStep", "plan_step"]

_PLAIN = frozenset((int, float, bool, str, bytes, complex, type(None), _engine.dtype, _engine.device))
# Maximum number of states (of modules and arguments) with a plan.
_MOST_PLANS = 8


class _Dependencies:
    """The current state that a step depends on: `state` compares equal as long as no plain value, tensor or object is replaced."""

    def __init__(self):
        self.state: list = []
        self.tensors: list = []
        self.unsupported_reason = ""
        self._seen: dict = {}  # keyed by identity; keeps alive what `state` contains by identity
        self._known: set = set()

    def visit(self, value) -> None:
        kind = type(value)
        if kind in _PLAIN:
            # 1, 1.0 and True are equal, but different arguments of an operator.
            self.state.append((kind, value))
        elif isinstance(value, Tensor):
            self._visit_tensor(value)
        elif isinstance(value, numbers.Number):  # of NumPy
            self.state.append((kind, value))
        else:
            identity = id(value)
            is_container = kind in _CONTAINERS
            self.state.append((kind, len(value)) if is_container else identity)
            if identity not in self._seen:
                self._seen[identity] = value
                self._visit_container(value) if is_container else self._visit_object(value)

    def _visit_container(self, value) -> None:
        for item in value:
            self.visit(item)
        if isinstance(value, dict):
            for item in value.values():
                self.visit(item)

    def _visit_tensor(self, tensor) -> None:
        # A tensor's hash is its identity.
        identity = hash(tensor)
        self.state.append(identity)
        if identity not in self._known:
            self._known.add(identity)
            self.tensors.append(tensor)

    def _visit_object(self, value) -> None:
        if isinstance(value, nn.Module):
            self._visit_module(value)
        elif isinstance(value, (jit.ScriptModule, jit.Submodule)):
            self.visit(value._loaded_module)
        elif isinstance(value, _engine._LoadedModule):
            self._visit_loaded(value)
        elif isinstance(value, functools.partial):
            self.visit([value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            self.visit(value.__func__)
            self.visit(value.__self__)
            if not isinstance(value.__self__, nn.Module) and hasattr(value.__self__, "__dict__"):
                self._visit_fields(value.__self__)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.SimpleNamespace) or dataclasses.is_dataclass(value) or type(value).__module__ == "argparse":
            self._visit_fields(value)

    def _visit_fields(self, value) -> None:
        for name, item in vars(value).items():
            self.state.append(name)
            self.visit(item)
        for function in _functions_of(type(value)):
            self.visit(function)

    def _visit_module(self, module) -> None:
        if module._forward_pre_hooks or module._forward_hooks or module._backward_hooks:
            self.unsupported_reason = "modules have hooks"
        for name, value in vars(module).items():
            if name in _OF_EVERY_MODULE:
                continue
            self.state.append(name)
            if type(value) in _PLAIN:
                self.state.append((type(value), value))
            else:
                self.visit(value)
        for table in (module._parameters, module._buffers, module._modules):
            for name, value in table.items():
                self.state.append(name)
                self.visit(value)
        for function in _functions_of(type(module)):
            self.visit(function)

    def _visit_loaded(self, loaded) -> None:
        self.state.append(loaded.is_training())
        if not loaded.is_trainable():
            self.unsupported_reason = "a model was not loaded with trainable=True"
        elif loaded.has_hooks():
            self.unsupported_reason = "modules have hooks"
        for _, tensor in loaded.named_tensors():
            self._visit_tensor(tensor)

    def _visit_function(self, function) -> None:
        if (function.__module__ or "").startswith("tensord."):
            return
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self.visit(content)
        self.visit(function.__defaults__)
        self.visit(function.__kwdefaults__)
        outer = function.__globals__
        for name in _names_of(function.__code__):
            if name in outer:
                self.visit(outer[name])


_OF_EVERY_MODULE = frozenset(("_parameters", "_buffers", "_modules", "_non_persistent", "_forward_pre_hooks", "_forward_hooks", "_backward_hooks"))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))


_names: dict = {}  # keyed by the identity of code objects, whose hash is slow: the code and its names


def _names_of(code) -> tuple:
    """Names of the globals that the code and its nested functions read."""
    if id(code) not in _names:
        if len(_names) > 4096:
            _names.clear()
        _names[id(code)] = code, _read_names(code)
    return _names[id(code)][1]


def _read_names(code) -> tuple:
    names = [item.argval for item in dis.get_instructions(code) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    names += [name for const in code.co_consts if isinstance(const, types.CodeType) for name in _read_names(const)]
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=1024)
def _functions_of(kind: type) -> tuple:
    """The functions that user-defined classes among the bases define."""
    own = [base for base in kind.__mro__ if base is not object and not base.__module__.startswith("tensord.")]
    return tuple(item for base in own for name, item in vars(base).items() if isinstance(item, types.FunctionType) and name != "__init__")


class PlannedStep:
    """Returned by plan_step; call it with a batch."""

    def __init__(self, loss: Callable[..., Tensor], extra: tuple = (), mode: str = "exact"):
        if mode not in ("exact", "fused"):
            raise ValueError(f"plan_step: mode must be 'exact' or 'fused', got {mode!r}")
        if not callable(loss):
            raise TypeError(f"plan_step: expected a function that gives the loss, got {type(loss).__name__}")
        self._loss, self._extra, self._mode = loss, extra, mode
        self._steps: dict = {}  # by state: the native step, and references to the state's tensors and objects
        self._alone: Any = _engine._PlannedStep([], True)  # for steps that are always interpreted
        self._last: Any = None
        self._unsupported_reason = ""

    def __call__(self, *args, **kwargs) -> Tensor:
        """Leaves the gradients in the parameters' `grad` and returns the detached loss."""
        batch: list = []
        dependencies, key = self._look(args, kwargs, batch)
        unsupported_reason = self._unsupported_reason or dependencies.unsupported_reason
        if any(tensor.requires_grad for tensor in batch):
            unsupported_reason = unsupported_reason or "the batch requires a gradient"
        step = self._step_for(key, dependencies) if not unsupported_reason else self._alone
        if step is self._alone and not unsupported_reason:
            unsupported_reason = "there were too many states of modules and arguments"
        self._last = step
        before = step.interpreted
        loss = step.run(batch, lambda: self._loss(*args, **kwargs), unsupported_reason)
        if step.interpreted != before and not self._unsupported_reason and self._look(args, kwargs, [])[1] != key:
            self._unsupported_reason = "the function changes attributes, tensors or variables that it depends on"
        return loss

    def _look(self, args, kwargs, batch: list):
        dependencies = _Dependencies()
        dependencies.visit(self._loss)
        for value in self._extra:
            dependencies.visit(value)
        fixed: list = [id(self._loss)]
        for name, value in [*enumerate(args), *kwargs.items()]:
            fixed.append(name)
            _flatten(value, batch, fixed)
        return dependencies, (tuple(dependencies.state), tuple(fixed), _engine.get_default_dtype())

    def _step_for(self, key, dependencies):
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= _MOST_PLANS:
                return self._alone
            found = _engine._PlannedStep(dependencies.tensors, self._mode == "exact"), dependencies
            self._steps[key] = found
        return found[0]

    def forget(self) -> None:
        """Drops all plans. Call after a change that the step cannot see (see plan_step)."""
        self._steps.clear()
        self._unsupported_reason = ""

    @property
    def why(self) -> str:
        """Why the last step was not planned; `""` if it was."""
        return self._last.report["reason"] if self._last is not None else "no step was made"

    @property
    def is_planned(self) -> bool:
        """Whether the last step was planned."""
        return self._last is not None and self._last.report["is_planned"]

    @property
    def stats(self) -> dict:
        """Numbers of `planned` and `interpreted` steps, and of the latter those `checked` (run both ways) and
        `identical` (bit-identical); for the last plan its `calls`, its `arena_bytes`, whether it `is_fused`, and the
        largest `error` of a check, relative to a tensor's largest element."""
        steps = [self._alone.report, *(step.report for step, _ in self._steps.values())]
        out = {name: sum(report[name] for report in steps) for name in ("planned", "interpreted", "checked", "identical")}
        last = self._last.report if self._last is not None else self._alone.report
        out.update({name: last[name] for name in ("calls", "arena_bytes", "is_fused")})
        out["error"] = max(report["error"] for report in steps)
        return out

    def __repr__(self):
        counts = self.stats
        why = f", why={self.why!r}" if self.why else ""
        return f"PlannedStep(mode={self._mode!r}, planned={counts['planned']}, interpreted={counts['interpreted']}{why})"


def _flatten(value, batch: list, fixed: list) -> None:
    """Splits an argument: tensors go to `batch`, everything else to `fixed`."""
    if isinstance(value, Tensor):
        fixed.append(Tensor)
        batch.append(value)
    elif type(value) in _PLAIN:
        fixed.append((type(value), value))
    elif isinstance(value, (list, tuple)):
        fixed.append((type(value), len(value)))
        for item in value:
            _flatten(item, batch, fixed)
    elif isinstance(value, dict):
        fixed.append((type(value), len(value)))
        for name, item in value.items():
            fixed.append(name)
            _flatten(item, batch, fixed)
    else:
        raise TypeError(f"plan_step: a batch is of tensors, numbers and strings, and of lists, tuples and dicts of them; got {type(value).__name__}")


def plan_step(loss: Callable[..., Tensor], *also: Any, mode: str = "exact") -> PlannedStep:
    """A training step that is planned when it repeats. `loss(*batch)` gives the scalar loss; the step computes it and leaves the gradients
    in the parameters, as `loss(*batch).backward()` does, and gives the loss, detached:

        step = engine.plan_step(lambda x, y: nn.functional.cross_entropy(model(x), y))
        for x, y in loader:
            optimizer.zero_grad()
            loss = step(x, y)
            optimizer.step()

    The first two steps of each shape are interpreted and recorded, the next one runs both ways, and the plan is used if
    both agree. Steps 2, 4, 8 … after that are checked again; a difference raises InternalError. mode="exact" gives the
    same bits as interpretation. mode="fused" is faster and gives the same results within rounding. A step that cannot
    be planned is interpreted; `step.why` has the reason.

    The function is not called in planned steps. A plan is good for one state of the modules, tensors and plain values (numbers, strings, lists of
    them) that the function names by its closure, globals, defaults or `self`, and of `also` (modules and tensors that it reaches another way):
    after a change, to `eval()` say, steps are recorded anew. What else it may depend on or do (files, clocks, random numbers of Python, prints,
    attributes of other objects) is not seen. One thread at a time.
    """
    return PlannedStep(loss, also, mode)
