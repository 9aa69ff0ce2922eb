# com.microsoft: what ONNX Runtime's quantiser makes.


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


def microsoft_QLinearGlobalAveragePool_1(
    X: Tensor, x_scale: Tensor, x_zero_point: Tensor, y_scale: Tensor, y_zero_point: Tensor, *, channels_last: int = 0
) -> Tensor:
    if channels_last != 0:
        raise RuntimeError("QLinearGlobalAveragePool: channels_last is not supported")
    pooled = __torch__.onnx.pool.GlobalAveragePool_1(_real(X, x_scale, x_zero_point))
    return _quantized(pooled, y_scale, y_zero_point, X)


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
    if channels_last != 0:
        raise RuntimeError("QLinearAveragePool: channels_last is not supported")
    pooled = __torch__.onnx.pool.AveragePool_1(
        _real(X, x_scale, x_zero_point),
        auto_pad=auto_pad,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        count_include_pad=count_include_pad,
        ceil_mode=ceil_mode,
    )
    return _quantized(pooled, y_scale, y_zero_point, X)


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
    if do_rotary != 0 or past_present_share_buffer != 0:
        raise RuntimeError("QAttention: do_rotary and past_present_share_buffer are not supported")
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
    if g_idx is not None:
        raise RuntimeError("MatMulNBits: g_idx is not supported")
    blocks = (K + block_size - 1) // block_size
    values = _unpacked(B.reshape([N, blocks, -1]), bits).to(scales.dtype)
    if zero_points is None:
        values = values - float(1 << (bits - 1))
    elif zero_points.dtype == torch.uint8:
        zero = torch.narrow(_unpacked(zero_points.reshape([N, -1]), bits), 1, 0, blocks)
        values = values - zero.to(scales.dtype).unsqueeze(2)
    else:
        values = values - zero_points.reshape([N, blocks, 1])
    weight = (values * scales.reshape([N, blocks, 1])).reshape([N, blocks * block_size])
    return torch.linear(A, torch.narrow(weight, 1, 0, K).to(A.dtype), bias)
