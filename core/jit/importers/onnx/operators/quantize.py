# Quantized tensors: integers with scales and zero points.


# A scale or zero point of one axis, or of blocks of it, made as large as x needs it.
def _along(x: Tensor, scale: Tensor, axis: int, block_size: int) -> Tensor:
    if scale.numel() == 1 and block_size == 0:
        return scale.reshape([])
    at = __torch__.onnx.shapes._axis(axis, x.dim())
    if block_size > 0:
        return torch.narrow(torch.repeat_interleave(scale, block_size, at), at, 0, x.size(at))
    return scale.reshape([-1] + [1] * (x.dim() - 1 - at))


def _range_of(dtype: int) -> Tuple[int, int]:
    if dtype == torch.uint8:
        return 0, 255
    if dtype == torch.int8:
        return -128, 127
    if dtype == torch.int16:
        return -32768, 32767
    raise RuntimeError("QuantizeLinear: unknown type of the result")


# `value` is a quotient that is not rounded yet.
def _saturated(value: Tensor, zero_point: Optional[Tensor], dtype: int) -> Tensor:
    low, high = _range_of(dtype)
    rounded = torch.round(value)
    if zero_point is not None:
        rounded = rounded + zero_point.to(rounded.dtype)
    return torch.clamp(rounded, low, high).to(dtype)


def QuantizeLinear_10(x: Tensor, y_scale: Tensor, y_zero_point: Optional[Tensor] = None) -> Tensor:
    return QuantizeLinear_21(x, y_scale, y_zero_point)


def QuantizeLinear_13(x: Tensor, y_scale: Tensor, y_zero_point: Optional[Tensor] = None, *, axis: int = 1) -> Tensor:
    return QuantizeLinear_21(x, y_scale, y_zero_point, axis=axis)


def QuantizeLinear_19(
    x: Tensor, y_scale: Tensor, y_zero_point: Optional[Tensor] = None, *, axis: int = 1, saturate: int = 1
) -> Tensor:
    return QuantizeLinear_21(x, y_scale, y_zero_point, axis=axis)


def QuantizeLinear_21(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Optional[Tensor] = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: Optional[int] = None,
    saturate: int = 1,
    precision: Optional[int] = None,
) -> Tensor:
    dtype = torch.uint8
    if y_zero_point is not None:
        dtype = y_zero_point.dtype
    elif output_dtype is not None:
        dtype = output_dtype
    wide = torch.float32 if precision is None else precision
    if x.dtype == torch.float64:
        wide = torch.float64
    scale = _along(x, y_scale, axis, block_size).to(wide)
    zero: Optional[Tensor] = None
    if y_zero_point is not None:
        zero = _along(x, y_zero_point, axis, block_size)
    return _saturated(x.to(wide) / scale, zero, dtype)


def DequantizeLinear_10(x: Tensor, x_scale: Tensor, x_zero_point: Optional[Tensor] = None) -> Tensor:
    return DequantizeLinear_21(x, x_scale, x_zero_point)


def DequantizeLinear_13(x: Tensor, x_scale: Tensor, x_zero_point: Optional[Tensor] = None, *, axis: int = 1) -> Tensor:
    return DequantizeLinear_21(x, x_scale, x_zero_point, axis=axis)


def DequantizeLinear_21(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Optional[Tensor] = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: Optional[int] = None,
) -> Tensor:
    scale = _along(x, x_scale, axis, block_size).to(torch.float32)
    value = x.to(torch.int32)
    if x_zero_point is not None:
        value = value - _along(x, x_zero_point, axis, block_size).to(torch.int32)
    return (value.to(torch.float32) * scale).to(x_scale.dtype if output_dtype is None else output_dtype)


def DynamicQuantizeLinear_11(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    # By this name the engine knows that the samples of a batch have one scale, so that strangers do not share a run.
    low, high = torch._aminmax(x)
    high = torch.clamp(high, min=0.0)
    low = torch.clamp(low, max=0.0)
    scale = (high - low) / 255.0
    # A tensor of zeros has no scale: its zeros are zeros with any.
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.clamp(torch.round(-low / scale), 0, 255).to(torch.uint8)
    return _saturated(x / scale, zero, torch.uint8), scale, zero


def QLinearMatMul_10(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_product(a, b)
    wide_a = a.to(torch.int32) - __torch__.onnx.linear._zero_point_of_rows(a_zero_point).to(torch.int32)
    wide_b = b.to(torch.int32) - b_zero_point.to(torch.int32)
    product = torch.matmul(wide_a, wide_b)
    scale = __torch__.onnx.linear._zero_point_of_rows(a_scale).to(torch.float32) * b_scale.to(torch.float32)
    result = product.to(torch.float64) * (scale / y_scale.to(torch.float32)).to(torch.float64)
    return _saturated(result, y_zero_point, y_zero_point.dtype)


def QLinearConv_10(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    B: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    sums = __torch__.onnx.linear.ConvInteger_10(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    channels = [-1] + [1] * (x.dim() - 2)
    if B is not None:
        sums = sums + B.reshape(channels)
    scale = (x_scale * w_scale / y_scale).to(torch.float64)
    if scale.numel() > 1:
        scale = scale.reshape(channels)
    return _saturated(sums.to(torch.float64) * scale, y_zero_point, y_zero_point.dtype)
