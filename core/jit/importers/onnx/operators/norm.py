# Normalizations, dropout.


def _check_channels(scale: Tensor, B: Tensor, mean: Tensor, var: Tensor) -> None:
    if scale.dim() != 1 or B.dim() != 1 or mean.dim() != 1 or var.dim() != 1:
        raise RuntimeError("BatchNormalization: scale, B, mean and var have one dimension")
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_size("numbers of B", B.size(0), scale.size(0))
        __torch__.onnx.linear._check_size("numbers of the mean", mean.size(0), scale.size(0))
        __torch__.onnx.linear._check_size("numbers of the variance", var.size(0), scale.size(0))


def BatchNormalization_6(
    X: Tensor,
    scale: Tensor,
    B: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-05,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Tensor:
    if is_test == 0 or spatial == 0:
        raise RuntimeError("BatchNormalization: before opset 7 only is_test=1 and spatial=1 are supported")
    _check_channels(scale, B, mean, var)
    return torch.batch_norm(X, scale, B, mean, var, False, 0.0, epsilon, False)


def BatchNormalization_7(
    X: Tensor, scale: Tensor, B: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-05, momentum: float = 0.9
) -> Tensor:
    _check_channels(scale, B, mean, var)
    return torch.batch_norm(X, scale, B, mean, var, False, 0.0, epsilon, False)


def BatchNormalization_9(
    X: Tensor, scale: Tensor, B: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-05, momentum: float = 0.9
) -> Tensor:
    _check_channels(scale, B, mean, var)
    return torch.batch_norm(X, scale, B, mean, var, False, 0.0, epsilon, False)


def BatchNormalization_14(
    X: Tensor,
    scale: Tensor,
    B: Tensor,
    input_mean: Tensor,
    input_var: Tensor,
    *,
    epsilon: float = 1e-05,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Tuple[Tensor, Tensor, Tensor]:
    _check_channels(scale, B, input_mean, input_var)
    if training_mode == 0:
        mean = input_mean.to(X.dtype)
        var = input_var.to(X.dtype)
        result = torch.batch_norm(X, scale.to(X.dtype), B.to(X.dtype), mean, var, False, 0.0, epsilon, False)
        return result, input_mean, input_var
    axes = [0]
    for i in range(2, X.dim()):
        axes.append(i)
    shape = [-1] + [1] * (X.dim() - 2)
    mean = torch.mean(X, axes)
    var = torch.mean(torch.pow(X - mean.reshape(shape), 2), axes)
    result = (X - mean.reshape(shape)) / torch.sqrt(var.reshape(shape) + epsilon)
    result = result * scale.reshape(shape) + B.reshape(shape)
    return result, input_mean * momentum + mean * (1 - momentum), input_var * momentum + var * (1 - momentum)


def InstanceNormalization_6(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float = 1e-05) -> Tensor:
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_size("scale", scale.numel(), input.size(1))
        __torch__.onnx.linear._check_size("B", B.numel(), input.size(1))
    if input.dim() < 3:
        raise RuntimeError("InstanceNormalization: the input has {} dimensions".format(input.dim()))
    return torch.instance_norm(input, scale, B, None, None, True, 0.0, epsilon, False)


# Since opset 17; before it ONNX Runtime's optimizer writes it all the same.
def LayerNormalization_1(
    X: Tensor,
    Scale: Tensor,
    B: Optional[Tensor] = None,
    *,
    _outputs: int,
    axis: int = -1,
    epsilon: float = 1e-05,
    stash_type: int = 6,
) -> Tuple[Tensor, Tensor, Tensor]:
    if __torch__.onnx.control._at_load():
        axis = __torch__.onnx.shapes._axis(axis, X.dim())
    count = -axis if axis < 0 else X.dim() - axis
    shape = X.shape[X.dim() - count :]
    if _outputs == 1 and Scale.shape == shape and (B is None or B.shape == shape):
        return torch.layer_norm(X, shape, Scale, B, epsilon), X, X
    axes: List[int] = []
    for i in range(count):
        axes.append(-1 - i)
    x = X.to(stash_type)
    mean = torch.mean(x, axes, True)
    centered = x - mean
    inverse = torch.reciprocal(torch.sqrt(torch.mean(centered * centered, axes, True) + epsilon))
    result = (centered * inverse).to(X.dtype) * Scale
    if B is not None:
        result = result + B
    return result, mean, inverse


def RMSNormalization_23(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-05, stash_type: int = 6
) -> Tensor:
    if __torch__.onnx.control._at_load():
        axis = __torch__.onnx.shapes._axis(axis, X.dim())
    axes: List[int] = []
    for i in range(-axis if axis < 0 else X.dim() - axis):
        axes.append(-1 - i)
    x = X.to(stash_type)
    return (x / torch.sqrt(torch.mean(x * x, axes, True) + epsilon)).to(X.dtype) * scale


def _check_groups(X: Tensor, groups: int) -> None:
    if X.size(1) % groups != 0:
        raise RuntimeError("GroupNormalization: {} channels in {} groups".format(X.size(1), groups))


# Scale and bias are one number for each group before opset 21.
def GroupNormalization_18(
    X: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-05, num_groups: int
) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_groups(X, num_groups)
    each = X.size(1) // num_groups
    if scale.numel() != num_groups or bias.numel() != num_groups:
        raise RuntimeError(
            "GroupNormalization: {} scales and {} biases for {} groups".format(scale.numel(), bias.numel(), num_groups)
        )
    return torch.group_norm(X, num_groups, scale.repeat_interleave(each), bias.repeat_interleave(each), epsilon)


def GroupNormalization_21(
    X: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-05, num_groups: int, stash_type: int = 6
) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_groups(X, num_groups)
    return torch.group_norm(X, num_groups, scale, bias, epsilon)


def LRN_1(X: Tensor, *, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
    squares = X * X
    pads = [0] * (2 * (X.dim() - 1))
    pads[len(pads) - 2] = (size - 1) // 2
    pads[len(pads) - 1] = size - 1 - (size - 1) // 2
    padded = torch.constant_pad_nd(squares, pads)
    total = torch.narrow(padded, 1, 0, X.size(1))
    for i in range(1, size):
        total = total + torch.narrow(padded, 1, i, X.size(1))
    return X / torch.pow(total * (alpha / size) + bias, beta)


# A vector of zeros stays one.
def LpNormalization_1(input: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    if p == 1:
        length = torch.sum(torch.abs(input), [axis], True)
    else:
        length = torch.sqrt(torch.sum(input * input, [axis], True))
    return torch.where(length == 0, torch.zeros_like(input), input / length)


def MeanVarianceNormalization_9(X: Tensor, *, axes: Optional[List[int]] = None) -> Tensor:
    axes = [0, 2, 3] if axes is None else axes
    mean = torch.mean(X, axes, True)
    deviation = torch.sqrt(torch.mean(X * X, axes, True) - mean * mean)
    return (X - mean) / (deviation + 1e-09)


def Dropout_6(data: Tensor, *, is_test: int = 0, ratio: float = 0.5) -> Tuple[Tensor, Tensor]:
    if is_test == 0:
        raise RuntimeError("Dropout: before opset 7 only is_test=1 is supported")
    return data, torch.ones_like(data, dtype=torch.bool)


def Dropout_7(data: Tensor, *, ratio: float = 0.5) -> Tuple[Tensor, Tensor]:
    return data, torch.ones_like(data, dtype=torch.bool)


def Dropout_12(
    data: Tensor, ratio: Optional[float] = None, training_mode: bool = False, *, seed: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    p = 0.5 if ratio is None else ratio
    if p < 0.0 or p >= 1.0:
        raise RuntimeError("Dropout: ratio is {}".format(p))
    if not training_mode or p == 0.0:
        return data, torch.ones_like(data, dtype=torch.bool)
    kept = torch.rand(data.shape, dtype=torch.float32) >= p
    return data * kept.to(data.dtype) / (1.0 - p), kept
