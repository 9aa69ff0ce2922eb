# Resize and Upsample: one dimension after the other, each by a matrix [outputs, inputs] or, for "nearest", by indices.


def Upsample_7(X: Tensor, *, mode: str = "nearest", scales: List[float]) -> Tensor:
    return Resize_10(X, scales, mode=mode)


def Upsample_9(X: Tensor, scales: List[float], *, mode: str = "nearest") -> Tensor:
    return Resize_10(X, scales, mode=mode)


def Resize_10(X: Tensor, scales: List[float], *, mode: str = "nearest") -> Tensor:
    if mode != "nearest":
        return Resize_11(X, None, scales, mode=mode, coordinate_transformation_mode="asymmetric")
    # The standard's tests of this version round down where a dimension grows and up where it shrinks.
    smaller: List[float] = []
    larger: List[float] = []
    for scale in scales:
        smaller.append(min(scale, 1.0))
        larger.append(max(scale, 1.0))
    X = Resize_11(X, None, smaller, coordinate_transformation_mode="asymmetric", nearest_mode="ceil")
    return Resize_11(X, None, larger, coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def Resize_11(
    X: Tensor,
    roi: Optional[List[float]] = None,
    scales: Optional[List[float]] = None,
    sizes: Optional[List[int]] = None,
    *,
    antialias: int = 0,
    axes: Optional[List[int]] = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    rank = X.dim()
    over: List[int] = []
    if axes is None:
        for i in range(rank):
            over.append(i)
    else:
        for axis in axes:
            over.append(__torch__.onnx.shapes._axis(axis, rank))
    if antialias != 0 and mode == "nearest":
        raise RuntimeError("Resize: antialias is for the modes linear and cubic")
    if __torch__.onnx.control._at_load():
        _check_resize(over, scales, sizes)
        is_cut = coordinate_transformation_mode == "tf_crop_and_resize"
        if is_cut and roi is not None and len(roi) != 0 and len(roi) != 2 * len(over):
            raise RuntimeError("Resize: roi wants {} numbers".format(2 * len(over)))
    factors: List[float] = []
    wanted: List[int] = []
    lengths: List[float] = []
    if sizes is not None and len(sizes) > 0:
        for i in range(len(over)):
            factors.append(float(sizes[i]) / float(X.size(over[i])))
        if keep_aspect_ratio_policy != "stretch":
            chosen = factors[0]
            for factor in factors:
                chosen = min(chosen, factor) if keep_aspect_ratio_policy == "not_larger" else max(chosen, factor)
            for i in range(len(over)):
                factors[i] = chosen
                wanted.append(int(torch.floor(chosen * X.size(over[i]) + 0.5)))
                lengths.append(chosen * X.size(over[i]))
        else:
            for size in sizes:
                wanted.append(size)
                lengths.append(float(size))
    elif scales is not None:
        for i in range(len(over)):
            factors.append(scales[i])
            lengths.append(scales[i] * X.size(over[i]))
            wanted.append(int(torch.floor(lengths[i])))
    else:
        raise RuntimeError("Resize: neither scales nor sizes are given")
    is_plain = antialias == 0 and exclude_outside == 0 and rank == 4 and len(over) == 4 and X.is_floating_point()
    if is_plain:
        is_half = coordinate_transformation_mode == "half_pixel" or (
            coordinate_transformation_mode == "pytorch_half_pixel" and wanted[2] > 1 and wanted[3] > 1
        )
        is_plain = is_half and factors[0] == 1.0 and factors[1] == 1.0
    if is_plain and mode == "linear":
        return torch.upsample_bilinear2d(X, wanted[2:], False, factors[2], factors[3])
    if is_plain and mode == "cubic" and cubic_coeff_a == -0.75:
        return torch.upsample_bicubic2d(X, wanted[2:], False, factors[2], factors[3])
    result = X
    for i in range(len(over)):
        size = X.size(over[i])
        if wanted[i] != size or factors[i] != 1.0 or coordinate_transformation_mode == "tf_crop_and_resize":
            first = 0.0
            last = 1.0
            if roi is not None and len(roi) == 2 * len(over):
                first = roi[i]
                last = roi[i + len(over)]
            x = _source(
                wanted[i], lengths[i], size, factors[i], coordinate_transformation_mode, first, last, mode == "nearest"
            )
            result = _resized(
                result, over[i], x, factors[i], mode, nearest_mode, antialias != 0, cubic_coeff_a, exclude_outside != 0
            )
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None and len(roi) > 0:
        for i in range(len(over)):
            size = X.size(over[i])
            x = _source(
                wanted[i], lengths[i], size, factors[i], "tf_crop_and_resize", roi[i], roi[i + len(over)], False
            )
            is_out = torch.logical_or(x < 0, x > size - 1).reshape([-1] + [1] * (rank - 1 - over[i]))
            result = torch.where(is_out, torch.full([], extrapolation_value, dtype=X.dtype), result)
    return result


def _check_resize(axes: List[int], scales: Optional[List[float]], sizes: Optional[List[int]]) -> None:
    count = len(axes)
    for i in range(count):
        if axes[i] in axes[:i]:
            raise RuntimeError("Resize: axis {} appears twice".format(axes[i]))
    has_sizes = sizes is not None and len(sizes) > 0
    if scales is not None and len(scales) > 0:
        if has_sizes:
            raise RuntimeError("Resize: scales and sizes are both given")
        if len(scales) != count:
            raise RuntimeError("Resize: scales has {} numbers for {} dimensions".format(len(scales), count))
        for scale in scales:
            if not scale > 0.0 or scale == float("inf"):
                raise RuntimeError("Resize: scales are {}".format(scales))
    elif not has_sizes:
        raise RuntimeError("Resize: neither scales nor sizes are given")
    if sizes is not None and has_sizes:
        if len(sizes) != count:
            raise RuntimeError("Resize: sizes has {} numbers for {} dimensions".format(len(sizes), count))
        for size in sizes:
            if size <= 0:
                raise RuntimeError("Resize: sizes are {}".format(sizes))


# Where in the input each output lies. Whole pixels are taken in float32, as PyTorch and ONNX Runtime do: with a scale of
# 1/3, which is not quite that, 3 lies at 9 then, and not before it.
def _source(
    count: int, length: float, size: int, scale: float, mode: str, first: float, last: float, is_nearest: bool
) -> Tensor:
    x = torch.arange(count, dtype=torch.float32 if is_nearest else torch.float64)
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners":
        # By the pixels that there are, as PyTorch and ONNX Runtime have it; the standard's own tests take the length.
        return x * ((size - 1) / (count - 1.0)) if count != 1 else torch.zeros_like(x)
    if mode == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if length > 1.0 else torch.zeros_like(x)
    if mode == "half_pixel_symmetric":
        center = float(size) / 2.0
        return (x + 0.5) / scale + (center * (1.0 - count / length) - 0.5)
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    # tf_crop_and_resize
    if count > 1:
        return x * ((last - first) * (size - 1) / (count - 1.0)) + first * (size - 1)
    return torch.full_like(x, 0.5 * (first + last) * (size - 1))


def _resized(
    X: Tensor,
    axis: int,
    x: Tensor,
    scale: float,
    mode: str,
    nearest_mode: str,
    antialias: bool,
    a: float,
    exclude_outside: bool,
) -> Tensor:
    size = X.size(axis)
    if mode == "nearest":
        x = x.to(torch.float64)
        if nearest_mode == "round_prefer_floor":
            at = torch.ceil(x - 0.5)
        elif nearest_mode == "round_prefer_ceil":
            at = torch.floor(x + 0.5)
        elif nearest_mode == "floor":
            at = torch.floor(x)
        else:
            at = torch.ceil(x)
        return torch.index_select(X, axis, torch.clamp(at, 0, size - 1).to(torch.int64))
    shrink = min(scale, 1.0) if antialias else 1.0
    reach = 1
    if mode == "cubic":
        reach = 2
    taps = int(torch.ceil(reach / shrink)) + 1
    at = torch.floor(x).unsqueeze(1) + torch.arange(1 - taps, taps + 1, dtype=torch.float64)
    distance = torch.abs(at - x.unsqueeze(1)) * shrink
    weight = torch.clamp(torch.rsub(distance, 1), min=0) if mode == "linear" else _cubic(distance, a)
    if exclude_outside:
        weight = torch.where(torch.logical_or(at < 0, at > size - 1), torch.zeros_like(weight), weight)
    weight = weight / torch.sum(weight, [1], True)
    empty = torch.zeros([x.size(0), size], dtype=torch.float64)
    matrix = torch.scatter_add(empty, 1, torch.clamp(at, 0, size - 1).to(torch.int64), weight)
    wide = X if X.is_floating_point() else X.to(torch.float32)
    moved = torch.matmul(torch.transpose(wide, axis, -1), torch.t(matrix).to(wide.dtype))
    moved = torch.transpose(moved, axis, -1)
    return moved if X.is_floating_point() else torch.round(moved).to(X.dtype)


def _cubic(d: Tensor, a: float) -> Tensor:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))
