"""Layers that infer the number of features or channels from their first input."""

from __future__ import annotations

import itertools

from tensord.engine.nn._placement import place
from tensord.engine.nn.convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tensord.engine.nn.layers import Linear
from tensord.engine.nn.norms import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm
from tensord.engine.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]


class LazyModuleMixin:
    """Comes before Module in the list of bases. Subclasses define initialize_parameters(), which gets the first call's
    arguments and materializes all uninitialized parameters; the module then becomes an instance of `cls_to_become`, if
    set."""

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._is_first_call = True

    def initialize_parameters(self, *args, **kwargs):
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        return any(is_lazy(tensor) for tensor in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, args, kwargs) -> None:
        name = type(self).__name__
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {name} has not been fully initialized")
        del self._is_first_call
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def __call__(self, *args, **kwargs):
        if "_is_first_call" not in self.__dict__:
            return super().__call__(*args, **kwargs)
        self._infer_parameters(args, kwargs)
        return self(*args, **kwargs)


class _Lazy(LazyModuleMixin):
    """A layer whose _make_parameters() makes uninitialized parameters; `_shapes` gives their final shapes."""

    def _make_parameters(self, bias: bool) -> None:
        self.weight = UninitializedParameter(**place())
        self.register_parameter("bias", UninitializedParameter(**place()) if bias else None)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def _learn(self, input) -> dict:
        """Sets attributes from the input and returns the shapes of all parameters that may be uninitialized."""
        raise NotImplementedError

    def initialize_parameters(self, input) -> None:
        shapes = self._learn(input)
        if not self.has_uninitialized_params():
            return  # they were loaded from a state dict
        for name, shape in shapes.items():
            tensor = getattr(self, name)
            if is_lazy(tensor):
                tensor.materialize(shape)
        self.reset_parameters()


class LazyLinear(_Lazy, Linear):
    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(0, out_features, bias, device, dtype)

    def _learn(self, input) -> dict:
        self.in_features = input.shape[-1]
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConv(_Lazy):
    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)

    def _learn(self, input) -> dict:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, but got input of "
                               f"size: {tuple(input.shape)}")
        channels = input.shape[-self.dims - 1]
        if channels % self.groups:
            raise ValueError(f"in_channels must be divisible by groups, got {channels} and {self.groups}")
        self.in_channels = channels
        return {"weight": self._weight_shape(), "bias": (self.out_channels,)}


class _LazyConvTranspose(_LazyConv):
    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1,
                 padding_mode: str = "zeros", device=None, dtype=None):
        _Lazy.__init__(self, 0, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)


class _LazyNorm(_Lazy):
    def __init__(self, eps: float = 1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True, device=None, dtype=None,
                 bias: bool = True):
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _make_parameters(self, bias: bool) -> None:
        for name, is_there in (("weight", self.affine), ("bias", self.affine and bias)):
            self.register_parameter(name, UninitializedParameter(**place()) if is_there else None)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, UninitializedBuffer(**place()) if self.track_running_stats else None)

    def _learn(self, input) -> dict:
        self._check_rank(input)
        is_single = isinstance(self, _InstanceNorm) and input.ndim == self.ranks[0]
        self.num_features = input.shape[0 if is_single else 1]
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,))


class LazyConv1d(_LazyConv, Conv1d):
    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    cls_to_become = InstanceNorm3d
