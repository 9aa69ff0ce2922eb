# What the reader calls for conversions and for If, Loop, Scan and SequenceMap, whose bodies it puts between.


# True while a model is loaded, where what follows is checked with the shapes that the file says; nothing of it is run.
def _at_load() -> bool:
    return False


def _int_list(x: Tensor) -> List[int]:
    values: List[int] = x.reshape([-1]).tolist()
    return values


def _float_list(x: Tensor) -> List[float]:
    values: List[float] = x.reshape([-1]).to(torch.float32).tolist()
    return values


def _tensor_of_int(i: int) -> Tensor:
    return torch.tensor(i, dtype=torch.int64)


def _tensor_of_bool(b: bool) -> Tensor:
    return torch.tensor(b, dtype=torch.bool)


def _no_tensors() -> List[Tensor]:
    items: List[Tensor] = []
    return items


# An initializer that is an input as well.
def _given_or(given: Optional[Tensor], otherwise: Tensor) -> Tensor:
    return otherwise if given is None else given


# What the scan outputs of a loop become; `like` says what they are when there are none.
def _stacked(items: List[Tensor], axis: int, is_reversed: bool, like: Tensor) -> Tensor:
    if len(items) == 0:
        return like
    if is_reversed:
        flipped: List[Tensor] = []
        for i in range(len(items)):
            flipped.append(items[len(items) - 1 - i])
        return torch.stack(flipped, axis)
    return torch.stack(items, axis)


def _empty_scan(sizes: List[int], dtype: int) -> Tensor:
    return torch.zeros(sizes, dtype=dtype)


def _scan_length(x: Tensor, axis: int) -> int:
    return x.size(axis)


def _scan_item(x: Tensor, axis: int, i: int, is_reversed: bool) -> Tensor:
    return torch.select(x, axis, x.size(axis) - 1 - i if is_reversed else i)


def _sequence_length(items: List[Tensor]) -> int:
    return len(items)


def _sequence_item(items: List[Tensor], i: int) -> Tensor:
    return items[i]


def _flex_scores(Q: Tensor, K: Tensor, scale: Optional[float], precision: Optional[int]) -> Tensor:
    if Q.size(1) != K.size(1):
        K = torch.repeat_interleave(K, Q.size(1) // K.size(1), 1)
    wide = torch.float64 if Q.dtype == torch.float64 else torch.float32
    if precision is not None:
        wide = precision
    factor = 1.0 / torch.sqrt(float(Q.size(3))) if scale is None else scale
    return torch.matmul(Q.to(wide), torch.transpose(K.to(wide), 2, 3)) * factor


def _flex_weights(scores: Tensor) -> Tensor:
    return torch.softmax(scores, -1)


def _flex_output(weights: Tensor, V: Tensor) -> Tensor:
    if weights.size(1) != V.size(1):
        V = torch.repeat_interleave(V, weights.size(1) // V.size(1), 1)
    return torch.matmul(weights, V.to(weights.dtype)).to(V.dtype)
