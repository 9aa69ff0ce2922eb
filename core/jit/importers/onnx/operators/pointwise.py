# Operators that work on each element by itself. NAME_VERSION: ONNX's operator NAME as it is since opset VERSION.
# Before "*" stand the inputs, after it the attributes.


def Abs_1(X: Tensor) -> Tensor:
    return torch.abs(X)


def Acos_7(X: Tensor) -> Tensor:
    return torch.acos(X)


def Acosh_9(X: Tensor) -> Tensor:
    return torch.acosh(X)


def Asin_7(X: Tensor) -> Tensor:
    return torch.asin(X)


def Asinh_9(X: Tensor) -> Tensor:
    return torch.asinh(X)


def Atan_7(X: Tensor) -> Tensor:
    return torch.atan(X)


def Atanh_9(X: Tensor) -> Tensor:
    return torch.atanh(X)


def Ceil_1(X: Tensor) -> Tensor:
    return torch.ceil(X)


def Cos_7(X: Tensor) -> Tensor:
    return torch.cos(X)


def Cosh_9(X: Tensor) -> Tensor:
    return torch.cosh(X)


def Erf_9(X: Tensor) -> Tensor:
    return torch.erf(X)


def Exp_1(X: Tensor) -> Tensor:
    return torch.exp(X)


def Floor_1(X: Tensor) -> Tensor:
    return torch.floor(X)


def Log_1(X: Tensor) -> Tensor:
    return torch.log(X)


def Neg_1(X: Tensor) -> Tensor:
    return torch.neg(X)


def Reciprocal_1(X: Tensor) -> Tensor:
    return torch.reciprocal(X)


# Both round halves to even.
def Round_11(X: Tensor) -> Tensor:
    return torch.round(X)


# NaN stays one; PyTorch's sign of it is 0.
def Sign_9(X: Tensor) -> Tensor:
    return torch.where(torch.isnan(X), X, torch.sign(X)) if X.is_floating_point() else torch.sign(X)


def Sin_7(X: Tensor) -> Tensor:
    return torch.sin(X)


def Sinh_9(X: Tensor) -> Tensor:
    return torch.sinh(X)


def Sqrt_1(X: Tensor) -> Tensor:
    return torch.sqrt(X)


def Tan_7(X: Tensor) -> Tensor:
    return torch.tan(X)


def Tanh_1(X: Tensor) -> Tensor:
    return torch.tanh(X)


def Not_1(X: Tensor) -> Tensor:
    return torch.logical_not(X)


def IsNaN_9(X: Tensor) -> Tensor:
    return torch.isnan(X)


