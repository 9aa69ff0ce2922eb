"""Gradient compression for DistributedDataParallel, to be given to register_comm_hook(state, hook)."""

from __future__ import annotations

_NOTHING = (1, 1000, 2.0, True, True, 0)


def fp16_compress_hook(state, bucket):
    """Sends gradients as float16."""
    raise NotImplementedError("fp16_compress_hook is given to register_comm_hook, not called")


def bf16_compress_hook(state, bucket):
    """Sends gradients as bfloat16."""
    raise NotImplementedError("bf16_compress_hook is given to register_comm_hook, not called")


class PowerSGDState:
    """State of powerSGD_hook: from step `start_powerSGD_iter` on, matrices are sent as two factors of this rank."""

    def __init__(self, process_group=None, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
                 min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True, random_seed: int = 0):
        if process_group is not None:
            raise NotImplementedError("PowerSGDState: the group is DistributedDataParallel's")
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback = min_compression_rate, use_error_feedback
        self.warm_start, self.random_seed = warm_start, random_seed


def powerSGD_hook(state: PowerSGDState, bucket):
    raise NotImplementedError("powerSGD_hook is given to register_comm_hook, not called")


def _of_power_sgd(state: PowerSGDState):
    if not isinstance(state, PowerSGDState):
        raise TypeError(f"powerSGD_hook: state: expected a PowerSGDState, got {type(state).__name__}")
    return ("powersgd", state.matrix_approximation_rank, state.start_powerSGD_iter, float(state.min_compression_rate),
            state.use_error_feedback, state.warm_start, state.random_seed)


fp16_compress_hook._native_arguments = lambda state: ("fp16", *_NOTHING)
bf16_compress_hook._native_arguments = lambda state: ("bf16", *_NOTHING)
powerSGD_hook._native_arguments = _of_power_sgd
