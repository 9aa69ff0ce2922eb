# Reductions, sorting and running sums. Before opset 13 (ReduceSum) and 18 (the others) the axes are an attribute.


# None: no reduction at all.
def _axes(data: Tensor, axes: Optional[List[int]], noop: int) -> Optional[List[int]]:
    if axes is not None and len(axes) > 0:
        # An axis that appears twice is one.
        if len(axes) == 2 and axes[0] == axes[1]:
            return [axes[0]]
        return axes
    if noop != 0:
        return None
    every: List[int] = []
    for i in range(data.dim()):
        every.append(i)
    return every


def ReduceSum_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceSum_13(data, axes, keepdims=keepdims)


def ReduceSum_13(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    return torch.sum(data, over, keepdims != 0, dtype=data.dtype)


def ReduceMean_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceMean_18(data, axes, keepdims=keepdims)


def ReduceMean_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    if data.is_floating_point():
        return torch.mean(data, over, keepdims != 0)
    return torch.mean(data, over, keepdims != 0, dtype=torch.float64).to(data.dtype)


def ReduceMax_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceMax_18(data, axes, keepdims=keepdims)


def ReduceMax_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    if data.numel() == 0:
        return _of_nothing(data, over, keepdims != 0, _lowest(data))
    if data.dtype == torch.bool:
        return torch.amax(data.to(torch.uint8), over, keepdims != 0).to(torch.bool)
    return torch.amax(data, over, keepdims != 0)


def ReduceMin_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceMin_18(data, axes, keepdims=keepdims)


def ReduceMin_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    if data.numel() == 0:
        return _of_nothing(data, over, keepdims != 0, _highest(data))
    if data.dtype == torch.bool:
        return torch.amin(data.to(torch.uint8), over, keepdims != 0).to(torch.bool)
    return torch.amin(data, over, keepdims != 0)


# A sum gives the shape; its zeros are replaced.
def _of_nothing(data: Tensor, over: List[int], keepdims: bool, value: Tensor) -> Tensor:
    shape = torch.sum(data.to(torch.float32), over, keepdims).shape
    return value.expand(shape)


def _lowest(data: Tensor) -> Tensor:
    if data.is_floating_point():
        return torch.full([], -float("inf"), dtype=data.dtype)
    if data.dtype == torch.uint8 or data.dtype == torch.bool:
        return torch.zeros([], dtype=data.dtype)
    one = torch.ones([], dtype=data.dtype)
    return torch.bitwise_left_shift(one, data.element_size() * 8 - 1)


def _highest(data: Tensor) -> Tensor:
    if data.is_floating_point():
        return torch.full([], float("inf"), dtype=data.dtype)
    if data.dtype == torch.bool:
        return torch.ones([], dtype=data.dtype)
    return torch.bitwise_not(_lowest(data))


def ReduceProd_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceProd_18(data, axes, keepdims=keepdims)


def ReduceProd_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    if keepdims == 0 and len(over) == data.dim():
        return torch.prod(data, dtype=data.dtype)
    result = data
    for axis in over:
        result = torch.prod(result, axis, True, dtype=data.dtype)
    if keepdims != 0:
        return result
    return torch.reshape(result, torch.sum(data, over).shape)


# ---- ONNX defines these as functions of other operators


def ReduceL1_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceL1_18(data, axes, keepdims=keepdims)


def ReduceL1_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    return ReduceSum_13(torch.abs(data), axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)


def ReduceL2_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceL2_18(data, axes, keepdims=keepdims)


def ReduceL2_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    squares = data * data
    total = ReduceSum_13(squares, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    if total.is_floating_point():
        return torch.sqrt(total)
    return torch.sqrt(total.to(torch.float64)).to(data.dtype)


def ReduceSumSquare_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceSumSquare_18(data, axes, keepdims=keepdims)


def ReduceSumSquare_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    return ReduceSum_13(data * data, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)


def ReduceLogSum_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceLogSum_18(data, axes, keepdims=keepdims)


def ReduceLogSum_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    total = ReduceSum_13(data, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    if total.is_floating_point():
        return torch.log(total)
    return torch.log(total.to(torch.float64)).to(data.dtype)


def ReduceLogSumExp_1(data: Tensor, *, axes: Optional[List[int]] = None, keepdims: int = 1) -> Tensor:
    return ReduceLogSumExp_18(data, axes, keepdims=keepdims)


def ReduceLogSumExp_18(
    data: Tensor, axes: Optional[List[int]] = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    over = _axes(data, axes, noop_with_empty_axes)
    if over is None:
        return data
    if not data.is_floating_point():
        return torch.logsumexp(data.to(torch.float64), over, keepdims != 0).to(data.dtype)
    if data.numel() == 0:
        return torch.log(torch.sum(data, over, keepdims != 0))
    return torch.logsumexp(data, over, keepdims != 0)


# ---- indices of the largest


def ArgMax_1(data: Tensor, *, axis: int = 0, keepdims: int = 1) -> Tensor:
    return torch.argmax(data, axis, keepdims != 0)


def ArgMax_12(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    if select_last_index == 0:
        return torch.argmax(data, axis, keepdims != 0)
    return torch.rsub(torch.argmax(torch.flip(data, [axis]), axis, keepdims != 0), data.size(axis) - 1)


def ArgMin_1(data: Tensor, *, axis: int = 0, keepdims: int = 1) -> Tensor:
    return torch.argmin(data, axis, keepdims != 0)


def ArgMin_12(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    if select_last_index == 0:
        return torch.argmin(data, axis, keepdims != 0)
    return torch.rsub(torch.argmin(torch.flip(data, [axis]), axis, keepdims != 0), data.size(axis) - 1)


def TopK_1(X: Tensor, *, k: int, axis: int = -1) -> Tuple[Tensor, Tensor]:
    return TopK_11(X, k, axis=axis)


def TopK_10(X: Tensor, k: int, *, axis: int = -1) -> Tuple[Tensor, Tensor]:
    return TopK_11(X, k, axis=axis)


# Of equal elements the one with the lower index comes first.
def TopK_11(X: Tensor, k: int, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Tuple[Tensor, Tensor]:
    size = X.size(axis)
    if k < 0 or k > size:
        raise RuntimeError("TopK: k is {} for {} elements".format(k, size))
    values, indices = torch.sort(X, stable=True, dim=axis, descending=largest != 0)
    return torch.narrow(values, axis, 0, k), torch.narrow(indices, axis, 0, k)


def Hardmax_1(input: Tensor, *, axis: int = 1) -> Tensor:
    flat = _flat(input, axis)
    return torch.reshape(Hardmax_13(flat, axis=1), input.shape)


def Hardmax_13(input: Tensor, *, axis: int = -1) -> Tensor:
    at = torch.argmax(input, axis, True)
    return torch.scatter(torch.zeros_like(input), axis, at, 1)


# Before opset 13 the axis may not be the one after the last.
def _flat(input: Tensor, axis: int) -> Tensor:
    return __torch__.onnx.shapes.Flatten_1(input, axis=__torch__.onnx.shapes._axis(axis, input.dim()))


def Softmax_1(input: Tensor, *, axis: int = 1) -> Tensor:
    if axis == -1 or axis == input.dim() - 1:
        return torch.softmax(input, -1)
    return torch.reshape(torch.softmax(_flat(input, axis), 1), input.shape)


def Softmax_13(input: Tensor, *, axis: int = -1) -> Tensor:
    return torch.softmax(input, axis)


def LogSoftmax_1(input: Tensor, *, axis: int = 1) -> Tensor:
    if axis == -1 or axis == input.dim() - 1:
        return torch.log_softmax(input, -1)
    return torch.reshape(torch.log_softmax(_flat(input, axis), 1), input.shape)


def LogSoftmax_13(input: Tensor, *, axis: int = -1) -> Tensor:
    return torch.log_softmax(input, axis)


# ---- running sums


def CumSum_11(x: Tensor, axis: int, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    if reverse != 0:
        x = torch.flip(x, [axis])
    result = torch.cumsum(x, axis, dtype=x.dtype)
    if exclusive != 0:
        result = result - x if not x.is_floating_point() else _shifted(result, axis, 0)
    if reverse != 0:
        result = torch.flip(result, [axis])
    return result


def CumProd_26(x: Tensor, axis: int, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    if reverse != 0:
        x = torch.flip(x, [axis])
    result = torch.cumprod(x, axis, dtype=x.dtype)
    if exclusive != 0:
        result = _shifted(result, axis, 1)
    if reverse != 0:
        result = torch.flip(result, [axis])
    return result


def _shifted(x: Tensor, axis: int, first: int) -> Tensor:
    if x.size(axis) == 0:
        return x
    head = torch.full_like(torch.narrow(x, axis, 0, 1), first)
    return torch.cat([head, torch.narrow(x, axis, 0, x.size(axis) - 1)], axis)
