# Operators that change the shape, take parts or put parts together. Inputs of a type other than Tensor are read from
# their tensor: at load where it is a constant.


def _axis(axis: int, rank: int) -> int:
    if axis < -rank or axis >= rank:
        raise RuntimeError("axis {} is out of range for {} dimensions".format(axis, rank))
    return axis + rank if axis < 0 else axis


def _product(sizes: List[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def Shape_1(data: Tensor) -> Tensor:
    return torch._shape_as_tensor(data)


def Shape_15(data: Tensor, *, start: int = 0, end: Optional[int] = None) -> Tensor:
    if start == 0 and end is None:
        return torch._shape_as_tensor(data)
    rank = data.dim()
    last = rank if end is None else end
    first = max(0, min(start + rank if start < 0 else start, rank))
    last = max(first, min(last + rank if last < 0 else last, rank))
    return torch._shape_as_tensor(data)[first:last]


def Size_1(data: Tensor) -> Tensor:
    return torch.tensor(data.numel(), dtype=torch.int64)


def Reshape_5(data: Tensor, shape: List[int]) -> Tensor:
    return _reshape(data, shape)


def Reshape_14(data: Tensor, shape: List[int], *, allowzero: int = 0) -> Tensor:
    if allowzero != 0:
        if 0 in shape and -1 in shape:
            raise RuntimeError("Reshape: 0 and -1 in one shape with allowzero")
        return torch.reshape(data, shape)
    return _reshape(data, shape)


# 0 stands for the size that is there.
def _reshape(data: Tensor, shape: List[int]) -> Tensor:
    if 0 not in shape:
        return torch.reshape(data, shape)
    sizes: List[int] = []
    for i in range(len(shape)):
        sizes.append(data.size(i) if shape[i] == 0 else shape[i])
    return torch.reshape(data, sizes)


def Flatten_1(input: Tensor, *, axis: int = 1) -> Tensor:
    if axis == 1 and input.dim() > 1:
        return torch.flatten(input, 1)
    rank = input.dim()
    if axis < -rank or axis > rank:
        raise RuntimeError("Flatten: axis {} is out of range for {} dimensions".format(axis, rank))
    at = axis + rank if axis < 0 else axis
    shape = input.shape
    return torch.reshape(input, [_product(shape[:at]), _product(shape[at:])])


def Transpose_1(data: Tensor, *, perm: Optional[List[int]] = None) -> Tensor:
    if perm is None:
        order: List[int] = []
        for i in range(data.dim()):
            order.append(data.dim() - 1 - i)
        return torch.permute(data, order)
    if __torch__.onnx.control._at_load():
        for axis in perm:
            if axis < 0:
                raise RuntimeError("Transpose: perm is {}".format(perm))
    return torch.permute(data, perm)


def Squeeze_1(data: Tensor, *, axes: Optional[List[int]] = None) -> Tensor:
    return _squeeze(data, axes)


def Squeeze_13(data: Tensor, axes: Optional[List[int]] = None) -> Tensor:
    return _squeeze(data, axes)


def _squeeze(data: Tensor, axes: Optional[List[int]]) -> Tensor:
    if axes is None:
        return torch.squeeze(data)
    if len(axes) == 1:
        if data.size(axes[0]) != 1:
            raise RuntimeError("Squeeze: dimension {} has size {}".format(axes[0], data.size(axes[0])))
        return torch.squeeze(data, axes[0])
    rank = data.dim()
    dropped = [False] * rank
    for axis in axes:
        dropped[_axis(axis, rank)] = True
    sizes: List[int] = []
    for i in range(rank):
        if not dropped[i]:
            sizes.append(data.size(i))
        elif data.size(i) != 1:
            raise RuntimeError("Squeeze: dimension {} has size {}".format(i, data.size(i)))
    return torch.reshape(data, sizes)


def Unsqueeze_1(data: Tensor, *, axes: List[int]) -> Tensor:
    return _unsqueeze(data, axes)


def Unsqueeze_13(data: Tensor, axes: List[int]) -> Tensor:
    return _unsqueeze(data, axes)


# Axes are those of the result.
def _unsqueeze(data: Tensor, axes: List[int]) -> Tensor:
    if len(axes) == 1:
        return torch.unsqueeze(data, axes[0])
    rank = data.dim() + len(axes)
    is_new = [False] * rank
    for axis in axes:
        at = _axis(axis, rank)
        if is_new[at]:
            raise RuntimeError("Unsqueeze: axis {} appears twice".format(axis))
        is_new[at] = True
    sizes: List[int] = []
    next = 0
    for i in range(rank):
        if is_new[i]:
            sizes.append(1)
        else:
            sizes.append(data.size(next))
            next += 1
    return torch.reshape(data, sizes)


# Sizes of 1 keep what is there; the shape may have fewer dimensions than the input.
def Expand_8(input: Tensor, shape: List[int]) -> Tensor:
    if len(shape) == 0:
        return input
    sizes: List[int] = []
    extra = len(shape) - input.dim()
    if __torch__.onnx.control._at_load():
        for size in shape:
            if size < 0:
                raise RuntimeError("Expand: shape is {}".format(shape))
        for i in range(1, min(input.dim(), len(shape)) + 1):
            size = input.size(-i)
            if size != 1 and shape[-i] != 1 and size != shape[-i]:
                raise RuntimeError("Expand: a size of {} becomes {}".format(size, shape[-i]))
    for i in range(len(shape)):
        sizes.append(input.size(i - extra) if shape[i] == 1 and i >= extra else shape[i])
    if extra < 0:
        return input.expand(input.shape[:-extra] + sizes)
    return input.expand(sizes)


def Concat_4(inputs: List[Tensor], *, axis: int) -> Tensor:
    return torch.cat(inputs, axis)


def Split_1(input: Tensor, split: Optional[List[int]] = None, *, _outputs: int, axis: int = 0) -> List[Tensor]:
    return _split(input, split, axis, _outputs, False)


def Split_2(input: Tensor, *, _outputs: int, axis: int = 0, split: Optional[List[int]] = None) -> List[Tensor]:
    return _split(input, split, axis, _outputs, False)


def Split_13(input: Tensor, split: Optional[List[int]] = None, *, _outputs: int, axis: int = 0) -> List[Tensor]:
    return _split(input, split, axis, _outputs, False)


def Split_18(
    input: Tensor,
    split: Optional[List[int]] = None,
    *,
    _outputs: int,
    axis: int = 0,
    num_outputs: Optional[int] = None,
) -> List[Tensor]:
    if num_outputs is not None and num_outputs != _outputs:
        raise RuntimeError("Split: num_outputs is {}, but the node has {} outputs".format(num_outputs, _outputs))
    if num_outputs is not None and split is not None:
        raise RuntimeError("Split: split and num_outputs are both given")
    return _split(input, split, axis, _outputs, num_outputs is not None)


def _split(input: Tensor, split: Optional[List[int]], axis: int, outputs: int, is_last_smaller: bool) -> List[Tensor]:
    if split is not None:
        if len(split) != outputs:
            raise RuntimeError("Split: split is {}, but the node has {} outputs".format(split, outputs))
        return torch.split_with_sizes(input, split, axis)
    size = input.size(axis)
    if is_last_smaller and outputs > size:
        raise RuntimeError("Split: num_outputs is {} for a size of {}".format(outputs, size))
    if size % outputs == 0:
        return torch.split(input, size // outputs, axis) if size > 0 else [input] * outputs
    if not is_last_smaller:
        raise RuntimeError("Split: {} cannot be split into {} equal parts".format(size, outputs))
    part = (size + outputs - 1) // outputs
    sizes: List[int] = []
    for i in range(outputs):
        sizes.append(max(0, min(part, size - i * part)))
    return torch.split_with_sizes(input, sizes, axis)


def Slice_1(data: Tensor, *, starts: List[int], ends: List[int], axes: Optional[List[int]] = None) -> Tensor:
    return _slice(data, starts, ends, axes, None)


def Slice_10(
    data: Tensor,
    starts: List[int],
    ends: List[int],
    axes: Optional[List[int]] = None,
    steps: Optional[List[int]] = None,
) -> Tensor:
    return _slice(data, starts, ends, axes, steps)


def _slice(
    data: Tensor, starts: List[int], ends: List[int], axes: Optional[List[int]], steps: Optional[List[int]]
) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_slice(data.dim(), starts, ends, axes, steps)
    for i in range(len(starts)):
        axis = i if axes is None else axes[i]
        step = 1 if steps is None else steps[i]
        if step == 0:
            raise RuntimeError("Slice: a step is 0")
        if step > 0:
            data = torch.slice(data, axis, starts[i], ends[i], step)
        else:
            data = _slice_back(data, axis, starts[i], ends[i], step)
    return data


def _check_slice(
    rank: int, starts: List[int], ends: List[int], axes: Optional[List[int]], steps: Optional[List[int]]
) -> None:
    n = len(starts)
    if len(ends) != n or (axes is not None and len(axes) != n) or (steps is not None and len(steps) != n):
        raise RuntimeError("Slice: starts, ends, axes and steps differ in length")
    if axes is not None:
        for i in range(n):
            for j in range(i):
                if _axis(axes[i], rank) == _axis(axes[j], rank):
                    raise RuntimeError("Slice: axis {} appears twice".format(axes[i]))


# A slice with a negative step is one of the flipped tensor: element k is then element size - 1 - k.
def _slice_back(data: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    size = data.size(axis)
    if start < 0:
        start += size
    if end < 0:
        end += size
    start = max(-1, min(start, size - 1))
    end = max(-1, min(end, size - 1))
    return torch.slice(torch.flip(data, [axis]), axis, size - 1 - start, max(size - 1 - end, size - 1 - start), -step)


def Tile_6(input: Tensor, repeats: List[int]) -> Tensor:
    if len(repeats) != input.dim():
        raise RuntimeError("Tile: {} repeats for {} dimensions".format(len(repeats), input.dim()))
    return input.repeat(repeats)


def DepthToSpace_1(input: Tensor, *, blocksize: int) -> Tensor:
    return DepthToSpace_11(input, blocksize=blocksize)


def DepthToSpace_11(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    if mode == "CRD":
        return torch.pixel_shuffle(input, blocksize)
    if __torch__.onnx.control._at_load() and input.size(1) % (blocksize * blocksize) != 0:
        raise RuntimeError("DepthToSpace: blocksize is {} for {} channels".format(blocksize, input.size(1)))
    if input.dim() != 4:
        raise RuntimeError("DepthToSpace: the input has {} dimensions, not 4".format(input.dim()))
    n, c, h, w = input.size(0), input.size(1), input.size(2), input.size(3)
    parts = input.reshape([n, blocksize, blocksize, c // (blocksize * blocksize), h, w])
    return parts.permute([0, 3, 4, 1, 5, 2]).reshape([n, c // (blocksize * blocksize), h * blocksize, w * blocksize])


def DepthToSpace_28(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    return DepthToSpace_11(input, blocksize=blocksize, mode=mode)


def SpaceToDepth_1(input: Tensor, *, blocksize: int) -> Tensor:
    if input.dim() != 4:
        raise RuntimeError("SpaceToDepth: the input has {} dimensions, not 4".format(input.dim()))
    if __torch__.onnx.control._at_load():
        for size in input.shape[2:]:
            if size % blocksize != 0:
                raise RuntimeError("SpaceToDepth: blocksize is {} for a size of {}".format(blocksize, size))
    n, c, h, w = input.size(0), input.size(1), input.size(2), input.size(3)
    parts = input.reshape([n, c, h // blocksize, blocksize, w // blocksize, blocksize])
    return parts.permute([0, 3, 5, 1, 2, 4]).reshape([n, c * blocksize * blocksize, h // blocksize, w // blocksize])


def SpaceToDepth_28(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    if mode == "CRD":
        return torch.pixel_unshuffle(input, blocksize)
    return SpaceToDepth_1(input, blocksize=blocksize)


# ---- padding


def Pad_2(data: Tensor, *, pads: List[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return _pad(data, pads, mode, torch.full([], value, dtype=data.dtype), None)


def Pad_11(
    data: Tensor, pads: List[int], constant_value: Optional[Tensor] = None, *, mode: str = "constant"
) -> Tensor:
    return _pad(data, pads, mode, constant_value, None)


def Pad_18(
    data: Tensor,
    pads: List[int],
    constant_value: Optional[Tensor] = None,
    axes: Optional[List[int]] = None,
    *,
    mode: str = "constant",
) -> Tensor:
    return _pad(data, pads, mode, constant_value, axes)


def _pad(data: Tensor, pads: List[int], mode: str, value: Optional[Tensor], axes: Optional[List[int]]) -> Tensor:
    rank = data.dim()
    count = rank if axes is None else len(axes)
    if len(pads) != 2 * count:
        raise RuntimeError("Pad: pads has {} numbers for {} dimensions".format(len(pads), count))
    begin = [0] * rank
    end = [0] * rank
    is_padded = [False] * rank
    for i in range(count):
        axis = i if axes is None else _axis(axes[i], rank)
        if is_padded[axis]:
            raise RuntimeError("Pad: axis {} appears twice".format(axis))
        is_padded[axis] = True
        begin[axis] = pads[i]
        end[axis] = pads[i + count]
    if mode == "constant":
        # From the last dimension to the first, as torch wants it.
        order: List[int] = []
        for i in range(rank):
            order.append(begin[rank - 1 - i])
            order.append(end[rank - 1 - i])
        if value is None:
            return torch.constant_pad_nd(data, order)
        if data.dtype == torch.bool:
            return torch.constant_pad_nd(data.to(torch.uint8), order, int(value)).to(torch.bool)
        if data.is_floating_point():
            return torch.constant_pad_nd(data, order, float(value))
        return torch.constant_pad_nd(data, order, int(value))
    for axis in range(rank):
        # What negative pads cut off is not there to be repeated.
        first, last = max(0, -begin[axis]), max(0, -end[axis])
        if first > 0 or last > 0:
            data = torch.narrow(data, axis, first, data.size(axis) - first - last)
        before, after = max(0, begin[axis]), max(0, end[axis])
        if before > 0 or after > 0:
            size = data.size(axis)
            if size == 0 or (mode == "reflect" and (before >= size or after >= size)):
                raise RuntimeError("Pad: {} of {} and {} for a size of {}".format(mode, before, after, size))
            data = torch.index_select(data, axis, _pad_index(size, before, after, mode))
    return data


# Which element of a dimension each place of the padded one takes.
def _pad_index(size: int, begin: int, end: int, mode: str) -> Tensor:
    at = torch.arange(-begin, size + end)
    if mode == "edge":
        return torch.clamp(at, 0, size - 1)
    if mode == "wrap":
        return torch.remainder(at, size)
    at = torch.remainder(at, 2 * (size - 1))
    return torch.where(at >= size, torch.rsub(at, 2 * (size - 1)), at)


def CenterCropPad_18(input_data: Tensor, shape: List[int], *, axes: Optional[List[int]] = None) -> Tensor:
    if len(shape) != (input_data.dim() if axes is None else len(axes)):
        raise RuntimeError("CenterCropPad: shape has {} numbers".format(len(shape)))
    for i in range(len(shape)):
        axis = i if axes is None else axes[i]
        size = input_data.size(axis)
        wanted = shape[i]
        if size > wanted:
            input_data = torch.narrow(input_data, axis, (size - wanted) // 2, wanted)
        elif size < wanted:
            before = (wanted - size) // 2
            rank = input_data.dim()
            pads = [0] * (2 * rank)
            pads[_axis(axis, rank)] = before
            pads[_axis(axis, rank) + rank] = wanted - size - before
            input_data = _pad(input_data, pads, "constant", None, None)
    return input_data


# ---- made from nothing


def ConstantOfShape_9(input: List[int], *, value: Optional[Tensor] = None) -> Tensor:
    if value is None:
        return torch.zeros(input, dtype=torch.float32)
    return value.reshape([1] * len(input)).expand(input)


def Range_11(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    if float(delta) == 0.0:
        raise RuntimeError("Range: delta is 0")
    if start.is_floating_point():
        first = start.reshape([]).to(torch.float64)
        step = delta.reshape([]).to(torch.float64)
        count = max(0, int(torch.ceil((limit.reshape([]).to(torch.float64) - first) / step)))
        if start.dtype == torch.float64 or start.dtype == torch.float32:
            return start.reshape([]) + torch.arange(count, dtype=start.dtype) * delta.reshape([])
        return (first + torch.arange(count, dtype=torch.float64) * step).to(start.dtype)
    first_int, last_int, step_int = int(start), int(limit), int(delta)
    if (last_int - first_int > 0) != (step_int > 0):
        return torch.zeros([0], dtype=start.dtype)
    return torch.arange(first_int, last_int, step_int, dtype=start.dtype)


def Range_27(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 6) -> Tensor:
    return Range_11(start, limit, delta)


def EyeLike_9(input: Tensor, *, dtype: Optional[int] = None, k: int = 0) -> Tensor:
    if input.dim() != 2:
        raise RuntimeError("EyeLike: the input has {} dimensions, not 2".format(input.dim()))
    rows = torch.arange(input.size(0)).unsqueeze(1)
    columns = torch.arange(input.size(1))
    return torch.eq(columns - rows, k).to(input.dtype if dtype is None else dtype)


def Trilu_14(input: Tensor, k: int = 0, *, upper: int = 1) -> Tensor:
    if upper != 0:
        return torch.triu(input, k)
    return torch.tril(input, k)


def OneHot_9(indices: Tensor, depth: int, values: Tensor, *, axis: int = -1) -> Tensor:
    if depth <= 0:
        raise RuntimeError("OneHot: depth is {}".format(depth))
    if values.dim() != 1 or values.size(0) != 2:
        raise RuntimeError("OneHot: values has shape {}, not [2]".format(values.shape))
    rank = indices.dim() + 1
    at = _axis(axis, rank)
    classes = torch.arange(depth, dtype=torch.int64)
    shape = [1] * rank
    shape[at] = depth
    wanted = indices.to(torch.int64)
    wanted = torch.where(wanted < 0, wanted + depth, wanted)
    return torch.where(torch.eq(torch.unsqueeze(wanted, at), classes.reshape(shape)), values[1], values[0])


def OneHot_28(indices: Tensor, depth: int, values: Tensor, *, axis: int = -1) -> Tensor:
    return OneHot_9(indices, depth, values, axis=axis)
