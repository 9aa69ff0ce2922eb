"""Schedules of learning rates: call step() after the optimiser's. Those of the core are here, _schedules.py has the others."""

from __future__ import annotations

from tensord.engine._engine import _schedules
from tensord.engine.optim._base import Optimizer
from tensord.engine.optim._schedules import ChainedScheduler, CyclicLR, LRScheduler, MultiplicativeLR, SequentialLR, check_optimizer, set_rates

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]


class _Native(LRScheduler):
    """A schedule of the core."""

    _kind = ""

    def __init__(self, optimizer: Optimizer, *args, **kwargs):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self._native = getattr(_schedules, self._kind)(optimizer._optimizer, *args, **kwargs)
        self._begin = self._native.state_dict()

    @property
    def last_epoch(self) -> int:
        return self._native.last_epoch

    @property
    def base_lrs(self) -> list:
        return list(self._native.state_dict()["base_lrs"])

    def step(self) -> None:
        self._native.step()

    def _restart(self) -> None:
        set_rates(self.optimizer, self.base_lrs)
        self._native.load_state_dict({**self._begin, "base_lrs": self.base_lrs, "last_epoch": -1})
        self._native.step()

    def _undo(self) -> None:
        self._native.load_state_dict({**self._native.state_dict(), "last_epoch": self.last_epoch - 1})

    def get_last_lr(self) -> list:
        return list(self._native.get_last_lr())

    def state_dict(self) -> dict:
        return self._native.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._native.load_state_dict(state)


def _native(name: str):
    return type(name, (_Native,), {"_kind": name, "__doc__": f"torch.optim.lr_scheduler.{name}, with the same numbers.", "__module__": __name__})


StepLR = _native("StepLR")
MultiStepLR = _native("MultiStepLR")
ExponentialLR = _native("ExponentialLR")
ConstantLR = _native("ConstantLR")
LinearLR = _native("LinearLR")
PolynomialLR = _native("PolynomialLR")
CosineAnnealingLR = _native("CosineAnnealingLR")
CosineAnnealingWarmRestarts = _native("CosineAnnealingWarmRestarts")


class LambdaLR(_Native):
    """The first rates times what `lr_lambda` gives for the epoch; one function, or a list of one for each group."""

    _kind = "LambdaLR"

    def __init__(self, optimizer: Optimizer, lr_lambda):
        if isinstance(lr_lambda, (list, tuple)):
            raise NotImplementedError("LambdaLR: lr_lambda: lists of functions are not there")
        super().__init__(optimizer, lr_lambda)


class OneCycleLR(_Native):
    _kind = "OneCycleLR"

    def __init__(self, optimizer: Optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
                 max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False):
        rates = [float(rate) for rate in max_lr] if isinstance(max_lr, (list, tuple)) else [float(max_lr)]
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        super().__init__(optimizer, rates, total_steps or 0, epochs or 0, steps_per_epoch or 0, pct_start, anneal_strategy == "linear",
                         cycle_momentum, base_momentum, max_momentum, div_factor, final_div_factor, three_phase)


class ReduceLROnPlateau:
    """Lower rates when a metric, which step() takes, has stopped to get better."""

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0, eps: float = 1e-8):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode!r} or threshold_mode {threshold_mode!r} is not known")
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self._native = _schedules.ReduceLROnPlateau(optimizer._optimizer, mode == "max", factor, patience, threshold, threshold_mode == "rel",
                                                    cooldown, min_lr, eps)

    def step(self, metrics) -> None:
        self._native.step(float(metrics))

    def get_last_lr(self) -> list:
        return list(self._native.get_last_lr())

    def state_dict(self) -> dict:
        return self._native.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._native.load_state_dict(state)
