# Operators that read or write elements by index. Negative indices count from the end.


def _not_negative(indices: Tensor, size: int) -> Tensor:
    return torch.where(indices < 0, indices + size, indices)


# Of indices that are known.
def _check_indices(indices: Tensor, size: int) -> None:
    if bool(torch.any(torch.logical_or(indices < -size, indices >= size))):
        raise RuntimeError("an index is out of range for a dimension of size {}".format(size))


def Gather_1(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    if __torch__.onnx.control._at_load():
        _check_indices(indices, data.size(axis))
    if indices.dim() == 0:
        return torch.select(data, axis, int(indices))
    if indices.dtype != torch.int64:
        indices = indices.to(torch.int64)
    if axis == 0:
        return data[indices]
    flat = _not_negative(indices.reshape([-1]), data.size(axis))
    at = axis + data.dim() if axis < 0 else axis
    taken = torch.index_select(data, at, flat)
    if indices.dim() == 1:
        return taken
    return taken.reshape(data.shape[:at] + indices.shape + data.shape[at + 1 :])


def GatherElements_11(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    if data.dim() != indices.dim():
        raise RuntimeError("GatherElements: data has {} dimensions, indices {}".format(data.dim(), indices.dim()))
    if __torch__.onnx.control._at_load():
        _check_indices(indices, data.size(axis))
        for i in range(data.dim()):
            if i != __torch__.onnx.shapes._axis(axis, data.dim()) and indices.size(i) > data.size(i):
                raise RuntimeError("GatherElements: {} indices for a size of {}".format(indices.size(i), data.size(i)))
    return torch.gather(data, axis, _not_negative(indices.to(torch.int64), data.size(axis)))


# The last dimension of `indices` names an element of the first dimensions of `shape`: its number among them.
def _linear_index(indices: Tensor, shape: List[int]) -> Tensor:
    indices = indices.to(torch.int64)
    count = indices.size(-1)
    result = torch.zeros(indices.shape[:-1], dtype=torch.int64)
    for i in range(count):
        at = torch.select(indices, -1, i)
        if __torch__.onnx.control._at_load():
            _check_indices(at, shape[i])
        elif bool(torch.any(torch.logical_or(at < -shape[i], at >= shape[i]))):
            raise RuntimeError("an index is out of range for a dimension of size {}".format(shape[i]))
        result = result * shape[i] + _not_negative(at, shape[i])
    return result


def GatherND_11(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    shape = data.shape
    count = indices.size(-1)
    if batch_dims + count > len(shape) or batch_dims >= indices.dim():
        raise RuntimeError("GatherND: {} numbers name an element of {} dimensions".format(batch_dims + count, len(shape)))
    for i in range(batch_dims):
        if indices.size(i) != shape[i]:
            raise RuntimeError("GatherND: batches of {} and {}".format(indices.size(i), shape[i]))
    batch = __torch__.onnx.shapes._product(shape[:batch_dims])
    row = __torch__.onnx.shapes._product(shape[batch_dims : batch_dims + count])
    rest = shape[batch_dims + count :]
    # The sizes say what -1 cannot where one is 0.
    flat = data.reshape([batch * row] + rest)
    at = _linear_index(indices, shape[batch_dims:])
    if batch_dims > 0:
        first = torch.arange(batch, dtype=torch.int64) * row
        at = at + first.reshape(shape[:batch_dims] + [1] * (at.dim() - batch_dims))
    return torch.index_select(flat, 0, at.reshape([-1])).reshape(indices.shape[:-1] + rest)


def Scatter_9(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    return ScatterElements_16(data, indices, updates, axis=axis)


def ScatterElements_11(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    return ScatterElements_16(data, indices, updates, axis=axis)


def ScatterElements_16(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    if indices.shape != updates.shape:
        raise RuntimeError("ScatterElements: indices has shape {}, updates {}".format(indices.shape, updates.shape))
    if __torch__.onnx.control._at_load():
        _check_indices(indices, data.size(axis))
    at = _not_negative(indices.to(torch.int64), data.size(axis))
    if reduction == "none":
        return torch.scatter(data, axis, at, updates)
    return torch.scatter_reduce(data, axis, at, updates, _reduction(reduction))


# ONNX's names → torch's.
def _reduction(name: str) -> str:
    if name == "add":
        return "sum"
    if name == "mul":
        return "prod"
    if name == "max":
        return "amax"
    return "amin"


def ScatterND_11(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    shape = data.shape
    count = indices.size(-1)
    rest = shape[count:]
    if count > len(shape):
        raise RuntimeError("ScatterND: {} numbers name an element of {} dimensions".format(count, len(shape)))
    if updates.shape != indices.shape[:-1] + rest:
        raise RuntimeError("ScatterND: updates has shape {}, not {}".format(updates.shape, indices.shape[:-1] + rest))
    flat = data.reshape([__torch__.onnx.shapes._product(shape[:count])] + rest)
    at = _linear_index(indices, shape).reshape([-1])
    values = updates.reshape([at.size(0)] + rest)
    if reduction == "none":
        return torch.index_copy(flat, 0, at, values).reshape(shape)
    every = at.reshape([-1] + [1] * len(rest)).expand(values.shape)
    return torch.scatter_reduce(flat, 0, every, values, _reduction(reduction)).reshape(shape)


def TensorScatter_24(
    past_cache: Tensor,
    update: Tensor,
    write_indices: Optional[Tensor] = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    rank = past_cache.dim()
    at_axis = __torch__.onnx.shapes._axis(axis, rank)
    size = past_cache.size(at_axis)
    places = torch.arange(update.size(at_axis), dtype=torch.int64).unsqueeze(0)
    if write_indices is not None:
        places = places + write_indices.to(torch.int64).unsqueeze(1)
    if mode == "circular":
        places = torch.remainder(places, size)
    elif bool(torch.any(places >= size)):
        raise RuntimeError("TensorScatter: an update ends after the cache")
    shape = [1] * rank
    shape[0] = places.size(0)
    shape[at_axis] = places.size(1)
    return torch.scatter(past_cache, at_axis, places.reshape(shape).expand(update.shape), update)


def Compress_9(input: Tensor, condition: Tensor, *, axis: Optional[int] = None) -> Tensor:
    if axis is not None:
        axis = __torch__.onnx.shapes._axis(axis, input.dim())
    at = torch.nonzero(condition.reshape([-1])).reshape([-1])
    if axis is None:
        return torch.index_select(input.reshape([-1]), 0, at)
    return torch.index_select(input, axis, at)


def Compress_28(input: Tensor, condition: Tensor, *, axis: Optional[int] = None) -> Tensor:
    return Compress_9(input, condition, axis=axis)


def NonZero_9(X: Tensor) -> Tensor:
    if X.dim() == 0:
        return torch.transpose(torch.nonzero(X.reshape([1])), 0, 1)
    return torch.transpose(torch.nonzero(X), 0, 1)


def ReverseSequence_10(input: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    if batch_axis + time_axis != 1 or batch_axis < 0 or time_axis < 0:
        raise RuntimeError("ReverseSequence: batch_axis is {} and time_axis {}".format(batch_axis, time_axis))
    if sequence_lens.dim() != 1 or sequence_lens.size(0) != input.size(batch_axis):
        raise RuntimeError(
            "ReverseSequence: sequence_lens has shape {} for {} sequences".format(
                sequence_lens.shape, input.size(batch_axis)
            )
        )
    lengths = sequence_lens.to(torch.int64)
    time = torch.arange(input.size(time_axis), dtype=torch.int64)
    if time_axis == 0:
        at = time.unsqueeze(1)
        length = lengths.unsqueeze(0)
    else:
        at = time.unsqueeze(0)
        length = lengths.unsqueeze(1)
    index = torch.where(at < length, length - 1 - at, at)
    index = index.reshape(index.shape + [1] * (input.dim() - 2)).expand(input.shape)
    return torch.gather(input, time_axis, index)


def ReverseSequence_28(input: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    return ReverseSequence_10(input, sequence_lens, batch_axis=batch_axis, time_axis=time_axis)


# Slices along the axis that are different; where each comes first, which it is of them, how often it is there.
def Unique_11(
    X: Tensor, *, axis: Optional[int] = None, sorted: int = 1
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    at = 0
    if axis is None:
        X = X.reshape([-1])
    else:
        at = __torch__.onnx.shapes._axis(axis, X.dim())
    values, inverse, counts = torch.unique_dim(X, at, True, True, True)
    number = counts.size(0)
    size = X.size(at)
    places = torch.arange(size, dtype=torch.int64)
    first = torch.scatter_reduce(torch.full([number], size, dtype=torch.int64), 0, inverse, places, "amin")
    if sorted == 0:
        order = torch.argsort(first)
        values = torch.index_select(values, at, order)
        counts = torch.index_select(counts, 0, order)
        first = torch.index_select(first, 0, order)
        rank = torch.scatter(torch.zeros_like(order), 0, order, torch.arange(number, dtype=torch.int64))
        inverse = torch.index_select(rank, 0, inverse)
    return values, first, inverse, counts


def Unique_28(
    X: Tensor, *, axis: Optional[int] = None, sorted: int = 1
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return Unique_11(X, axis=axis, sorted=sorted)


# ---- sequences


def SequenceEmpty_11(*, dtype: int = 6) -> List[Tensor]:
    items: List[Tensor] = []
    return items


def SequenceConstruct_11(inputs: List[Tensor]) -> List[Tensor]:
    return inputs[:]


def SequenceLength_11(input_sequence: List[Tensor]) -> Tensor:
    return torch.tensor(len(input_sequence), dtype=torch.int64)


def SequenceAt_11(input_sequence: List[Tensor], position: int) -> Tensor:
    return input_sequence[position]


def SequenceInsert_11(
    input_sequence: List[Tensor], tensor: Tensor, position: Optional[int] = None
) -> List[Tensor]:
    size = len(input_sequence)
    at = size
    if position is not None:
        at = position + size if position < 0 else position
    if at < 0 or at > size:
        raise RuntimeError("SequenceInsert: position is out of range for {} tensors".format(size))
    return input_sequence[:at] + [tensor] + input_sequence[at:]


def SequenceErase_11(input_sequence: List[Tensor], position: Optional[int] = None) -> List[Tensor]:
    size = len(input_sequence)
    at = size - 1
    if position is not None:
        at = position + size if position < 0 else position
    if at < 0 or at >= size:
        raise RuntimeError("SequenceErase: position is out of range for {} tensors".format(size))
    return input_sequence[:at] + input_sequence[at + 1 :]


def ConcatFromSequence_11(input_sequence: List[Tensor], *, axis: int, new_axis: int = 0) -> Tensor:
    if new_axis != 0:
        return torch.stack(input_sequence, axis)
    return torch.cat(input_sequence, axis)


def SplitToSequence_11(
    input: Tensor, split: Optional[Tensor] = None, *, axis: int = 0, keepdims: int = 1
) -> List[Tensor]:
    if split is None:
        parts = torch.split(input, 1, axis)
        if keepdims != 0:
            return parts
        squeezed: List[Tensor] = []
        for part in parts:
            squeezed.append(torch.squeeze(part, axis))
        return squeezed
    if split.dim() == 0:
        return torch.split(input, int(split), axis)
    sizes: List[int] = split.tolist()
    return torch.split_with_sizes(input, sizes, axis)


# ---- n-grams


def TfIdfVectorizer_9(
    X: Tensor,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: List[int],
    ngram_indexes: List[int],
    pool_int64s: List[int],
    weights: Optional[List[float]] = None,
) -> Tensor:
    rows: List[Tensor] = []
    table = X.reshape([1, -1]) if X.dim() == 1 else X
    for i in range(table.size(0)):
        rows.append(
            __torch__.onnx.ml._ngram_counts(
                table[i], pool_int64s, ngram_counts, ngram_indexes, max_skip_count, min_gram_length, max_gram_length
            )
        )
    counts = torch.stack(rows)
    if mode == "IDF":
        counts = torch.clamp(counts, max=1.0)
    if mode != "TF" and weights is not None:
        by = [0.0] * counts.size(1)
        for i in range(len(ngram_indexes)):
            by[ngram_indexes[i]] = weights[i]
        counts = counts * torch.tensor(by, dtype=torch.float32)
    return counts.reshape([-1]) if X.dim() == 1 else counts
