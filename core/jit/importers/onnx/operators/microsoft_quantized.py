# com.microsoft: what ONNX Runtime's quantizer makes.


def _real(x: Tensor, scale: Tensor, zero_point: Optional[Tensor]) -> Tensor:
    return __torch__.onnx.quantize.DequantizeLinear_21(x, scale, zero_point, axis=-1)


# A result of the type of `like`, or of its zero point.
def _quantized(x: Tensor, scale: Tensor, zero_point: Optional[Tensor], like: Tensor) -> Tensor:
    dtype = like.dtype if zero_point is None else zero_point.dtype
    return __torch__.onnx.quantize._saturated(x / scale, zero_point, dtype)


def microsoft_QuantizeLinear_1(
    x: Tensor, y_scale: Tensor, y_zero_point: Optional[Tensor] = None, *, axis: int = 1
) -> Tensor:
    return __torch__.onnx.quantize.QuantizeLinear_21(x, y_scale, y_zero_point, axis=axis)


def microsoft_DequantizeLinear_1(
    x: Tensor, x_scale: Tensor, x_zero_point: Optional[Tensor] = None, *, axis: int = 1
) -> Tensor:
    return __torch__.onnx.quantize.DequantizeLinear_21(x, x_scale, x_zero_point, axis=axis)


def microsoft_QLinearAdd_1(
    A: Tensor,
    A_scale: Tensor,
    A_zero_point: Optional[Tensor],
    B: Tensor,
    B_scale: Tensor,
    B_zero_point: Optional[Tensor],
    C_scale: Tensor,
    C_zero_point: Optional[Tensor] = None,
) -> Tensor:
    total = _real(A, A_scale, A_zero_point) + _real(B, B_scale, B_zero_point)
    return _quantized(total, C_scale, C_zero_point, A)


def microsoft_QLinearMul_1(
    A: Tensor,
    A_scale: Tensor,
    A_zero_point: Optional[Tensor],
    B: Tensor,
    B_scale: Tensor,
    B_zero_point: Optional[Tensor],
    C_scale: Tensor,
    C_zero_point: Optional[Tensor] = None,
) -> Tensor:
    product = _real(A, A_scale, A_zero_point) * _real(B, B_scale, B_zero_point)
    return _quantized(product, C_scale, C_zero_point, A)


def microsoft_QLinearSigmoid_1(
    X: Tensor,
    X_scale: Tensor,
    X_zero_point: Optional[Tensor],
    Y_scale: Tensor,
    Y_zero_point: Optional[Tensor] = None,
) -> Tensor:
    return _quantized(torch.sigmoid(_real(X, X_scale, X_zero_point)), Y_scale, Y_zero_point, X)


def microsoft_QLinearLeakyRelu_1(
    X: Tensor,
    X_scale: Tensor,
    X_zero_point: Optional[Tensor],
    Y_scale: Tensor,
    Y_zero_point: Optional[Tensor] = None,
    *,
    alpha: float = 0.01,
) -> Tensor:
    return _quantized(torch.leaky_relu(_real(X, X_scale, X_zero_point), alpha), Y_scale, Y_zero_point, X)


def microsoft_QLinearSoftmax_1(
    X: Tensor,
    X_scale: Tensor,
    x_zero_point: Optional[Tensor],
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    axis: int = -1,
    opset: int,
) -> Tensor:
    x = _real(X, X_scale, x_zero_point)
    if opset < 13:
        return _quantized(__torch__.onnx.reduce.Softmax_1(x, axis=axis), y_scale, y_zero_point, X)
    return _quantized(torch.softmax(x, axis), y_scale, y_zero_point, X)


# In float64 sums and halves of integers are exact, and so is which way a half is rounded.
def _integers(x: Tensor, zero_point: Optional[Tensor]) -> Tensor:
    wide = x.to(torch.float64)
    return wide if zero_point is None else wide - zero_point.to(torch.float64)


