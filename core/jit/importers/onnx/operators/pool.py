# Pooling.


# Pads that let the last window, which ceil_mode adds, end inside; a window that would start in the end pads is none.
def _pool_pads(
    sizes: List[int], kernel: List[int], stride: List[int], dilation: List[int], pads: List[int], ceil_mode: int
) -> List[int]:
    n = len(kernel)
    result = pads[:]
    if ceil_mode != 0:
        for i in range(n):
            window = dilation[i] * (kernel[i] - 1) + 1
            span = sizes[i] + pads[i] + pads[i + n] - window
            outputs = (span + stride[i] - 1) // stride[i] + 1
            if (outputs - 1) * stride[i] >= sizes[i] + pads[i]:
                outputs -= 1
            result[i + n] = max(pads[i + n], (outputs - 1) * stride[i] + window - sizes[i] - pads[i])
    return result


def _resolved_pads(
    auto_pad: str,
    X: Tensor,
    kernel: List[int],
    stride: List[int],
    dilation: List[int],
    pads: Optional[List[int]],
) -> List[int]:
    if auto_pad == "NOTSET":
        return [0] * (2 * len(kernel)) if pads is None else pads
    return __torch__.onnx.linear._auto_pads(auto_pad, X.shape[2:], kernel, stride, dilation)


def _check_pool(
    X: Tensor, kernel: List[int], strides: Optional[List[int]], dilations: Optional[List[int]], pads: Optional[List[int]]
) -> None:
    n = len(kernel)
    __torch__.onnx.linear._check_window(n, None, strides, dilations, pads)
    if not __torch__.onnx.control._at_load():
        return
    if pads is not None:
        for i in range(2 * n):
            if pads[i] >= kernel[i % n]:
                raise RuntimeError("pads are {}, but kernel_shape is {}".format(pads, kernel))
    if X.dim() != n + 2:
        raise RuntimeError("kernel_shape is {}, but the input has {} dimensions".format(kernel, X.dim()))


# What torch pads by itself: the same at both ends, at most half a window.
def _is_plain(pads: List[int], kernel: List[int]) -> bool:
    n = len(kernel)
    result = True
    for i in range(n):
        if pads[i] != pads[i + n] or pads[i] * 2 > kernel[i] or pads[i] < 0:
            result = False
    return result


def MaxPool_1(
    X: Tensor,
    *,
    _outputs: int,
    auto_pad: str = "NOTSET",
    kernel_shape: List[int],
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
    storage_order: int = 0,
    ceil_mode: int = 0,
    dilations: Optional[List[int]] = None,
) -> Tuple[Tensor, Tensor]:
    n = len(kernel_shape)
    _check_pool(X, kernel_shape, strides, dilations, pads)
    stride = [1] * n if strides is None else strides
    dilation = [1] * n if dilations is None else dilations
    padding = _resolved_pads(auto_pad, X, kernel_shape, stride, dilation, pads)
    if ceil_mode == 0 and _outputs == 1 and n <= 3 and _is_plain(padding, kernel_shape):
        return _max_pool(X, kernel_shape, stride, padding[:n], dilation), X
    padding = _pool_pads(X.shape[2:], kernel_shape, stride, dilation, padding, ceil_mode)
    lowest = __torch__.onnx.reduce._lowest(X)
    if X.is_floating_point():
        padded = torch.constant_pad_nd(X, __torch__.onnx.linear._torch_pads(padding), float(lowest))
    else:
        padded = torch.constant_pad_nd(X, __torch__.onnx.linear._torch_pads(padding), int(lowest))
    if _outputs == 1 and n <= 3 and X.is_floating_point():
        return _max_pool(padded, kernel_shape, stride, [0] * n, dilation), X
    windows, places = _windows(padded, X.shape[2:], kernel_shape, stride, dilation, padding, storage_order)
    values, at = torch.max(windows, -1)
    indices = torch.gather(places.expand(windows.shape), -1, at.unsqueeze(-1)).squeeze(-1)
    images = torch.arange(X.size(0) * X.size(1)).reshape([X.size(0), X.size(1)] + [1] * n)
    return values, indices + images * __torch__.onnx.shapes._product(X.shape[2:])


