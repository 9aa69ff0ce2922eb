"""Data-parallel training of modules over several processes."""

from __future__ import annotations

import contextlib

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine.distributed import groups
from tensord.engine.nn.data_parallel import (  # noqa: F401
    DataParallel, data_parallel, gather, parallel_apply, replicate, scatter, scatter_kwargs)
from tensord.engine.nn import functional as F
from tensord.engine.nn._placement import placed
from tensord.engine.nn.embeddings import Embedding, EmbeddingBag
from tensord.engine.nn.module import Module
from tensord.engine.nn.parameter import refuse_lazy
from tensord.engine.nn.norms import RunningNorm, _BatchNorm

_native = _engine._distributed


def _tensors_in(value) -> list:
    """The tensors in lists, tuples, dicts, dataclasses and named tuples, at any depth."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors_in(item)]


def _sparse_tables(module) -> list:
    """Names of the parameters with sparse gradients."""
    return [f"{name}.weight" if name else "weight" for name, part in module.named_modules()
            if isinstance(part, (Embedding, EmbeddingBag)) and part.sparse and part.weight.requires_grad]


class DistributedDataParallel(Module):
    """A module trained by several processes, each with its own data: torch.nn.parallel.DistributedDataParallel.

    All ranks construct it from equal modules and start from rank 0's parameters and buffers. A backward pass leaves the
    mean of all ranks' gradients in the parameters. Parameters that do not require gradients at construction must not
    require them later.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0, broadcast_buffers: bool = True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False):
        super().__init__()
        refuse_lazy(module, "DistributedDataParallel")
        if device_ids or output_device is not None:
            raise NotImplementedError("DistributedDataParallel: device_ids and output_device; modules are on the CPU")
        self.module = module
        self.process_group = groups.resolve(process_group)
        if self.process_group is None:
            raise ValueError("Invalid process_group: this rank is not in it")
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self._reducer = _native.make_data_parallel(
            self.process_group._native, list(module.named_parameters()), list(module.named_buffers()),
            0 if bucket_cap_mb is None else int(bucket_cap_mb * 1024 * 1024), broadcast_buffers, find_unused_parameters, static_graph,
            gradient_as_bucket_view, _sparse_tables(module))

    def forward(self, *args, **kwargs):
        results = []

        def call():
            results.append(self.module(*args, **kwargs))
            return _tensors_in(results[0])

        self._reducer.forward(call)
        return results[0]

    @contextlib.contextmanager
    def no_sync(self):
        """Within the context, gradients accumulate locally; the first backward pass after it reduces all of them."""
        self._reducer.start_no_sync()
        try:
            yield
        finally:
            self._reducer.end_no_sync()

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False):
        """Surrounds the training loop if ranks have different numbers of batches; all ranks enter it."""
        if not enable:
            yield
            return
        self._reducer.start_join(divide_by_initial_world_size, throw_on_early_termination)
        try:
            yield
            self._reducer.finish_join()
        finally:
            self._reducer.end_join()

    def register_comm_hook(self, state, hook) -> None:
        """Sets how gradients are compressed: a hook of `distributed.algorithms` (fp16_compress_hook,
        bf16_compress_hook, powerSGD_hook)."""
        arguments = getattr(hook, "_native_arguments", None)
        if arguments is None:
            raise NotImplementedError("register_comm_hook: hooks are those of tensord.engine.distributed.algorithms")
        self._reducer.register_hook(*arguments(state))


class SyncBatchNorm(RunningNorm):
    """Batch norm with statistics over the rows of all ranks during training, for inputs with two or more dimensions."""

    @placed
    def __init__(self, num_features: int, eps: float = 1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True,
                 process_group=None, device=None, dtype=None, bias: bool = True):
        super().__init__()
        self.process_group = process_group
        self._make(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, input):
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        factor = self.momentum or 0.0
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        uses_batch = self.training or self.running_mean is None
        group = groups.resolve(self.process_group) if self.training and groups.is_initialized() else None
        if group is None or group.size() == 1:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, uses_batch, factor, self.eps)
        return _native.sync_batch_norm(group._native, input, self.weight, self.bias, self.running_mean, self.running_var, factor, self.eps)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """Replaces all batch norms in the module by this class; their parameters and buffers stay the same tensors."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in list(module.named_children()):
            made._modules[name] = cls.convert_sync_batchnorm(child, process_group)
        return made
