"""Optimizers in Python, with each step over lists of tensors. Where PyTorch 1.13 and later versions differ, they follow
the later ones: `maximize` and `decoupled_weight_decay` of NAdam and RAdam, and a tensor "step" in the state."""

from __future__ import annotations

import math

from tensord.engine import _engine
from tensord.engine._grad_mode import no_grad
from tensord.engine.optim._base import Optimizer


def _each(name: str, *args, **kwargs):
    return _engine._operator("aten::_foreach_" + name)(*args, **kwargs)


def _number(value: float):
    return _engine._make_tensor(float(value), _engine.float32)


def _check(kind: str, **options) -> None:
    for name, value in options.items():
        if name == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"{kind}: expected betas[{i}] in [0, 1), got {beta}")
        elif not 0.0 <= value:
            raise ValueError(f"{kind}: expected {name} >= 0, got {value}")


class _Written(Optimizer):
    """Passes the parameters of a group that have gradients to _update(), with their states and step counts."""

    # State tensors with the parameters' shapes, initially zero.
    kept: tuple = ()

    def _begin(self, param, group) -> dict:
        """Additional state of a parameter."""
        return {}

    def _update(self, group, params, grads, kept, steps) -> None:
        """`kept` has a list of tensors for each name in `self.kept`."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure=None):
        loss = self._loss(closure)
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            if params:
                for param in params:
                    self._prepare(param, group)
                states = [self.state[param] for param in params]
                grads = [param.grad.detach() for param in params]
                grads = _each("neg", grads) if group.get("maximize", False) else grads
                grads = self._decay(group, params, grads)
                self._update(group, params, grads, [[state[name] for state in states] for name in self.kept], self._count(states))
        return loss

    def _prepare(self, param, group) -> None:
        if param.grad.layout is not _engine.strided:
            raise NotImplementedError(f"{type(self).__name__} does not support sparse gradients")
        if param.dtype.is_complex:
            raise NotImplementedError(f"{type(self).__name__} does not support parameters of {param.dtype}")
        state = self.state[param]
        if not state:
            state["step"] = _number(0)
            for name in self.kept:
                state[name] = _engine._operator("aten::zeros_like")(param)
            state.update(self._begin(param, group))

    def _count(self, states) -> list:
        steps = [int(state["step"]) + 1 for state in states]
        for state, step in zip(states, steps):
            state["step"] = _number(step)
        return steps

    def _decay(self, group, params, grads):
        weight_decay = group.get("weight_decay", 0)
        if weight_decay == 0:
            return grads
        if group.get("decoupled_weight_decay", False):
            _each("mul_", params, 1 - group["lr"] * weight_decay)
            return grads
        return _each("add", grads, params, alpha=weight_decay)

    def _averages(self, group, grads, first, second) -> None:
        """Updates the running means of gradients and of their squares."""
        beta1, beta2 = group["betas"]
        _each("lerp_", first, grads, 1 - beta1)
        _each("mul_", second, beta2)
        _each("addcmul_", second, grads, grads, 1 - beta2)


class Adadelta(_Written):
    kept = ("square_avg", "acc_delta")

    def __init__(self, params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, *, maximize: bool = False):
        _check("Adadelta", lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Adadelta: expected rho in [0, 1], got {rho}")
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def _update(self, group, params, grads, kept, steps):
        squares, deltas = kept
        rho, eps = group["rho"], group["eps"]
        _each("mul_", squares, rho)
        _each("addcmul_", squares, grads, grads, 1 - rho)
        changes = _each("add", deltas, eps)
        _each("sqrt_", changes)
        scales = _each("add", squares, eps)
        _each("sqrt_", scales)
        _each("div_", changes, scales)
        _each("mul_", changes, grads)
        _each("mul_", deltas, rho)
        _each("addcmul_", deltas, changes, changes, 1 - rho)
        _each("add_", params, changes, alpha=-group["lr"])


class Adamax(_Written):
    kept = ("exp_avg", "exp_inf")

    def __init__(self, params, lr: float = 2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, *, maximize: bool = False):
        _check("Adamax", lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize})

    def _update(self, group, params, grads, kept, steps):
        means, largest = kept
        beta1, beta2 = group["betas"]
        _each("lerp_", means, grads, 1 - beta1)
        _each("mul_", largest, beta2)
        sizes = _each("abs", grads)
        _each("add_", sizes, group["eps"])
        _each("maximum_", largest, sizes)
        _each("addcdiv_", params, means, largest, [-group["lr"] / (1 - beta1**step) for step in steps])


class NAdam(_Written):
    kept = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr: float = 2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, maximize: bool = False):
        _check("NAdam", lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize})

    def _begin(self, param, group):
        return {"mu_product": _number(1)}

    def _update(self, group, params, grads, kept, steps):
        means, squares = kept
        self._averages(group, grads, means, squares)
        beta1, beta2 = group["betas"]

        def momentum(step):
            return beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))

        by_grad, by_mean = [], []
        for param, step in zip(params, steps):
            state = self.state[param]
            now, after = momentum(step), momentum(step + 1)
            product = state["mu_product"].item() * now
            state["mu_product"] = _number(product)
            by_grad.append(-group["lr"] * (1 - now) / (1 - product))
            by_mean.append(-group["lr"] * after / (1 - product * after))
        scales = _each("div", squares, [1 - beta2**step for step in steps])
        _each("sqrt_", scales)
        _each("add_", scales, group["eps"])
        _each("addcdiv_", params, grads, scales, by_grad)
        _each("addcdiv_", params, means, scales, by_mean)


class RAdam(_Written):
    kept = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 decoupled_weight_decay: bool = False, *, maximize: bool = False):
        _check("RAdam", lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize})

    def _update(self, group, params, grads, kept, steps):
        means, squares = kept
        self._averages(group, grads, means, squares)
        beta1, beta2 = group["betas"]
        longest = 2 / (1 - beta2) - 1
        adaptive, plain = ([], [], [], []), ([], [])
        for param, mean, square, step in zip(params, means, squares, steps):
            rate, rest = group["lr"] / (1 - beta1**step), 1 - beta2**step
            length = longest - 2 * step * beta2**step / rest
            if length > 5:  # otherwise the variance is not reliable yet
                rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
                for values, value in zip(adaptive, (param, mean, square, -rate * rectified * math.sqrt(rest))):
                    values.append(value)
            else:
                plain[0].append(param)
                plain[1].append(mean * -rate)
        if plain[0]:
            _each("add_", *plain)
        if adaptive[0]:
            scales = _each("sqrt", adaptive[2])
            _each("add_", scales, group["eps"])
            _each("addcdiv_", adaptive[0], adaptive[1], scales, adaptive[3])


class Rprop(_Written):
    kept = ("prev",)

    def __init__(self, params, lr: float = 1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, maximize: bool = False):
        _check("Rprop", lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop: expected 0 < etas[0] < 1 < etas[1], got {etas}")
        super().__init__(params, {"lr": lr, "etas": tuple(etas), "step_sizes": tuple(step_sizes), "maximize": maximize})

    def _begin(self, param, group):
        return {"step_size": _engine._operator("aten::full_like")(param, group["lr"])}

    def _update(self, group, params, grads, kept, steps):
        previous, sizes = kept[0], [self.state[param]["step_size"] for param in params]
        (lower, higher), (smallest, largest) = group["etas"], group["step_sizes"]
        where = _engine._operator("aten::where")
        for param, grad, before, size in zip(params, grads, previous, sizes):
            turned = grad * before
            size.mul_(where(turned > 0, higher, where(turned < 0, lower, 1.0)).to(size.dtype)).clamp_(smallest, largest)
            grad = where(turned < 0, 0.0, grad)  # no step back if the sign has changed
            param.addcmul_(grad.sign(), size, value=-1)
            before.copy_(grad)


class ASGD(_Written):
    kept = ("ax",)

    def __init__(self, params, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0, *,
                 maximize: bool = False):
        _check("ASGD", lr=lr, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize})

    def _begin(self, param, group):
        return {"eta": _number(group["lr"]), "mu": _number(1)}

    def _update(self, group, params, grads, kept, steps):
        lr, lambd = group["lr"], group["lambd"]
        states = [self.state[param] for param in params]
        rates = [state["eta"].item() for state in states]
        _each("mul_", params, [1 - lambd * rate for rate in rates])
        _each("add_", params, _each("mul", grads, [-rate for rate in rates]))
        # With weight 1, the mean is the parameter itself.
        for mean, param, state in zip(kept[0], params, states):
            weight = state["mu"].item()
            if weight == 1:
                mean.copy_(param)
            else:
                mean.add_(param - mean, alpha=weight)
        for state, step in zip(states, steps):
            state["eta"] = _number(lr / (1 + lambd * lr * step) ** group["alpha"])
            state["mu"] = _number(1 / max(1, step - group["t0"]))