def _max_pool(X: Tensor, kernel: List[int], stride: List[int], padding: List[int], dilation: List[int]) -> Tensor:
    if X.is_floating_point():
        return _float_max_pool(X, kernel, stride, padding, dilation)
    return _float_max_pool(X.to(torch.float64), kernel, stride, padding, dilation).to(X.dtype)


def _float_max_pool(
    X: Tensor, kernel: List[int], stride: List[int], padding: List[int], dilation: List[int]
) -> Tensor:
    n = len(kernel)
    if n == 2:
        return torch.max_pool2d(X, kernel, stride, padding, dilation, False)
    if n == 1:
        return torch.max_pool1d(X, kernel, stride, padding, dilation, False)
    return torch.max_pool3d(X, kernel, stride, padding, dilation, False)


# All windows, their elements last, and for each element its number in the image before padding.
def _windows(
    padded: Tensor,
    sizes: List[int],
    kernel: List[int],
    stride: List[int],
    dilation: List[int],
    pads: List[int],
    storage_order: int,
) -> Tuple[Tensor, Tensor]:
    n = len(kernel)
    rank = 2 * n
    place = torch.zeros([1] * rank, dtype=torch.int64)
    number = torch.zeros([1] * rank, dtype=torch.int64)
    counts: List[int] = []
    for i in range(n):
        count = (padded.size(2 + i) - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        counts.append(count)
        outer = [1] * rank
        outer[i] = count
        inner = [1] * rank
        inner[n + i] = kernel[i]
        along = torch.arange(count).reshape(outer) * stride[i] + torch.arange(kernel[i]).reshape(inner) * dilation[i]
        place = place * padded.size(2 + i) + along
        if storage_order == 0:
            number = number * sizes[i] + (along - pads[i])
        else:
            number = number + (along - pads[i]) * __torch__.onnx.shapes._product(sizes[:i])
    flat = padded.reshape([padded.size(0), padded.size(1), -1])
    taken = torch.index_select(flat, 2, place.reshape([-1]))
    windows = taken.reshape([padded.size(0), padded.size(1)] + counts + [-1])
    return windows, number.reshape([1, 1] + counts + [-1])


def AveragePool_1(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    kernel_shape: List[int],
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
    count_include_pad: int = 0,
    ceil_mode: int = 0,
    dilations: Optional[List[int]] = None,
) -> Tensor:
    n = len(kernel_shape)
    _check_pool(X, kernel_shape, strides, dilations, pads)
    stride = [1] * n if strides is None else strides
    dilation = [1] * n if dilations is None else dilations
    padding = _resolved_pads(auto_pad, X, kernel_shape, stride, dilation, pads)
    if ceil_mode == 0 and n <= 3 and dilation == [1] * n and _is_plain(padding, kernel_shape):
        return _avg_pool(X, kernel_shape, stride, padding[:n], count_include_pad != 0)
    windows, counted = _averaged_windows(X, kernel_shape, stride, dilation, padding, ceil_mode, count_include_pad)
    return torch.sum(windows, [-1]) / counted


# One element after the other is added, which decides where the mean of integers is a half.
def _average_in_order(
    X: Tensor,
    auto_pad: str,
    kernel_shape: List[int],
    pads: Optional[List[int]],
    strides: Optional[List[int]],
    ceil_mode: int,
    count_include_pad: int,
) -> Tensor:
    n = len(kernel_shape)
    _check_pool(X, kernel_shape, strides, None, pads)
    stride = [1] * n if strides is None else strides
    dilation = [1] * n
    padding = _resolved_pads(auto_pad, X, kernel_shape, stride, dilation, pads)
    windows, counted = _averaged_windows(X, kernel_shape, stride, dilation, padding, ceil_mode, count_include_pad)
    total = torch.select(windows, -1, 0)
    for i in range(1, windows.size(-1)):
        total = total + torch.select(windows, -1, i)
    return total / counted


# The elements of each window, and how many of them count.
def _averaged_windows(
    X: Tensor,
    kernel_shape: List[int],
    stride: List[int],
    dilation: List[int],
    padding: List[int],
    ceil_mode: int,
    count_include_pad: int,
) -> Tuple[Tensor, Tensor]:
    n = len(kernel_shape)
    whole = _pool_pads(X.shape[2:], kernel_shape, stride, dilation, padding, ceil_mode)
    ones = torch.ones([1, 1] + X.shape[2:], dtype=X.dtype)
    if count_include_pad != 0:
        # What ceil_mode adds at the end never counts.
        ones = torch.constant_pad_nd(ones, __torch__.onnx.linear._torch_pads(padding), 1.0)
        more = [0] * (2 * n)
        for i in range(2 * n):
            more[i] = whole[i] - padding[i]
        ones = torch.constant_pad_nd(ones, __torch__.onnx.linear._torch_pads(more))
    else:
        ones = torch.constant_pad_nd(ones, __torch__.onnx.linear._torch_pads(whole))
    padded = torch.constant_pad_nd(X, __torch__.onnx.linear._torch_pads(whole))
    none = [0] * (2 * n)
    windows, unused = _windows(padded, X.shape[2:], kernel_shape, stride, dilation, none, 0)
    counted, unused2 = _windows(ones, X.shape[2:], kernel_shape, stride, dilation, none, 0)
    return windows, torch.sum(counted, [-1])


def _avg_pool(X: Tensor, kernel: List[int], stride: List[int], padding: List[int], counts_pads: bool) -> Tensor:
    n = len(kernel)
    if n == 2:
        return torch.avg_pool2d(X, kernel, stride, padding, False, counts_pads)
    if n == 1:
        return torch.avg_pool1d(X, kernel, stride, padding, False, counts_pads)
    return torch.avg_pool3d(X, kernel, stride, padding, False, counts_pads)


def LpPool_2(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    kernel_shape: List[int],
    p: int = 2,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
    ceil_mode: int = 0,
    dilations: Optional[List[int]] = None,
) -> Tensor:
    n = len(kernel_shape)
    _check_pool(X, kernel_shape, strides, dilations, pads)
    stride = [1] * n if strides is None else strides
    dilation = [1] * n if dilations is None else dilations
    padding = _resolved_pads(auto_pad, X, kernel_shape, stride, dilation, pads)
    padding = _pool_pads(X.shape[2:], kernel_shape, stride, dilation, padding, ceil_mode)
    padded = torch.constant_pad_nd(X, __torch__.onnx.linear._torch_pads(padding))
    windows, unused = _windows(padded, X.shape[2:], kernel_shape, stride, dilation, padding, 0)
    return torch.pow(torch.sum(torch.pow(torch.abs(windows), p), [-1]), 1.0 / p)


def _spatial(X: Tensor) -> List[int]:
    if X.dim() < 3:
        raise RuntimeError("the input has {} dimensions and should have 3 at least".format(X.dim()))
    axes: List[int] = []
    for i in range(2, X.dim()):
        axes.append(i)
    return axes


def GlobalAveragePool_1(X: Tensor) -> Tensor:
    if X.dim() == 4:
        return torch.adaptive_avg_pool2d(X, [1, 1])
    return torch.mean(X, _spatial(X), True)


def GlobalMaxPool_1(X: Tensor) -> Tensor:
    return torch.amax(X, _spatial(X), True)


def GlobalLpPool_2(X: Tensor, *, p: int = 2) -> Tensor:
    return torch.pow(torch.sum(torch.pow(torch.abs(X), p), _spatial(X), True), 1.0 / p)


# `I` are numbers of elements in the whole output that kernel, strides and pads give.
def MaxUnpool_9(
    X: Tensor,
    I: Tensor,
    output_shape: Optional[List[int]] = None,
    *,
    kernel_shape: List[int],
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    n = len(kernel_shape)
    __torch__.onnx.linear._check_window(n, None, strides, None, pads)
    if X.dim() != n + 2:
        raise RuntimeError("MaxUnpool: kernel_shape is {} for {} dimensions".format(kernel_shape, X.dim()))
    if X.shape != I.shape:
        raise RuntimeError("MaxUnpool: X has shape {}, but I {}".format(X.shape, I.shape))
    if pads is not None and __torch__.onnx.control._at_load():
        for i in range(2 * n):
            if pads[i] >= kernel_shape[i % n]:
                raise RuntimeError("pads are {}, but kernel_shape is {}".format(pads, kernel_shape))
    if output_shape is not None and len(output_shape) != n + 2:
        raise RuntimeError("MaxUnpool: output_shape is {}".format(output_shape))
    shape = X.shape[:2]
    for i in range(n):
        stride = 1 if strides is None else strides[i]
        size = (X.size(2 + i) - 1) * stride + kernel_shape[i]
        if pads is not None:
            size -= pads[i] + pads[i + n]
        if size <= 0:
            raise RuntimeError("MaxUnpool: the output has size {}".format(size))
        shape.append(size)
    flat = torch.zeros([__torch__.onnx.shapes._product(shape)], dtype=X.dtype)
    image = torch.scatter(flat, 0, I.reshape([-1]), X.reshape([-1])).reshape(shape)
    if output_shape is None:
        return image
    order: List[int] = []
    for i in range(n):
        at = 1 + n - i
        order.append(0)
        order.append(output_shape[at] - shape[at])
    return torch.constant_pad_nd(image, order)


# Halves go away from 0, as C's round does, which Caffe and ONNX Runtime call.
def _rounded(x: Tensor) -> int:
    return int(torch.sign(x) * torch.floor(torch.abs(x.to(torch.float64)) + 0.5))


# Where bins begin and end. In float32, as others do it: the last bin of 7 in 3 ends at 7.
def _bin_edges(first: int, size: int, bins: int, limit: int) -> Tuple[List[int], List[int]]:
    width = torch.full([], float(max(1, size)), dtype=torch.float32) / bins
    low = torch.floor(torch.arange(bins, dtype=torch.float32) * width) + first
    high = torch.ceil(torch.arange(1, bins + 1, dtype=torch.float32) * width) + first
    begins: List[int] = torch.clamp(low, 0, limit).to(torch.int64).tolist()
    ends: List[int] = torch.clamp(high, 0, limit).to(torch.int64).tolist()
    return begins, ends


def MaxRoiPool_1(X: Tensor, rois: Tensor, *, pooled_shape: List[int], spatial_scale: float = 1.0) -> Tensor:
    if len(pooled_shape) != 2 or rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError("MaxRoiPool: pooled_shape is {} and rois has shape {}".format(pooled_shape, rois.shape))
    results: List[Tensor] = []
    height, width = X.size(2), X.size(3)
    for r in range(rois.size(0)):
        image = X[int(rois[r][0])]
        box = rois[r] * spatial_scale
        x1, y1 = _rounded(box[1]), _rounded(box[2])
        lefts, rights = _bin_edges(x1, _rounded(box[3]) - x1 + 1, pooled_shape[1], width)
        tops, bottoms = _bin_edges(y1, _rounded(box[4]) - y1 + 1, pooled_shape[0], height)
        cells: List[Tensor] = []
        for i in range(pooled_shape[0]):
            top, bottom = tops[i], bottoms[i]
            for j in range(pooled_shape[1]):
                left, right = lefts[j], rights[j]
                if bottom > top and right > left:
                    cells.append(torch.amax(image[:, top:bottom, left:right], [1, 2]))
                else:
                    cells.append(torch.zeros([X.size(1)], dtype=X.dtype))
        results.append(torch.stack(cells, 1).reshape([X.size(1)] + pooled_shape))
    if len(results) == 0:
        return torch.zeros([0, X.size(1)] + pooled_shape, dtype=X.dtype)
    return torch.stack(results)
