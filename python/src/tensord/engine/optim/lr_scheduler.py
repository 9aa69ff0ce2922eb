"""Learning-rate schedules: call step() after the optimizer's. Native ones are here; _schedules.py has the others."""

from __future__ import annotations

from tensord.engine._engine import _schedules
from tensord.engine.optim._base import Optimizer
from tensord.engine.optim._schedules import (
    ChainedScheduler, CyclicLR, LambdaLR, LRScheduler, MultiplicativeLR, SequentialLR, check_optimizer, check_resumed, rates_of, set_rates,
)

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]


class _OfCore:
    """The common part of native schedules."""

    def get_last_lr(self) -> list:
        return list(self._native.get_last_lr())

    def state_dict(self) -> dict:
        return self._native.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._native.load_state_dict(state)


class _Native(_OfCore, LRScheduler):
    """A native schedule."""

    def __init__(self, kind: str, optimizer: Optimizer, last_epoch: int, *args):
        check_optimizer(optimizer)
        if last_epoch != -1:
            check_resumed(optimizer)
        self.optimizer = optimizer
        rates = rates_of(optimizer)
        self._native = getattr(_schedules, kind)(optimizer._optimizer, *args)
        self._begin = self._native.state_dict()
        if last_epoch != -1:
            set_rates(optimizer, rates)
            self._native.load_state_dict({**self._begin, "last_epoch": last_epoch, "_step_count": 0, "T_cur": last_epoch})
            self._native.step()

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


class StepLR(_Native):
    """Multiplies by gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        super().__init__("StepLR", optimizer, last_epoch, step_size, gamma)


class MultiStepLR(_Native):
    """Multiplies by gamma at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1):
        super().__init__("MultiStepLR", optimizer, last_epoch, list(milestones), gamma)


class ExponentialLR(_Native):
    """Multiplies by gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        super().__init__("ExponentialLR", optimizer, last_epoch, gamma)


class ConstantLR(_Native):
    """Multiplies by factor until total_iters."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        super().__init__("ConstantLR", optimizer, last_epoch, factor, total_iters)


class LinearLR(_Native):
    """Changes the factor linearly from start_factor to end_factor: a warm-up."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1):
        super().__init__("LinearLR", optimizer, last_epoch, start_factor, end_factor, total_iters)


class PolynomialLR(_Native):
    """Decays with a power of the remaining share of total_iters."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        super().__init__("PolynomialLR", optimizer, last_epoch, total_iters, power)


class CosineAnnealingLR(_Native):
    """Follows half a cosine down to eta_min in T_max epochs, and back."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        super().__init__("CosineAnnealingLR", optimizer, last_epoch, T_max, eta_min)


class CosineAnnealingWarmRestarts(_Native):
    """Does the same with restarts after T_0, T_0 * T_mult, ... epochs."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        super().__init__("CosineAnnealingWarmRestarts", optimizer, last_epoch, T_0, T_mult, eta_min)


class OneCycleLR(_Native):
    """One rise and fall over a known number of steps."""

    def __init__(self, optimizer: Optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
                 max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1):
        rates = [float(rate) for rate in max_lr] if isinstance(max_lr, (list, tuple)) else [float(max_lr)]
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        super().__init__("OneCycleLR", optimizer, last_epoch, rates, total_steps or 0, epochs or 0, steps_per_epoch or 0, pct_start,
                         anneal_strategy == "linear", cycle_momentum, base_momentum, max_momentum, div_factor, final_div_factor, three_phase)


class ReduceLROnPlateau(_OfCore):
    """Lowers the rate when a metric, given to step(), has stopped improving."""

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
