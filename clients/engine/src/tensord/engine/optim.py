"""Optimisers and schedules of the engine, under PyTorch's names. One step is one operator over all tensors of a group."""

from __future__ import annotations

import collections.abc

from tensord.engine import _engine
from tensord.engine._engine import _schedules

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "SparseAdam", "lr_scheduler"]


class ParamGroup(collections.abc.MutableMapping):
    """The options of a group, which may be set between steps, and its parameters."""

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


def _group(given) -> tuple:
    if not isinstance(given, dict):
        raise TypeError(f"optimizer: a group is a dict, not {type(given).__name__}")
    params = given["params"]
    params = [params] if isinstance(params, _engine.Tensor) else list(params)
    return params, {name: value for name, value in given.items() if name != "params"}


class Optimizer:
    """Base of those below."""

    kind = ""

    def __init__(self, params, **options):
        given = [params] if isinstance(params, _engine.Tensor) else list(params)
        if not given:
            raise ValueError(f"{type(self).__name__}: got an empty list of parameters")
        groups = [_group(item) for item in given] if isinstance(given[0], dict) else [(given, {})]
        self._optimizer = _engine._make_optimizer(self.kind, groups, options)
        self._params = [group for group, _ in groups]

    @property
    def param_groups(self) -> list:
        return [ParamGroup(self._optimizer, i, params) for i, params in enumerate(self._params)]

    def add_param_group(self, group) -> None:
        params, options = _group(group)
        self._optimizer.add_param_group((params, options))
        self._params.append(params)

    def step(self, closure=None):
        """One update. With a closure, which computes the loss and its gradients again, gives the loss."""
        return self._optimizer.step(closure)

    def use_master_weights(self) -> None:
        """Before the first step: parameters of float16 and bfloat16 get a copy in float32, which steps update, with states in float32; the
        parameter is the copy, rounded. Part of the state dict as "master_param"."""
        self._optimizer.use_master_weights()

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict:
        """In PyTorch's form. The tensors are the optimiser's own: save them before the next step."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._optimizer.load_state_dict(state)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.param_groups))})"


class SGD(Optimizer):
    kind = "sgd"

    def __init__(self, params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                         maximize=maximize)


class Adam(Optimizer):
    kind = "adam"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize)


class AdamW(Optimizer):
    kind = "adamw"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize)


class RMSprop(Optimizer):
    kind = "rmsprop"

    def __init__(self, params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered,
                         maximize=maximize)


class Adagrad(Optimizer):
    kind = "adagrad"

    def __init__(self, params, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, *, maximize: bool = False):
        super().__init__(params, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                         initial_accumulator_value=initial_accumulator_value, eps=eps, maximize=maximize)


class SparseAdam(Optimizer):
    """Adam for sparse gradients alone: rows that a gradient does not have stay as they are."""

    kind = "sparseadam"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, maximize=maximize)


class LBFGS(Optimizer):
    kind = "lbfgs"

    def __init__(self, params, lr: float = 1, max_iter: int = 20, max_eval=None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn=None):
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {line_search_fn!r}")
        super().__init__(params, lr=lr, max_iter=max_iter, max_eval=max_eval if max_eval is not None else max_iter * 5 // 4,
                         tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
                         line_search_fn=line_search_fn)


def _schedule(name: str):
    native = getattr(_schedules, name)

    def make(optimizer: Optimizer, *args, **kwargs):
        return native(optimizer._optimizer, *args, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"torch.optim.lr_scheduler.{name}, with the same numbers."
    return staticmethod(make)


class lr_scheduler:  # noqa: N801: torch.optim.lr_scheduler is a module
    """Schedules of learning rates: call step() after the optimiser's."""

    StepLR = _schedule("StepLR")
    MultiStepLR = _schedule("MultiStepLR")
    ExponentialLR = _schedule("ExponentialLR")
    ConstantLR = _schedule("ConstantLR")
    LinearLR = _schedule("LinearLR")
    PolynomialLR = _schedule("PolynomialLR")
    CosineAnnealingLR = _schedule("CosineAnnealingLR")
    CosineAnnealingWarmRestarts = _schedule("CosineAnnealingWarmRestarts")
    LambdaLR = _schedule("LambdaLR")

    @staticmethod
    def OneCycleLR(optimizer: Optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start: float = 0.3,
                   anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
                   max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False):
        rates = [float(rate) for rate in max_lr] if isinstance(max_lr, (list, tuple)) else [float(max_lr)]
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        return _schedules.OneCycleLR(optimizer._optimizer, rates, total_steps or 0, epochs or 0, steps_per_epoch or 0, pct_start,
                                     anneal_strategy == "linear", cycle_momentum, base_momentum, max_momentum, div_factor,
                                     final_div_factor, three_phase)

    @staticmethod
    def ReduceLROnPlateau(optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                          threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0,
                          eps: float = 1e-8):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode!r} or threshold_mode {threshold_mode!r} is not known")
        return _schedules.ReduceLROnPlateau(optimizer._optimizer, mode == "max", factor, patience, threshold,
                                            threshold_mode == "rel", cooldown, min_lr, eps)