def IsInf_10(X: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative == 0 and detect_positive == 0:
        return torch.zeros_like(X, dtype=torch.bool)
    if detect_negative == 0:
        return torch.eq(X, float("inf"))
    if detect_positive == 0:
        return torch.eq(X, -float("inf"))
    return torch.isinf(X)


# ---- activations


def Relu_1(X: Tensor) -> Tensor:
    return torch.relu(X)


def Sigmoid_1(X: Tensor) -> Tensor:
    return torch.sigmoid(X)


def Elu_1(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return torch.elu(X, alpha)


def Celu_12(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return torch.celu(X, alpha)


def Selu_6(X: Tensor, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Tensor:
    if alpha == 1.6732632423543772 and gamma == 1.0507009873554805:
        return torch.selu(X)
    return torch.elu(X, alpha, gamma)


def LeakyRelu_1(X: Tensor, *, alpha: float = 0.01) -> Tensor:
    return torch.leaky_relu(X, alpha)


def PRelu_6(X: Tensor, slope: Tensor) -> Tensor:
    # Before opset 7 a slope of one dimension belongs to the channels.
    if slope.dim() == 1 and X.dim() > 2:
        slope = slope.reshape([-1] + [1] * (X.dim() - 2))
    return torch.where(X < 0, X * slope, X)


def PRelu_7(X: Tensor, slope: Tensor) -> Tensor:
    return torch.where(X < 0, X * slope, X)


def ThresholdedRelu_10(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return torch.where(X > alpha, X, torch.zeros_like(X))


def HardSigmoid_1(X: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return torch.clamp(X * alpha + beta, 0, 1)


def HardSwish_14(X: Tensor) -> Tensor:
    return torch.hardswish(X)


def Softplus_1(X: Tensor) -> Tensor:
    # Without the straight line that torch.softplus goes over to.
    return torch.clamp(X, min=0) + torch.log1p(torch.exp(-torch.abs(X)))


def Softsign_1(X: Tensor) -> Tensor:
    return X / (torch.abs(X) + 1)


def Mish_18(X: Tensor) -> Tensor:
    return torch.mish(X)


def Swish_24(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    if alpha == 1.0:
        return torch.silu(X)
    return X * torch.sigmoid(X * alpha)


def SwiGLU_28(A: Tensor, B: Tensor, *, alpha: float = 1.0) -> Tensor:
    if A.shape != B.shape:
        raise RuntimeError("SwiGLU: A has shape {}, but B {}".format(A.shape, B.shape))
    return Swish_24(A, alpha=alpha) * B


def Gelu_20(X: Tensor, *, approximate: str = "none") -> Tensor:
    return torch.gelu(X, approximate=approximate)


def Shrink_9(X: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    zero = torch.zeros_like(X)
    return torch.where(X < -lambd, X + bias, torch.where(X > lambd, X - bias, zero)).to(X.dtype)


# ---- with two or more inputs


# Before opset 7 the dimensions of B begin at `axis` of A, or are the last ones.
def _aligned(A: Tensor, B: Tensor, axis: Optional[int]) -> Tensor:
    if axis is None or axis < 0:
        return B
    return torch.reshape(B, B.shape + [1] * (A.dim() - axis - B.dim()))


def Add_6(A: Tensor, B: Tensor, *, axis: Optional[int] = None, broadcast: int = 0) -> Tensor:
    return torch.add(A, _aligned(A, B, axis))


def Sub_6(A: Tensor, B: Tensor, *, axis: Optional[int] = None, broadcast: int = 0) -> Tensor:
    return torch.sub(A, _aligned(A, B, axis))


def Mul_6(A: Tensor, B: Tensor, *, axis: Optional[int] = None, broadcast: int = 0) -> Tensor:
    return torch.mul(A, _aligned(A, B, axis))


def Div_6(A: Tensor, B: Tensor, *, axis: Optional[int] = None, broadcast: int = 0) -> Tensor:
    return Div_7(A, _aligned(A, B, axis))


def Pow_1(X: Tensor, Y: Tensor, *, axis: Optional[int] = None, broadcast: int = 0) -> Tensor:
    return Pow_7(X, _aligned(X, Y, axis))


def Add_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.add(A, B)


def Sub_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.sub(A, B)


def Mul_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.mul(A, B)


# Integers are divided towards zero.
def Div_7(A: Tensor, B: Tensor) -> Tensor:
    if A.is_floating_point():
        return torch.div(A, B)
    return torch.div(A, B, rounding_mode="trunc")


def Mod_10(A: Tensor, B: Tensor, *, fmod: int = 0) -> Tensor:
    if fmod != 0:
        return torch.fmod(A, B)
    if A.is_floating_point():
        raise RuntimeError("Mod: floating types want fmod=1 before opset 28")
    return torch.remainder(A, B)


def Mod_28(A: Tensor, B: Tensor, *, fmod: int = 0) -> Tensor:
    if fmod != 0:
        return torch.fmod(A, B)
    result = torch.remainder(A, B)
    if A.is_floating_point():
        result = torch.where(result == 0, torch.copysign(torch.zeros_like(result), B), result)
    return result


# The result has the type of the base.
def Pow_7(X: Tensor, Y: Tensor) -> Tensor:
    return torch.pow(X, Y).to(X.dtype)


def And_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_and(A, B)


def Or_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_or(A, B)


def Xor_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_xor(A, B)


def Equal_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.eq(A, B)


def Less_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.lt(A, B)


def LessOrEqual_12(A: Tensor, B: Tensor) -> Tensor:
    return torch.le(A, B)


def Greater_7(A: Tensor, B: Tensor) -> Tensor:
    return torch.gt(A, B)


def GreaterOrEqual_12(A: Tensor, B: Tensor) -> Tensor:
    return torch.ge(A, B)


def BitwiseAnd_18(A: Tensor, B: Tensor) -> Tensor:
    return torch.bitwise_and(A, B)


def BitwiseOr_18(A: Tensor, B: Tensor) -> Tensor:
    return torch.bitwise_or(A, B)


def BitwiseXor_18(A: Tensor, B: Tensor) -> Tensor:
    return torch.bitwise_xor(A, B)


def BitwiseNot_18(X: Tensor) -> Tensor:
    return torch.bitwise_not(X)


# Shifts by a negative number, or by all bits and more, leave the sign alone.
def BitShift_11(X: Tensor, Y: Tensor, *, direction: str) -> Tensor:
    bits = X.element_size() * 8
    is_out = torch.logical_or(Y < 0, Y >= bits)
    by = torch.where(is_out, torch.zeros_like(Y), Y)
    if direction == "LEFT":
        return torch.where(is_out, torch.zeros_like(X), torch.bitwise_left_shift(X, by))
    shifted = torch.bitwise_right_shift(X, by)
    rest = torch.zeros_like(X)
    if X.dtype != torch.uint8:
        rest = torch.where(X < 0, torch.full_like(X, -1), rest)
    return torch.where(is_out, rest, shifted)


def BitCast_26(input: Tensor, *, to: int) -> Tensor:
    result = input.contiguous().view(dtype=to)
    if result.shape != input.shape:
        raise RuntimeError("BitCast: the types differ in size")
    return result


def Where_9(condition: Tensor, X: Tensor, Y: Tensor) -> Tensor:
    return torch.where(condition, X, Y)


def Max_6(data: List[Tensor]) -> Tensor:
    result = data[0]
    for i in range(1, len(data)):
        result = torch.maximum(result, data[i])
    return result


def Min_6(data: List[Tensor]) -> Tensor:
    result = data[0]
    for i in range(1, len(data)):
        result = torch.minimum(result, data[i])
    return result


def Sum_6(data: List[Tensor]) -> Tensor:
    result = data[0]
    for i in range(1, len(data)):
        result = result + data[i]
    return result


def Mean_6(data: List[Tensor]) -> Tensor:
    return Sum_6(data) / len(data)


def Clip_6(X: Tensor, *, min: Optional[float] = None, max: Optional[float] = None) -> Tensor:
    return _clip(X, min, max)


def Clip_11(X: Tensor, min: Optional[Tensor] = None, max: Optional[Tensor] = None) -> Tensor:
    if X.is_floating_point() and X.dtype != torch.float64:
        low: Optional[float] = None
        high: Optional[float] = None
        if min is not None:
            low = float(min)
        if max is not None:
            high = float(max)
        return _clip(X, low, high)
    if min is not None:
        X = torch.maximum(X, min)
    if max is not None:
        X = torch.minimum(X, max)
    return X


def _clip(X: Tensor, low: Optional[float], high: Optional[float]) -> Tensor:
    if low is None and high is None:
        return X
    return torch.clamp(X, low, high)


# ---- types


def Cast_6(input: Tensor, *, to: int) -> Tensor:
    return input.to(to)


# `saturate` and `round_mode` are for 8-bit floats, which no tensor here has.
def Cast_19(input: Tensor, *, to: int, saturate: int = 1) -> Tensor:
    return input.to(to)


def Cast_24(input: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return input.to(to)


def CastLike_15(input: Tensor, target_type: Tensor) -> Tensor:
    return input.to(target_type.dtype)


def CastLike_19(input: Tensor, target_type: Tensor, *, saturate: int = 1) -> Tensor:
    return input.to(target_type.dtype)


def CastLike_24(input: Tensor, target_type: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return input.to(target_type.dtype)
