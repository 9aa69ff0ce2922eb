# Sampling, boxes.


def AffineGrid_20(theta: Tensor, size: List[int], *, align_corners: int = 0) -> Tensor:
    return torch.affine_grid_generator(theta, size, align_corners != 0)


def GridSample_16(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Tensor:
    return GridSample_20(X, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


def GridSample_20(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_size("dimensions of the grid", grid.dim(), X.dim())
        __torch__.onnx.linear._check_size("numbers of a point", grid.size(-1), X.dim() - 2)
    way = 2 if mode == "cubic" or mode == "bicubic" else (1 if mode == "nearest" else 0)
    outside = 2 if padding_mode == "reflection" else (1 if padding_mode == "border" else 0)
    return torch.grid_sampler(X, grid, way, outside, align_corners != 0)


def RoiAlign_10(
    X: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    return RoiAlign_16(
        X,
        rois,
        batch_indices,
        coordinate_transformation_mode="output_half_pixel",
        mode=mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )


def RoiAlign_16(
    X: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    if rois.dim() != 2 or rois.size(1) != 4 or batch_indices.dim() != 1 or batch_indices.size(0) != rois.size(0):
        raise RuntimeError("RoiAlign: rois has shape {}, batch_indices {}".format(rois.shape, batch_indices.shape))
    is_half = coordinate_transformation_mode == "half_pixel"
    offset = 0.5 if is_half else 0.0
    results: List[Tensor] = []
    for r in range(rois.size(0)):
        box = rois[r] * spatial_scale - offset
        x1, y1 = float(box[0]), float(box[1])
        width = float(box[2] - box[0])
        height = float(box[3] - box[1])
        if not is_half:
            width = max(width, 1.0)
            height = max(height, 1.0)
        # A box that ends before it begins has no samples.
        down = sampling_ratio if sampling_ratio > 0 else max(0, int(torch.ceil(height / output_height)))
        across = sampling_ratio if sampling_ratio > 0 else max(0, int(torch.ceil(width / output_width)))
        y_step = height / output_height / max(down, 1)
        x_step = width / output_width / max(across, 1)
        y = (torch.arange(output_height * down, dtype=torch.float32) + 0.5) * y_step + y1
        x = (torch.arange(output_width * across, dtype=torch.float32) + 0.5) * x_step + x1
        image = X[int(batch_indices[r])]
        if down == 0 or across == 0:
            results.append(torch.zeros([X.size(1), output_height, output_width], dtype=X.dtype))
        else:
            results.append(_roi(image, y, x, output_height, output_width, down, across, mode))
    if len(results) == 0:
        return torch.zeros([0, X.size(1), output_height, output_width], dtype=X.dtype)
    return torch.stack(results)


# Index of the lower neighbor, of the upper one, weight of the upper one, and whether the place is in the image.
def _neighbors(at: Tensor, size: int) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    inside = torch.logical_and(at >= -1.0, at <= float(size))
    at = torch.clamp(at, 0.0, float(size - 1))
    low = torch.floor(at)
    high = torch.clamp(low + 1, max=float(size - 1))
    return low.to(torch.int64), high.to(torch.int64), at - low, inside


def _roi(image: Tensor, y: Tensor, x: Tensor, height: int, width: int, down: int, across: int, mode: str) -> Tensor:
    y0, y1, wy, y_in = _neighbors(y, image.size(1))
    x0, x1, wx, x_in = _neighbors(x, image.size(2))
    wy = wy.to(image.dtype).unsqueeze(1)
    wx = wx.to(image.dtype)
    top = torch.index_select(image, 1, y0)
    bottom = torch.index_select(image, 1, y1)
    inside = torch.logical_and(y_in.unsqueeze(1), x_in).to(image.dtype)
    a = torch.index_select(top, 2, x0) * torch.rsub(wy, 1) * torch.rsub(wx, 1) * inside
    b = torch.index_select(top, 2, x1) * torch.rsub(wy, 1) * wx * inside
    c = torch.index_select(bottom, 2, x0) * wy * torch.rsub(wx, 1) * inside
    d = torch.index_select(bottom, 2, x1) * wy * wx * inside
    shape = [image.size(0), height, down, width, across]
    if mode == "avg":
        return torch.mean((a + b + c + d).reshape(shape), [2, 4])
    # ONNX's maximum is of the weighted corners, not of the sums.
    return torch.amax(torch.maximum(torch.maximum(a, b), torch.maximum(c, d)).reshape(shape), [2, 4])


# [y1, x1, y2, x2] in any order of the corners, or [x_center, y_center, width, height].
def NonMaxSuppression_10(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: Optional[float] = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    if boxes.dim() != 3 or scores.dim() != 3 or boxes.size(2) != 4 or boxes.size(1) != scores.size(2):
        raise RuntimeError("NonMaxSuppression: boxes has shape {}, scores {}".format(boxes.shape, scores.shape))
    first = torch.minimum(boxes[:, :, :2], boxes[:, :, 2:])
    last = torch.maximum(boxes[:, :, :2], boxes[:, :, 2:])
    if center_point_box != 0:
        first = boxes[:, :, :2] - boxes[:, :, 2:] / 2
        last = boxes[:, :, :2] + boxes[:, :, 2:] / 2
    kept: List[Tensor] = []
    for batch in range(boxes.size(0)):
        area = torch.prod(last[batch] - first[batch], 1)
        for c in range(scores.size(1)):
            score = scores[batch][c]
            order = torch.argsort(score, stable=True, dim=0, descending=True)
            if score_threshold is not None:
                order = order[torch.index_select(score, 0, order) > score_threshold]
            chosen: List[Tensor] = []
            while order.size(0) > 0 and len(chosen) < max_output_boxes_per_class:
                best = order[0]
                chosen.append(torch.stack([torch.full_like(best, batch), torch.full_like(best, c), best]))
                order = order[1:]
                low = torch.maximum(first[batch][best], first[batch][order])
                high = torch.minimum(last[batch][best], last[batch][order])
                overlap = torch.prod(torch.clamp(high - low, min=0), 1)
                together = area[best] + area[order] - overlap
                order = order[torch.logical_not(overlap > together * iou_threshold)]
            kept.extend(chosen)
    if len(kept) == 0:
        return torch.zeros([0, 3], dtype=torch.int64)
    return torch.stack(kept)


# image[batch, channels, height, width] at y and x [batch, down, across], between pixels linearly, zero outside.
def _sampled(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    height, width = image.size(2), image.size(3)
    flat = image.reshape([image.size(0), image.size(1), height * width])
    total = torch.zeros([image.size(0), image.size(1), y.size(1), y.size(2)], dtype=image.dtype)
    top = torch.floor(y)
    left = torch.floor(x)
    for i in range(2):
        for j in range(2):
            row = top + i
            column = left + j
            weight = torch.rsub(torch.abs(y - row), 1) * torch.rsub(torch.abs(x - column), 1)
            inside = torch.logical_and(
                torch.logical_and(row >= 0, row < height), torch.logical_and(column >= 0, column < width)
            )
            at = torch.clamp(row, 0, height - 1) * width + torch.clamp(column, 0, width - 1)
            index = at.to(torch.int64).reshape([y.size(0), 1, -1]).expand([y.size(0), image.size(1), -1])
            taken = torch.gather(flat, 2, index).reshape(total.shape)
            total = total + taken * torch.where(inside, weight, torch.zeros_like(weight)).unsqueeze(1)
    return total


def DeformConv_19(
    X: Tensor,
    W: Tensor,
    offset: Tensor,
    B: Optional[Tensor] = None,
    mask: Optional[Tensor] = None,
    *,
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    offset_group: int = 1,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    if X.dim() != 4:
        raise RuntimeError("DeformConv: only images of two dimensions are supported")
    stride = [1, 1] if strides is None else strides
    dilation = [1, 1] if dilations is None else dilations
    pad = [0, 0, 0, 0] if pads is None else pads
    batch, channels, height, width = X.size(0), X.size(1), X.size(2), X.size(3)
    rows, columns = W.size(2), W.size(3)
    down, across = offset.size(2), offset.size(3)
    each = channels // offset_group
    shifts = offset.reshape([batch, offset_group, rows * columns, 2, down, across])
    y0 = (torch.arange(down, dtype=X.dtype) * stride[0] - pad[0]).reshape([down, 1])
    x0 = (torch.arange(across, dtype=X.dtype) * stride[1] - pad[1]).reshape([1, across])
    groups: List[Tensor] = []
    for g in range(offset_group):
        part = torch.narrow(X, 1, g * each, each)
        taps: List[Tensor] = []
        for k in range(rows * columns):
            y = y0 + (k // columns) * dilation[0] + shifts[:, g, k, 0]
            x = x0 + (k % columns) * dilation[1] + shifts[:, g, k, 1]
            tap = _sampled(part, y, x)
            if mask is not None:
                tap = tap * mask[:, g * rows * columns + k].unsqueeze(1)
            taps.append(tap)
        groups.append(torch.stack(taps, 2))
    sampled = torch.cat(groups, 1)
    outputs = W.size(0)
    a = sampled.reshape([batch, group, channels // group * rows * columns, down * across])
    b = W.reshape([group, outputs // group, channels // group * rows * columns])
    result = torch.matmul(b, a).reshape([batch, outputs, down, across])
    if B is not None:
        result = result + B.reshape([-1, 1, 1])
    return result
