"""Native optimizers. One step is one operator over all tensors of a group."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.optim._base import Optimizer, ParamGroup, read_group, read_groups


class NativeOptimizer(Optimizer):
    """Base class; groups, state and steps are native."""

    kind = ""

    def __init__(self, params, **options):
        groups = read_groups(type(self).__name__, params)
        self._optimizer = _engine._make_optimizer(self.kind, groups, options)
        self._params = [group for group, _ in groups]
        self.defaults = dict(options)

    @property
    def param_groups(self) -> list:
        return [ParamGroup(self._optimizer, i, params) for i, params in enumerate(self._params)]

    def add_param_group(self, group) -> None:
        params, options = read_group(group)
        self._optimizer.add_param_group((params, options))
        self._params.append(params)

    def step(self, closure=None):
        """Makes one update. With a closure, which recomputes the loss and its gradients, returns the loss."""
        return self._optimizer.step(closure)

    def use_master_weights(self) -> None:
        """Call before the first step: float16 and bfloat16 parameters get float32 copies, which steps update, with
        states in float32; the parameter is the rounded copy. The state dict contains it as "master_param"."""
        self._optimizer.use_master_weights()

    def state_dict(self) -> dict:
        """The state in PyTorch's format. The tensors are the optimizer's own, so save them before the next step."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self._optimizer.load_state_dict(state)


class SGD(NativeOptimizer):
    kind = "sgd"

    def __init__(self, params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                         maximize=maximize)


class Adam(NativeOptimizer):
    kind = "adam"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize)


class AdamW(NativeOptimizer):
    kind = "adamw"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize)


class RMSprop(NativeOptimizer):
    kind = "rmsprop"

    def __init__(self, params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered,
                         maximize=maximize)


class Adagrad(NativeOptimizer):
    kind = "adagrad"

    def __init__(self, params, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, *, maximize: bool = False):
        super().__init__(params, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                         initial_accumulator_value=initial_accumulator_value, eps=eps, maximize=maximize)


class SparseAdam(NativeOptimizer):
    """Adam for sparse gradients only: rows without a gradient are unchanged."""

    kind = "sparseadam"

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, maximize=maximize)


class LBFGS(NativeOptimizer):
    kind = "lbfgs"

    def __init__(self, params, lr: float = 1, max_iter: int = 20, max_eval=None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn=None):
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {line_search_fn!r}")
        super().__init__(params, lr=lr, max_iter=max_iter, max_eval=max_eval if max_eval is not None else max_iter * 5 // 4,
                         tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
                         line_search_fn=line_search_fn)