def _channels_second(x: Tensor, channels_last: int) -> Tensor:
    return x if channels_last == 0 else torch.movedim(x, [-1], [1])


def _channels_back(x: Tensor, channels_last: int) -> Tensor:
    return x if channels_last == 0 else torch.movedim(x, [1], [-1])


def microsoft_NhwcMaxPool_1(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Optional[List[int]] = None,
    kernel_shape: List[int],
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    values, unused = __torch__.onnx.pool.MaxPool_1(
        _channels_second(x, 1),
        _outputs=1,
        auto_pad=auto_pad,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        ceil_mode=ceil_mode,
        dilations=dilations,
    )
    return _channels_back(values, 1)


def microsoft_QLinearGlobalAveragePool_1(
    X: Tensor, x_scale: Tensor, x_zero_point: Tensor, y_scale: Tensor, y_zero_point: Tensor, *, channels_last: int = 0
) -> Tensor:
    pooled = __torch__.onnx.pool.GlobalAveragePool_1(_channels_second(_integers(X, x_zero_point), channels_last))
    real = _channels_back(pooled, channels_last) * x_scale.to(torch.float64)
    return _quantized(real, y_scale.to(torch.float64), y_zero_point, X)


def microsoft_QLinearAveragePool_1(
    X: Tensor,
    x_scale: Tensor,
    x_zero_point: Optional[Tensor],
    y_scale: Tensor,
    y_zero_point: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: List[int],
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    x = _channels_second(_real(X, x_scale, x_zero_point), channels_last)
    pooled = __torch__.onnx.pool._average_in_order(
        x, auto_pad, kernel_shape, pads, strides, ceil_mode, count_include_pad
    )
    # As ONNX Runtime has it: the zero point comes before the rounding.
    scaled = _channels_back(pooled, channels_last) / y_scale
    if y_zero_point is not None:
        scaled = scaled + y_zero_point.to(scaled.dtype)
    return __torch__.onnx.quantize._saturated(scaled, None, X.dtype)


# Each tensor comes with its scale and zero point.
def microsoft_QLinearConcat_1(Y_scale: Tensor, Y_zero_point: Tensor, inputs: List[Tensor], *, axis: int) -> Tensor:
    parts: List[Tensor] = []
    for i in range(0, len(inputs), 3):
        parts.append(_real(inputs[i], inputs[i + 1], inputs[i + 2]))
    return _quantized(torch.cat(parts, axis), Y_scale, Y_zero_point, Y_zero_point)


def microsoft_MatMulIntegerToFloat_1(
    A: Tensor,
    B: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero_point: Optional[Tensor] = None,
    b_zero_point: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
) -> Tensor:
    product = __torch__.onnx.linear.MatMulInteger_10(A, B, a_zero_point, b_zero_point)
    result = product.to(torch.float32) * (a_scale * b_scale)
    return result if bias is None else result + bias


def microsoft_DynamicQuantizeMatMul_1(
    A: Tensor, B: Tensor, b_scale: Tensor, b_zero_point: Optional[Tensor] = None, bias: Optional[Tensor] = None
) -> Tensor:
    a, a_scale, a_zero = __torch__.onnx.quantize.DynamicQuantizeLinear_11(A)
    return microsoft_MatMulIntegerToFloat_1(a, B, a_scale, b_scale, a_zero, b_zero_point, bias)


def microsoft_QGemm_1(
    A: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    B: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    C: Optional[Tensor] = None,
    y_scale: Optional[Tensor] = None,
    y_zero_point: Optional[Tensor] = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    a = A.to(torch.int32) - a_zero_point.to(torch.int32)
    if transA != 0:
        a = torch.t(a)
    b = torch.t(B) if transB != 0 else B
    total = torch.matmul(a, b.to(torch.int32) - b_zero_point.to(torch.int32))
    if C is not None:
        total = total + C
    result = total.to(torch.float32) * (a_scale * b_scale * alpha)
    if y_scale is None or y_zero_point is None:
        return result
    return _quantized(result, y_scale, y_zero_point, A)


def microsoft_QAttention_1(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    mask_index: Optional[Tensor] = None,
    input_zero_point: Optional[Tensor] = None,
    weight_zero_point: Optional[Tensor] = None,
    past: Optional[Tensor] = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: Optional[float] = None,
    unidirectional: int = 0,
) -> Tuple[Tensor, Tensor]:
    qkv = microsoft_MatMulIntegerToFloat_1(
        input, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
    )
    parts = torch.chunk(qkv, 3, -1)
    q = __torch__.onnx.microsoft._split_heads(parts[0], num_heads)
    k = __torch__.onnx.microsoft._split_heads(parts[1], num_heads)
    v = __torch__.onnx.microsoft._split_heads(parts[2], num_heads)
    if past is not None:
        k = torch.cat([past[0], k], 2)
        v = torch.cat([past[1], v], 2)
    y = __torch__.onnx.microsoft._attend(q, k, v, mask_index, None, scale, mask_filter_value, unidirectional != 0)
    return y, torch.stack([k, v])


# Numbers of `bits` bits, the first in the lowest ones of its byte.
def _unpacked(packed: Tensor, bits: int) -> Tensor:
    if bits == 8:
        return packed
    parts: List[Tensor] = []
    for i in range(8 // bits):
        shifted = torch.bitwise_right_shift(packed, i * bits)
        parts.append(torch.bitwise_and(shifted, (1 << bits) - 1))
    return torch.stack(parts, -1).reshape(packed.shape[:-1] + [packed.size(-1) * (8 // bits)])


def microsoft_MatMulNBits_1(
    A: Tensor,
    B: Tensor,
    scales: Tensor,
    zero_points: Optional[Tensor] = None,
    g_idx: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
) -> Tensor:
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_size("the last dimension of A", A.size(-1), K)
    if bias is not None and bias.numel() != N:
        raise RuntimeError("bias has {} numbers, but N is {}".format(bias.numel(), N))
    # ONNX Runtime's CPU kernels omit packed zero points then, its others do not.
    if g_idx is not None and zero_points is not None and zero_points.dtype == torch.uint8:
        raise RuntimeError("g_idx together with packed zero_points is not supported")
    blocks = (K + block_size - 1) // block_size
    values = _unpacked(B.reshape([N, blocks, -1]), bits).to(scales.dtype)
    scale = scales.reshape([N, blocks, 1])
    zero = torch.full([1, 1, 1], float(1 << (bits - 1)), dtype=scales.dtype)
    if zero_points is not None:
        if zero_points.dtype == torch.uint8:
            packed = torch.narrow(_unpacked(zero_points.reshape([N, -1]), bits), 1, 0, blocks)
            zero = packed.to(scales.dtype).unsqueeze(2)
        else:
            zero = zero_points.reshape([N, blocks, 1])
    if g_idx is None:
        weight = ((values - zero) * scale).reshape([N, blocks * block_size])
    else:
        # Rows that were put in another order before they were cut into blocks: each says its block.
        block = torch.narrow(g_idx.reshape([-1]), 0, 0, K).to(torch.int64)
        taken = torch.narrow(values.reshape([N, blocks * block_size]), 1, 0, K)
        if zero_points is not None:
            zero = torch.index_select(zero.squeeze(2), 1, block).unsqueeze(2)
        weight = (taken - zero.squeeze(2)) * torch.index_select(scale.squeeze(2), 1, block)
    return torch.linear(A, torch.narrow(weight, 1, 0, K).to(A.dtype), bias)


# Rows of a table with a scale for each block of an axis. Of uint8, numbers of `bits` bits are packed along the last axis,
# with 0 in the middle; 4-bit ones come as int8.
def microsoft_GatherBlockQuantized_1(
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zero_points: Optional[Tensor] = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Tensor:
    is_packed = data.dtype == torch.uint8
    rows = __torch__.onnx.shapes._axis(gather_axis, data.dim())
    across = __torch__.onnx.shapes._axis(quantize_axis, data.dim())
    if rows == across:
        raise RuntimeError("gather_axis and quantize_axis are the same")
    if is_packed and across != data.dim() - 1:
        raise RuntimeError("quantize_axis of uint8 must be the last one")
    values = __torch__.onnx.index.Gather_1(data, indices, axis=rows)
    scale = __torch__.onnx.index.Gather_1(scales, indices, axis=rows)
    # Where the axis is then: indices have any number of dimensions.
    at = across - data.dim() + values.dim() if across > rows else across
    zero = torch.full_like(scale, float(1 << (bits - 1)) if is_packed else 0.0)
    if zero_points is not None:
        zeros = __torch__.onnx.index.Gather_1(zero_points, indices, axis=rows)
        zeros = torch.narrow(_unpacked(zeros, bits), -1, 0, scale.size(-1)) if is_packed else zeros
        zero = zeros.to(scales.dtype)
    values = (_unpacked(values, bits) if is_packed else values).to(scales.dtype)
    zero = torch.narrow(torch.repeat_interleave(zero, block_size, at), at, 0, values.size(at))
    return (values - zero) * torch.narrow(torch.repeat_interleave(scale, block_size, at), at, 0, values.size(at))


def microsoft_QLinearConv_1(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Optional[Tensor],
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Optional[Tensor],
    y_scale: Tensor,
    y_zero_point: Optional[Tensor] = None,
    B: Optional[Tensor] = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    zero = torch.zeros([], dtype=x.dtype)
    y = __torch__.onnx.quantize.QLinearConv_10(
        _channels_second(x, channels_last),
        x_scale,
        zero if x_zero_point is None else x_zero_point,
        w,
        w_scale,
        torch.zeros([], dtype=w.dtype) if w_zero_point is None else w_zero_point,
        y_scale,
        zero if y_zero_point is None else y_zero_point,
        B,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _channels_back(y, channels_last)


def microsoft_QLinearWhere_1(
    condition: Tensor,
    X: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    Y: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    z_scale: Tensor,
    z_zero_point: Tensor,
) -> Tensor:
    chosen = torch.where(condition, _real(X, x_scale, x_zero_point), _real(Y, y_scale, y_zero_point))
    return _quantized(chosen, z_scale, z_zero_point, X)


# An LSTM whose weights are integers, [directions, inputs, gates] where LSTM has [directions, gates, inputs].
def microsoft_DynamicQuantizeLSTM_1(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Optional[Tensor],
    sequence_lens: Optional[Tensor],
    initial_h: Optional[Tensor],
    initial_c: Optional[Tensor],
    P: Optional[Tensor],
    W_scale: Tensor,
    W_zero_point: Tensor,
    R_scale: Tensor,
    R_zero_point: Tensor,
    *,
    activation_alpha: Optional[List[float]] = None,
    activation_beta: Optional[List[float]] = None,
    activations: Optional[List[str]] = None,
    clip: Optional[float] = None,
    direction: str = "forward",
    hidden_size: Optional[int] = None,
    input_forget: int = 0,
) -> Tuple[Tensor, Tensor, Tensor]:
    return __torch__.onnx.recurrent.LSTM_7(
        X,
        torch.transpose(_real_weight(W, W_scale, W_zero_point), 1, 2),
        torch.transpose(_real_weight(R, R_scale, R_zero_point), 1, 2),
        B,
        sequence_lens,
        initial_h,
        initial_c,
        P,
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
    )


# A scale for each direction, or for each gate of it.
def _real_weight(w: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    zero = zero_point.to(torch.float32).reshape([w.size(0), 1, -1])
    return (w.to(torch.float32) - zero) * scale.reshape([w.size(0), 1, -1])
