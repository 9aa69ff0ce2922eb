"""The base class of schedules, and the schedules written in Python."""

from __future__ import annotations

import bisect
import math
import types

from tensord.engine.optim._base import Optimizer


def check_optimizer(optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def check_resumed(optimizer) -> None:
    for i, group in enumerate(optimizer.param_groups):
        if "initial_lr" not in group:
            raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")


def set_rates(optimizer, rates) -> None:
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate


def rates_of(optimizer) -> list:
    return [group["lr"] for group in optimizer.param_groups]


class LRScheduler:
    """Base class. Custom schedules define get_lr(), which returns the groups' rates at `last_epoch`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch != -1:
            check_resumed(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if "initial_lr" not in group:
                optimizer._optimizer.set_option(i, "initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    def get_lr(self) -> list:
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def step(self) -> None:
        self._step_count += 1
        self.last_epoch += 1
        set_rates(self.optimizer, self.get_lr())
        self._last_lr = rates_of(self.optimizer)

    def _restart(self) -> None:
        """Repeats the step to epoch 0."""
        self.last_epoch = -1
        self.step()

    def _undo(self) -> None:
        """Undoes the count of a step, but not its rates."""
        self.last_epoch -= 1

    def get_last_lr(self) -> list:
        return self._last_lr

    def state_dict(self) -> dict:
        """All attributes except the optimizer and callables."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer" and not callable(value)}

    def load_state_dict(self, state: dict) -> None:
        self.__dict__.update({name: value for name, value in state.items() if name != "optimizer"})


class _ByFunctions(LRScheduler):
    """Schedules defined by a function of the epoch, or a list with one per group. The state includes that of callable
    objects."""

    def __init__(self, optimizer: Optimizer, lr_lambda, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(optimizer.param_groups)
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict:
        kept = [None if isinstance(function, types.FunctionType) else dict(getattr(function, "__dict__", {})) for function in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state: dict) -> None:
        for function, kept in zip(self.lr_lambdas, state.get("lr_lambdas", [])):
            if kept:
                function.__dict__.update(kept)
        super().load_state_dict({name: value for name, value in state.items() if name != "lr_lambdas"})


class LambdaLR(_ByFunctions):
    """Multiplies the initial rates by the function's value."""

    def get_lr(self) -> list:
        return [rate * function(self.last_epoch) for rate, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_ByFunctions):
    """Multiplies the current rates by the function's value."""

    def get_lr(self) -> list:
        rates = rates_of(self.optimizer)
        return [rate * function(self.last_epoch) for rate, function in zip(rates, self.lr_lambdas)] if self.last_epoch > 0 else rates


class CyclicLR(LRScheduler):
    """Rates cycle between two bounds, and momentum cycles inversely."""

    def __init__(self, optimizer: Optimizer, base_lr, max_lr, step_size_up: int = 2000, step_size_down=None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn=None, scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum=0.8, max_momentum=0.9, last_epoch: int = -1):
        check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        bases = self._by_group("base_lr", groups, base_lr)
        self.max_lrs = self._by_group("max_lr", groups, max_lr)
        self._scale = scale_fn
        self.mode, self.gamma = mode, gamma
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = step_size_up / self.total_size
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if any("momentum" not in group for group in groups):
                raise ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
            self.base_momentums = self._by_group("base_momentum", groups, base_momentum)
            self.max_momentums = self._by_group("max_momentum", groups, max_momentum)
            if last_epoch != -1:
                self.base_momentums = [group["momentum"] for group in groups]
        if last_epoch == -1:
            set_rates(optimizer, bases)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    @staticmethod
    def _by_group(name: str, groups, value) -> list:
        values = list(value) if isinstance(value, (list, tuple)) else [value] * len(groups)
        if len(values) != len(groups):
            raise ValueError(f"expected {len(groups)} values for {name}, got {len(values)}")
        return values

    def scale_fn(self, x):
        """The factor of the amplitude."""
        if self._scale is not None:
            return self._scale(x)
        return self.gamma**x if self.mode == "exp_range" else 0.5 ** (x - 1) if self.mode == "triangular2" else 1.0

    def get_lr(self) -> list:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1.0 + self.last_epoch / self.total_size - cycle
        height = part / self.step_ratio if part <= self.step_ratio else (part - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, least, most in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                group["momentum"] = most - (most - least) * height
        return [least + (most - least) * height for least, most in zip(self.base_lrs, self.max_lrs)]


class _Several(LRScheduler):
    """Combines other schedules of one optimizer."""

    def __init__(self, optimizer, schedulers):
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but the one at index {i} does not")
        self.optimizer, self._schedulers = optimizer, list(schedulers)

    def state_dict(self) -> dict:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state: dict) -> None:
        if len(state["_schedulers"]) != len(self._schedulers):
            raise ValueError(f"the state is of {len(state['_schedulers'])} schedules, but there are {len(self._schedulers)}")
        for scheduler, part in zip(self._schedulers, state["_schedulers"]):
            scheduler.load_state_dict(part)
        super().load_state_dict({name: value for name, value in state.items() if name != "_schedulers"})


class ChainedScheduler(_Several):
    """Applies all schedules at each step."""

    def __init__(self, schedulers):
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError("ChainedScheduler: got an empty list of schedulers")
        super().__init__(schedulers[0].optimizer, schedulers)
        self._last_lr = rates_of(self.optimizer)

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self.optimizer)


class SequentialLR(_Several):
    """Runs schedules in order: the i-th one starts at milestones[i - 1]."""

    def __init__(self, optimizer: Optimizer, schedulers, milestones, last_epoch: int = -1):
        check_optimizer(optimizer)
        super().__init__(optimizer, schedulers)
        if not self._schedulers or len(milestones) != len(self._schedulers) - 1:
            raise ValueError(f"Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                             f"number of schedulers {len(self._schedulers)} and the number of milestones to be equal to {len(milestones)}")
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Constructing the schedules made a step of each. Restore the initial rates, then make the first step of the
        # first one.
        set_rates(optimizer, [group["initial_lr"] for group in optimizer.param_groups])
        for scheduler in self._schedulers:
            scheduler._undo()
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:
        self.last_epoch += 1
        index = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()
