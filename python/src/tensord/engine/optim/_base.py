"""Optimizer: groups of parameters with options, and state per parameter."""

from __future__ import annotations

import collections
import collections.abc

from tensord.engine import _engine
from tensord.engine._grad_mode import enable_grad, no_grad


class ParamGroup(collections.abc.MutableMapping):
    """A group's options, which may be changed between steps, and its parameters."""

    def __init__(self, optimizer, index: int, params):
        self._optimizer, self._index, self._params = optimizer, index, params

    def __getitem__(self, name):
        return self._params if name == "params" else self._optimizer.options(self._index)[name]

    def __setitem__(self, name, value):
        if name == "params":
            raise TypeError("parameters are added by add_param_group")
        if name not in self._optimizer.options(self._index):
            raise KeyError(name)
        self._optimizer.set_option(self._index, name, value)

    def __delitem__(self, name):
        raise TypeError("a group's options cannot be deleted")

    def __iter__(self):
        return iter(["params", *self._optimizer.options(self._index)])

    def __len__(self):
        return 1 + len(self._optimizer.options(self._index))

    def __repr__(self):
        return repr({name: value for name, value in self.items() if name != "params"})


def read_group(given) -> tuple:
    if not isinstance(given, dict):
        raise TypeError(f"optimizer: a group is a dict, not {type(given).__name__}")
    params = given["params"]
    params = [params] if isinstance(params, _engine.Tensor) else list(params)
    return params, {name: value for name, value in given.items() if name != "params"}


def read_groups(kind: str, params) -> list:
    given = [params] if isinstance(params, _engine.Tensor) else list(params)
    if not given:
        raise ValueError(f"{kind}: got an empty list of parameters")
    return [read_group(item) for item in given] if isinstance(given[0], dict) else [(given, {})]


class _Options:
    """The options of an optimizer written in Python. Those that native schedules set are stored in a native optimizer
    over the same parameters, which also checks groups and clears gradients but makes no steps."""

    def __init__(self, groups, defaults: dict):
        self._defaults = dict(defaults)
        kind = "adam" if "betas" in defaults else "sgd" if "momentum" in defaults else "adagrad"
        self._shared = {"lr", "betas" if kind == "adam" else "momentum"} & defaults.keys()
        self._own: list[dict] = []
        self.native = _engine._make_optimizer(kind, [self._split(group) for group in groups], {})

    def _native_part(self, options: dict) -> dict:
        return {name: tuple(value) if name == "betas" else value for name, value in options.items() if name in self._shared}

    def _split(self, group) -> tuple:
        params, options = group
        options = {**self._defaults, **options}
        self._own.append(options)
        return params, self._native_part(options)

    def add(self, group) -> None:
        count = len(self._own)
        try:
            self.native.add_param_group(self._split(group))
        except Exception:
            del self._own[count:]
            raise

    def options(self, index: int) -> dict:
        native = self.native.options(index)
        found = {name: native[name] if name in self._shared else value for name, value in self._own[index].items()}
        if "initial_lr" in native:
            found["initial_lr"] = native["initial_lr"]
        return found

    def set_option(self, index: int, name: str, value) -> None:
        if name in self._shared or name == "initial_lr":
            self.native.set_option(index, name, value)
        else:
            self._own[index][name] = value


class _OpenGroup(ParamGroup):
    """A group that accepts new options."""

    def __setitem__(self, name, value):
        if name == "params":
            raise TypeError("parameters are added by add_param_group")
        self._optimizer.set_option(self._index, name, value)


class Optimizer:
    """Base class. For a custom optimizer, pass the parameters and the default options, and define step() over
    `param_groups`, with per-parameter state in `state`."""

    def __init__(self, params, defaults: dict):
        groups = read_groups(type(self).__name__, params)
        self.defaults = dict(defaults)
        self._options = _Options(groups, self.defaults)
        self._optimizer = self._options.native
        self._params = [params for params, _ in groups]
        self.state: dict = collections.defaultdict(dict)

    @property
    def param_groups(self) -> list:
        return [_OpenGroup(self._options, i, params) for i, params in enumerate(self._params)]

    def add_param_group(self, group) -> None:
        params, options = read_group(group)
        self._options.add((params, options))
        self._params.append(params)

    def step(self, closure=None):
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def _loss(self, closure):
        """The result of a closure that recomputes the loss and its gradients."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def use_master_weights(self) -> None:
        raise NotImplementedError(f"{type(self).__name__}: master weights are for the optimizers of the core: SGD, Adam, AdamW, RMSprop, Adagrad")

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict:
        """In PyTorch's form. The tensors are the optimizer's own: save them before the next step."""
        indices = {id(param): i for i, param in enumerate(param for params in self._params for param in params)}
        groups = [{**self._options.options(i), "params": [indices[id(param)] for param in params]} for i, params in enumerate(self._params)]
        return {"state": {indices[id(param)]: dict(kept) for param, kept in self.state.items()}, "param_groups": groups}

    @no_grad()
    def load_state_dict(self, state: dict) -> None:
        saved = state["param_groups"]
        if [len(group["params"]) for group in saved] != [len(params) for params in self._params]:
            raise ValueError(f"{type(self).__name__}: the state is of {len(saved)} groups of {[len(group['params']) for group in saved]} parameters, "
                             f"but there are {[len(params) for params in self._params]}")
        params = {number: param for group, params in zip(saved, self._params) for number, param in zip(group["params"], params)}
        loaded = collections.defaultdict(dict)
        for number, kept in state["state"].items():
            if number in params:
                loaded[params[number]] = {name: self._loaded(name, value, params[number]) for name, value in kept.items()}
        for index, group in enumerate(saved):
            for name, value in group.items():
                if name != "params":
                    self._options.set_option(index, name, value)
        self.state = loaded

    def _loaded(self, name: str, value, param):
        """A copy of a saved tensor, converted to the parameter's dtype and device if it has the same size."""
        if not isinstance(value, _engine.Tensor):
            return value
        if name != "step" and tuple(value.shape) == tuple(param.shape):
            value = value.to(param.device)
            value = value.to(param.dtype) if param.dtype.is_floating_point else value
        return value.detach().clone()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.param_groups))})"
