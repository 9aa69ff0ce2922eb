# ai.onnx.ml, as far as numbers go.


def ml_ArrayFeatureExtractor_1(X: Tensor, Y: Tensor) -> Tensor:
    taken = torch.index_select(X, -1, Y.reshape([-1]).to(torch.int64))
    return taken.reshape([1, -1]) if X.dim() == 1 else taken


def ml_Binarizer_1(X: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (X > threshold).to(X.dtype)


def ml_Scaler_1(X: Tensor, *, offset: List[float], scale: List[float]) -> Tensor:
    by = torch.tensor(scale, dtype=torch.float32)
    return (X.to(torch.float32) - torch.tensor(offset, dtype=torch.float32)) * by


def ml_Normalizer_1(X: Tensor, *, norm: str = "MAX") -> Tensor:
    x = X.to(torch.float32)
    if norm == "MAX":
        length = torch.amax(torch.abs(x), [-1], True)
    elif norm == "L1":
        length = torch.sum(torch.abs(x), [-1], True)
    else:
        length = torch.sqrt(torch.sum(x * x, [-1], True))
    return torch.where(length == 0, x, x / length)


def ml_LinearRegressor_1(
    X: Tensor,
    *,
    coefficients: List[float],
    intercepts: Optional[List[float]] = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    weights = torch.tensor(coefficients, dtype=torch.float32).reshape([targets, -1])
    result = torch.matmul(X.to(torch.float32), torch.t(weights))
    if intercepts is not None:
        result = result + torch.tensor(intercepts, dtype=torch.float32)
    return result


def ml_Imputer_1(
    X: Tensor,
    *,
    imputed_value_floats: Optional[List[float]] = None,
    imputed_value_int64s: Optional[List[int]] = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    if imputed_value_floats is not None:
        new = torch.tensor(imputed_value_floats, dtype=X.dtype)
        is_old = torch.isnan(X) if replaced_value_float != replaced_value_float else X == replaced_value_float
        return torch.where(is_old, new, X)
    if imputed_value_int64s is None:
        raise RuntimeError("Imputer: there is no imputed value")
    return torch.where(X == replaced_value_int64, torch.tensor(imputed_value_int64s, dtype=X.dtype), X)


# Counts of n-grams of integers; those of n numbers begin at ngram_counts[n - 1] in the pool.
def _ngram_counts(
    x: Tensor,
    pool: List[int],
    ngram_counts: List[int],
    ngram_indexes: List[int],
    max_skip_count: int,
    min_gram_length: int,
    max_gram_length: int,
) -> Tensor:
    counts: List[Tensor] = []
    for i in range(max(ngram_indexes) + 1):
        counts.append(torch.zeros([]))
    number = 0
    for n in range(1, len(ngram_counts) + 1):
        last = ngram_counts[n] if n < len(ngram_counts) else len(pool)
        for first in range(ngram_counts[n - 1], last, n):
            if n >= min_gram_length and n <= max_gram_length:
                total = torch.zeros([], dtype=torch.int64)
                for skip in range(1 if n == 1 else max_skip_count + 1):
                    places = x.size(0) - (n - 1) * (skip + 1)
                    if places > 0:
                        hit = torch.ones([places], dtype=torch.bool)
                        for i in range(n):
                            at = i * (skip + 1)
                            hit = torch.logical_and(hit, x[at : at + places] == pool[first + i])
                        total = total + torch.sum(hit)
                counts[ngram_indexes[number]] = total.to(torch.float32)
            number += 1
    return torch.stack(counts)


# Every sample walks down every tree, one level a step, until all have come to leaves.
def ml_TreeEnsemble_5(
    X: Tensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Tensor,
    leaf_weights: Tensor,
    membership_values: Optional[Tensor] = None,
    n_targets: int = 1,
    nodes_falseleafs: Tensor,
    nodes_falsenodeids: Tensor,
    nodes_featureids: Tensor,
    nodes_hitrates: Optional[Tensor] = None,
    nodes_missing_value_tracks_true: Optional[Tensor] = None,
    nodes_modes: Tensor,
    nodes_splits: Tensor,
    nodes_trueleafs: Tensor,
    nodes_truenodeids: Tensor,
    post_transform: int = 0,
    tree_roots: Tensor,
) -> Tensor:
    count = nodes_featureids.size(0)
    modes = nodes_modes.to(torch.int64)
    # Leaves are numbered after the nodes.
    on_true = torch.where(nodes_trueleafs != 0, nodes_truenodeids + count, nodes_truenodeids)
    on_false = torch.where(nodes_falseleafs != 0, nodes_falsenodeids + count, nodes_falsenodeids)
    tracks = torch.zeros([count], dtype=torch.bool)
    if nodes_missing_value_tracks_true is not None:
        tracks = nodes_missing_value_tracks_true != 0
    member = torch.zeros([count, 1], dtype=X.dtype) / 0
    if membership_values is not None:
        member = _members(membership_values, modes)
    at = tree_roots.unsqueeze(0).expand([X.size(0), tree_roots.size(0)])
    steps = 0
    while bool(torch.any(at < count)):
        if steps > count:
            raise RuntimeError("TreeEnsemble: a tree has a cycle")
        steps += 1
        node = torch.clamp(at, max=count - 1)
        value = torch.gather(X, 1, nodes_featureids[node])
        split = nodes_splits[node]
        mode = modes[node]
        goes = torch.where(mode == 0, value <= split, value < split)
        goes = torch.where(mode == 2, value >= split, goes)
        goes = torch.where(mode == 3, value > split, goes)
        goes = torch.where(mode == 4, value == split, goes)
        goes = torch.where(mode == 5, value != split, goes)
        goes = torch.where(mode == 6, torch.any(member[node] == value.unsqueeze(-1), -1), goes)
        goes = torch.where(torch.isnan(value), tracks[node], goes)
        at = torch.where(at < count, torch.where(goes, on_true[node], on_false[node]), at)
    leaf = at - count
    weight = leaf_weights[leaf]
    target = leaf_targetids[leaf]
    result = torch.zeros([X.size(0), n_targets], dtype=X.dtype)
    if aggregate_function == 1 or aggregate_function == 0:
        result = torch.scatter_add(result, 1, target, weight)
        result = result / tree_roots.size(0) if aggregate_function == 0 else result
    else:
        reduction = "amin" if aggregate_function == 2 else "amax"
        result = torch.scatter_reduce(result, 1, target, weight, reduction, include_self=False)
    # What 1 and 2 are the standard says one way and ONNX Runtime the other.
    if post_transform == 3:
        return _transformed(result, "SOFTMAX_ZERO")
    return result if post_transform == 0 else _transformed(result, "PROBIT")


# As ONNX Runtime has it: PROBIT with an approximation of the inverse error function, all others for several scores alone.
def _transformed(scores: Tensor, how: str) -> Tensor:
    if how == "PROBIT":
        x = scores * 2.0 - 1.0
        length = torch.log((-x + 1.0) * (x + 1.0))
        v = length * 0.5 + 2.0 / (3.14159 * 0.147)
        root = torch.sqrt(torch.sqrt(v * v - length / 0.147) - v)
        return torch.where(x < 0, -root, root) * 1.41421356
    if how == "NONE" or scores.size(1) == 1:
        return scores
    if how == "LOGISTIC":
        return torch.sigmoid(scores)
    e = torch.exp(scores - torch.amax(scores, [1], True))
    if how == "SOFTMAX_ZERO":
        # A score of 0 stays one.
        e = torch.where(torch.abs(scores) > 1e-07, e, torch.zeros_like(e))
    return e / torch.sum(e, [1], True)


# Row i: the members of node i's set, NaN where there are no more.
def _members(values: Tensor, modes: Tensor) -> Tensor:
    rows: List[Tensor] = []
    ends = torch.nonzero(torch.isnan(values)).reshape([-1])
    first = 0
    next = 0
    width = values.size(0)
    for i in range(modes.size(0)):
        row = torch.full([width], float("nan"), dtype=values.dtype)
        if int(modes[i]) == 6:
            last = int(ends[next]) if next < ends.size(0) else width
            row = torch.constant_pad_nd(values[first:last], [0, width - (last - first)], float("nan"))
            first = last + 1
            next += 1
        rows.append(row)
    return torch.stack(rows)


# As TreeEnsemble, with nodes that say their tree and their number in it; `nodes_modes` comes as numbers, 6 for leaves.
def ml_TreeEnsembleRegressor_1(
    X: Tensor,
    *,
    aggregate_function: str = "SUM",
    base_values: Optional[Tensor] = None,
    base_values_as_tensor: Optional[Tensor] = None,
    n_targets: int = 1,
    nodes_falsenodeids: Tensor,
    nodes_featureids: Tensor,
    nodes_hitrates: Optional[Tensor] = None,
    nodes_hitrates_as_tensor: Optional[Tensor] = None,
    nodes_missing_value_tracks_true: Optional[Tensor] = None,
    nodes_modes: Tensor,
    nodes_nodeids: Tensor,
    nodes_treeids: Tensor,
    nodes_truenodeids: Tensor,
    nodes_values: Optional[Tensor] = None,
    nodes_values_as_tensor: Optional[Tensor] = None,
    post_transform: str = "NONE",
    target_ids: Tensor,
    target_nodeids: Tensor,
    target_treeids: Tensor,
    target_weights: Optional[Tensor] = None,
    target_weights_as_tensor: Optional[Tensor] = None,
) -> Tensor:
    count = nodes_modes.size(0)
    step = torch.amax(nodes_nodeids, [0], False) + 1
    keys, order = torch.sort(nodes_treeids * step + nodes_nodeids)
    is_leaf = nodes_modes == 6
    own = torch.arange(count)
    on_true = _child(keys, order, nodes_treeids * step + nodes_truenodeids, is_leaf, own)
    on_false = _child(keys, order, nodes_treeids * step + nodes_falsenodeids, is_leaf, own)
    roots = torch.nonzero(torch.logical_not(_reached(on_true, on_false, is_leaf, count))).reshape([-1])
    splits = _floats(nodes_values, nodes_values_as_tensor, "nodes_values")
    tracks = torch.zeros([count], dtype=torch.bool)
    if nodes_missing_value_tracks_true is not None and nodes_missing_value_tracks_true.size(0) > 0:
        tracks = nodes_missing_value_tracks_true != 0
    x = X if X.is_floating_point() else X.to(torch.float32)
    at = roots.unsqueeze(0).expand([X.size(0), roots.size(0)])
    steps = 0
    while bool(torch.any(torch.logical_not(is_leaf[at]))):
        if steps > count:
            raise RuntimeError("TreeEnsembleRegressor: a tree has a cycle")
        steps += 1
        value = torch.gather(x, 1, nodes_featureids[at])
        split = splits[at]
        mode = nodes_modes[at]
        goes = torch.where(mode == 0, value <= split, value < split)
        goes = torch.where(mode == 2, value >= split, goes)
        goes = torch.where(mode == 3, value > split, goes)
        goes = torch.where(mode == 4, value == split, goes)
        goes = torch.where(mode == 5, value != split, goes)
        goes = torch.where(torch.isnan(value), tracks[at], goes)
        at = torch.where(goes, on_true[at], on_false[at])
    weights = _floats(target_weights, target_weights_as_tensor, "target_weights")
    leaf = _found(keys, order, target_treeids * step + target_nodeids)
    place = leaf * n_targets + target_ids
    table = torch.scatter_add(torch.zeros([count * n_targets], dtype=weights.dtype), 0, place, weights)
    chosen = table.reshape([count, n_targets])[at]
    given = torch.scatter(torch.zeros([count * n_targets], dtype=torch.bool), 0, place, True)
    has = given.reshape([count, n_targets])[at]
    if aggregate_function == "SUM":
        result = torch.sum(chosen, [1])
    elif aggregate_function == "AVERAGE":
        result = torch.sum(chosen, [1]) / roots.size(0)
    else:
        rest = torch.full([], -float("inf") if aggregate_function == "MAX" else float("inf"), dtype=weights.dtype)
        known = torch.where(has, chosen, rest)
        result = torch.amax(known, [1], False) if aggregate_function == "MAX" else torch.amin(known, [1], False)
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    if base is not None and base.size(0) > 0:
        result = result + base.to(result.dtype)
    # Where no tree has a number for a target, ONNX Runtime leaves the base value out too.
    result = torch.where(torch.any(has, 1), result, torch.zeros_like(result)).to(torch.float32)
    return result if post_transform == "NONE" else _transformed(result, post_transform)


# Numbers of the nodes that branches lead to; leaves lead to themselves.
def _child(keys: Tensor, order: Tensor, wanted: Tensor, is_leaf: Tensor, own: Tensor) -> Tensor:
    return torch.where(is_leaf, own, _found(keys, order, torch.where(is_leaf, keys[0], wanted)))


def _found(keys: Tensor, order: Tensor, wanted: Tensor) -> Tensor:
    at = torch.clamp(torch.searchsorted(keys, wanted), max=keys.size(0) - 1)
    if bool(torch.any(keys[at] != wanted)):
        raise RuntimeError("TreeEnsembleRegressor: a node that others name is not there")
    return order[at]


def _reached(on_true: Tensor, on_false: Tensor, is_leaf: Tensor, count: int) -> Tensor:
    ways = torch.logical_not(is_leaf).to(torch.int64)
    hits = torch.scatter_add(torch.zeros([count], dtype=torch.int64), 0, on_true, ways)
    return torch.scatter_add(hits, 0, on_false, ways) > 0


def _floats(values: Optional[Tensor], tensor: Optional[Tensor], name: str) -> Tensor:
    if tensor is not None:
        return tensor
    if values is None:
        raise RuntimeError(name + " is missing")
    return values
