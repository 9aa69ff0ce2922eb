# com.microsoft: what ONNX Runtime's optimizer makes of transformers.


def microsoft_Gelu_1(X: Tensor) -> Tensor:
    return torch.gelu(X, approximate="none")


def microsoft_BiasGelu_1(A: Tensor, B: Tensor) -> Tensor:
    return torch.gelu(A + B, approximate="none")


def microsoft_FastGelu_1(X: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.gelu(X if bias is None else X + bias, approximate="tanh")


def microsoft_QuickGelu_1(X: Tensor, *, alpha: float = 1.702) -> Tensor:
    return X * torch.sigmoid(X * alpha)


def microsoft_BiasSplitGelu_1(X: Tensor, bias: Tensor) -> Tensor:
    parts = torch.chunk(X + bias, 2, -1)
    return parts[0] * torch.gelu(parts[1], approximate="none")


# Before opset 17 the optimizer puts these into ONNX's own domain.
def SimplifiedLayerNormalization_1(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-05, stash_type: int = 6
) -> Tensor:
    return __torch__.onnx.norm.RMSNormalization_23(X, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


def microsoft_SkipLayerNormalization_1(
    input: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    *,
    _outputs: int,
    epsilon: float = 1e-12,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    total = input + skip
    if bias is not None:
        total = total + bias
    result = torch.layer_norm(total, [total.size(-1)], gamma, beta, epsilon)
    if _outputs == 1:
        return result, result, result, total
    mean = torch.mean(total, [-1], True)
    inverse = torch.rsqrt(torch.mean((total - mean) * (total - mean), [-1], True) + epsilon)
    return result, mean, inverse, total


def microsoft_SkipSimplifiedLayerNormalization_1(
    input: Tensor,
    skip: Tensor,
    gamma: Tensor,
    bias: Optional[Tensor] = None,
    *,
    epsilon: float = 1e-12,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    total = input + skip
    if bias is not None:
        total = total + bias
    result = __torch__.onnx.norm.RMSNormalization_23(total, gamma, epsilon=epsilon)
    inverse = torch.rsqrt(torch.mean(total * total, [-1], True) + epsilon)
    return result, torch.zeros_like(inverse), inverse, total


def microsoft_EmbedLayerNormalization_1(
    input_ids: Tensor,
    segment_ids: Optional[Tensor],
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Optional[Tensor],
    gamma: Tensor,
    beta: Tensor,
    mask: Optional[Tensor] = None,
    position_ids: Optional[Tensor] = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Tuple[Tensor, Tensor, Tensor]:
    total = torch.embedding(word_embedding, input_ids)
    if position_ids is None:
        total = total + torch.narrow(position_embedding, 0, 0, input_ids.size(1))
    else:
        total = total + torch.embedding(position_embedding, position_ids)
    if segment_ids is not None and segment_embedding is not None:
        total = total + torch.embedding(segment_embedding, segment_ids)
    result = torch.layer_norm(total, [total.size(-1)], gamma, beta, epsilon)
    lengths = torch.zeros([input_ids.size(0)], dtype=torch.int32)
    if mask is not None:
        lengths = torch.sum(mask, [1], dtype=torch.int32)
    return result, lengths, total


# [rows, batch …, columns] → [batch …, rows, columns]
def _rows_last(x: Tensor) -> Tensor:
    return torch.movedim(x, [0], [-2]) if x.dim() > 2 else x


def microsoft_FusedMatMul_1(
    A: Tensor,
    B: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    a = _rows_last(A) if transBatchA != 0 else A
    b = _rows_last(B) if transBatchB != 0 else B
    a = torch.transpose(a, -2, -1) if transA != 0 and A.dim() > 1 else a
    b = torch.transpose(b, -2, -1) if transB != 0 and B.dim() > 1 else b
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_product(a, b)
    result = torch.matmul(a, b)
    return result if alpha == 1.0 else result * alpha


def microsoft_FusedGemm_1(
    A: Tensor,
    B: Tensor,
    C: Optional[Tensor] = None,
    *,
    activation: str = "",
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_gamma: float = 1.0,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    result = __torch__.onnx.linear.Gemm_7(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return __torch__.onnx.recurrent._activation(activation, result, activation_alpha, activation_beta)


def microsoft_FusedConv_1(
    X: Tensor,
    W: Tensor,
    B: Optional[Tensor] = None,
    Z: Optional[Tensor] = None,
    *,
    activation: str = "",
    activation_params: Optional[List[float]] = None,
    auto_pad: str = "NOTSET",
    dilations: Optional[List[int]] = None,
    group: int = 1,
    kernel_shape: Optional[List[int]] = None,
    pads: Optional[List[int]] = None,
    strides: Optional[List[int]] = None,
) -> Tensor:
    result = __torch__.onnx.linear.Conv_1(
        X,
        W,
        B,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    if Z is not None:
        result = result + Z
    if activation == "":
        return result
    if activation == "Clip" and activation_params is not None:
        return torch.clamp(result, activation_params[0], activation_params[1])
    alpha = 1.0 if activation_params is None else activation_params[0]
    beta = activation_params[1] if activation_params is not None and len(activation_params) > 1 else 0.0
    return __torch__.onnx.recurrent._activation(activation, result, alpha, beta)


# ---- attention


# What is added to the scores for a mask of 0 and 1 (of keys, or of queries and keys), of lengths (which may be followed by
# where samples begin in packed queries and keys), or of ends and then begins of what is seen.
def _mask_bias(mask: Tensor, batch: int, total: int, filter: float, dtype: int) -> Tensor:
    if mask.dim() == 1:
        keys = torch.arange(total).unsqueeze(0)
        seen = keys < mask[:batch].unsqueeze(1)
        if mask.size(0) == 2 * batch:
            seen = torch.logical_and(seen, keys >= mask[batch:].unsqueeze(1))
        elif mask.size(0) != batch and mask.size(0) != 3 * batch + 2:
            raise RuntimeError("Attention: a mask_index of {} numbers for {} samples".format(mask.size(0), batch))
        bias = torch.where(seen, torch.zeros([]), torch.full([], filter)).reshape([batch, 1, 1, total])
    elif mask.dim() == 2:
        bias = torch.rsub(mask.to(torch.float32), 1).reshape([mask.size(0), 1, 1, total]) * filter
    elif mask.dim() == 3:
        bias = torch.rsub(mask.to(torch.float32), 1).unsqueeze(1) * filter
    else:
        raise RuntimeError("Attention: masks of {} dimensions are not supported".format(mask.dim()))
    return bias.to(dtype)


# q, k and v are [batch, heads, time, size], keys with the past before them.
def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Optional[Tensor],
    bias: Optional[Tensor],
    scale: Optional[float],
    filter: float,
    unidirectional: bool,
) -> Tensor:
    added = bias
    if mask is not None:
        more = _mask_bias(mask, q.size(0), k.size(2), filter, q.dtype)
        added = more if added is None else added + more
    if unidirectional:
        key = torch.arange(k.size(2))
        query = torch.arange(q.size(2)).unsqueeze(1) + (k.size(2) - q.size(2))
        future = torch.where(key > query, torch.full([], float("-inf")), torch.zeros([])).to(q.dtype)
        added = future.reshape([1, 1, q.size(2), k.size(2)]) if added is None else added + future
    y = torch.scaled_dot_product_attention(q, k, v, added, 0.0, False, scale=scale)
    return torch.transpose(y, 1, 2).reshape([q.size(0), q.size(2), -1])


def _split_heads(x: Tensor, heads: int) -> Tensor:
    if __torch__.onnx.control._at_load() and x.size(2) % heads != 0:
        raise RuntimeError("{} numbers for {} heads".format(x.size(2), heads))
    return torch.transpose(x.reshape([x.size(0), x.size(1), heads, x.size(2) // heads]), 1, 2)


def _check_heads(whole: int, heads: int, sizes: Optional[List[int]]) -> None:
    if sizes is not None and len(sizes) > 0:
        if len(sizes) != 3 or sizes[0] + sizes[1] + sizes[2] != whole:
            raise RuntimeError("qkv_hidden_sizes are {} for {} columns of weights".format(sizes, whole))
        if sizes[0] != sizes[1] or sizes[0] % heads != 0 or sizes[2] % heads != 0:
            raise RuntimeError("qkv_hidden_sizes are {} for {} heads".format(sizes, heads))
    elif whole % (3 * heads) != 0:
        raise RuntimeError("{} columns of weights for {} heads".format(whole, heads))


def microsoft_Attention_1(
    input: Tensor,
    weights: Tensor,
    bias: Optional[Tensor] = None,
    mask_index: Optional[Tensor] = None,
    past: Optional[Tensor] = None,
    attention_bias: Optional[Tensor] = None,
    past_sequence_length: Optional[Tensor] = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Optional[List[int]] = None,
    rotary_embedding_dim: int = 0,
    scale: Optional[float] = None,
    unidirectional: int = 0,
) -> Tuple[Tensor, Tensor]:
    _check_heads(weights.size(1), num_heads, qkv_hidden_sizes)
    if __torch__.onnx.control._at_load():
        __torch__.onnx.linear._check_size("dimensions of the input", input.dim(), 3)
        __torch__.onnx.linear._check_product(input, weights)
    qkv = torch.matmul(input, weights)
    if bias is not None:
        qkv = qkv + bias
    sizes = [weights.size(1) // 3] * 3
    if qkv_hidden_sizes is not None and len(qkv_hidden_sizes) > 0:
        sizes = qkv_hidden_sizes
    parts = torch.split_with_sizes(qkv, sizes, -1)
    q = _split_heads(parts[0], num_heads)
    k = _split_heads(parts[1], num_heads)
    v = _split_heads(parts[2], num_heads)
    if past is not None:
        k = torch.cat([past[0], k], 2)
        v = torch.cat([past[1], v], 2)
    y = _attend(q, k, v, mask_index, attention_bias, scale, mask_filter_value, unidirectional != 0)
    if k.shape != v.shape:
        return y, k
    return y, torch.stack([k, v])


def microsoft_MultiHeadAttention_1(
    query: Tensor,
    key: Optional[Tensor] = None,
    value: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    key_padding_mask: Optional[Tensor] = None,
    attention_bias: Optional[Tensor] = None,
    past_key: Optional[Tensor] = None,
    past_value: Optional[Tensor] = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: Optional[float] = None,
    unidirectional: int = 0,
) -> Tuple[Tensor, Tensor, Tensor]:
    if query.dim() == 5:
        q = torch.transpose(query[:, :, :, 0], 1, 2)
        k = torch.transpose(query[:, :, :, 1], 1, 2)
        v = torch.transpose(query[:, :, :, 2], 1, 2)
    elif key is None:
        raise RuntimeError("MultiHeadAttention: there is no key")
    else:
        hidden = query.size(2)
        if bias is not None:
            query = query + bias[:hidden]
        q = _split_heads(query, num_heads)
        if key.dim() == 5:
            k = torch.transpose(key[:, :, :, 0], 1, 2)
            v = torch.transpose(key[:, :, :, 1], 1, 2)
        elif value is None:
            raise RuntimeError("MultiHeadAttention: there is no value")
        elif key.dim() == 4:
            k = key
            v = value
        else:
            if bias is not None:
                key = key + bias[hidden : 2 * hidden]
                value = value + bias[2 * hidden :]
            k = _split_heads(key, num_heads)
            v = _split_heads(value, num_heads)
    if past_key is not None and past_value is not None:
        k = torch.cat([past_key, k], 2)
        v = torch.cat([past_value, v], 2)
    y = _attend(q, k, v, key_padding_mask, attention_bias, scale, mask_filter_value, unidirectional != 0)
    return y, k, v


def microsoft_RotaryEmbedding_1(
    input: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    if input.dim() == 4:
        x = torch.transpose(input, 1, 2)
    else:
        size = input.size(2) // num_heads if num_heads > 0 else cos_cache.size(1) * 2
        if __torch__.onnx.control._at_load() and input.size(2) % size != 0:
            raise RuntimeError("RotaryEmbedding: {} numbers for heads of {}".format(input.size(2), size))
        x = input.reshape([input.size(0), input.size(1), -1, size])
    at = position_ids
    if position_ids.dim() == 1:
        at = (torch.arange(x.size(1)) + position_ids).unsqueeze(0)
    cos = cos_cache[at].unsqueeze(2)
    sin = sin_cache[at].unsqueeze(2)
    y = __torch__.onnx.attention._rotated(x, cos, sin, interleaved != 0, rotary_embedding_dim)
    if input.dim() == 4:
        return torch.transpose(y, 1, 2)
    return y.reshape(input.shape)


# Where new keys go: each sample has its own length. The cache keeps its size when it is larger than what is in it.
def _appended(past: Optional[Tensor], new: Tensor, at: Tensor, total: int) -> Tensor:
    size = total
    if past is not None:
        size = max(size, past.size(2))
    cache = torch.zeros([new.size(0), new.size(1), size, new.size(3)], dtype=new.dtype)
    if past is not None and past.size(2) > 0:
        cache = torch.constant_pad_nd(past, [0, 0, 0, size - past.size(2)])
    index = at.reshape([new.size(0), 1, new.size(2), 1]).expand(new.shape)
    return torch.scatter(cache, 2, index, new)


def microsoft_GroupQueryAttention_1(
    query: Tensor,
    key: Optional[Tensor],
    value: Optional[Tensor],
    past_key: Optional[Tensor],
    past_value: Optional[Tensor],
    seqlens_k: Tensor,
    total_sequence_length: int,
    cos_cache: Optional[Tensor] = None,
    sin_cache: Optional[Tensor] = None,
    position_ids: Optional[Tensor] = None,
    attention_bias: Optional[Tensor] = None,
    head_sink: Optional[Tensor] = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: Optional[float] = None,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> Tuple[Tensor, Tensor, Tensor]:
    if do_rotary != 0 and (cos_cache is None or sin_cache is None):
        raise RuntimeError("do_rotary wants cos_cache and sin_cache")
    if num_heads % kv_num_heads != 0:
        raise RuntimeError("num_heads is {}, but kv_num_heads {}".format(num_heads, kv_num_heads))
    batch, time = query.size(0), query.size(1)
    heads = num_heads if key is not None else num_heads + 2 * kv_num_heads
    if __torch__.onnx.control._at_load() and query.size(2) % heads != 0:
        raise RuntimeError("{} numbers for {} heads".format(query.size(2), heads))
    if key is not None and value is not None:
        q = query.reshape([batch, time, num_heads, -1])
        k = key.reshape([batch, time, kv_num_heads, -1])
        v = value.reshape([batch, time, kv_num_heads, -1])
    else:
        size = query.size(2) // (num_heads + 2 * kv_num_heads)
        whole = query.reshape([batch, time, num_heads + 2 * kv_num_heads, size])
        q = torch.narrow(whole, 2, 0, num_heads)
        k = torch.narrow(whole, 2, num_heads, kv_num_heads)
        v = torch.narrow(whole, 2, num_heads + kv_num_heads, kv_num_heads)
    # A prompt begins at 0, whatever is padded at its end.
    first = torch.zeros([batch, 1], dtype=torch.int64)
    if time != total_sequence_length:
        first = (seqlens_k.to(torch.int64).reshape([batch, 1]) + 1) - time
    at = torch.arange(time, dtype=torch.int64).unsqueeze(0) + first
    if do_rotary != 0 and cos_cache is not None and sin_cache is not None:
        turned = at if position_ids is None else position_ids
        cos = cos_cache[turned].unsqueeze(2)
        sin = sin_cache[turned].unsqueeze(2)
        dims = cos_cache.size(1) * 2
        q = __torch__.onnx.attention._rotated(q, cos, sin, rotary_interleaved != 0, dims)
        k = __torch__.onnx.attention._rotated(k, cos, sin, rotary_interleaved != 0, dims)
    present_k = _appended(past_key, torch.transpose(k, 1, 2), at, total_sequence_length)
    present_v = _appended(past_value, torch.transpose(v, 1, 2), at, total_sequence_length)
    keys = torch.repeat_interleave(torch.narrow(present_k, 2, 0, total_sequence_length), num_heads // kv_num_heads, 1)
    values = torch.repeat_interleave(torch.narrow(present_v, 2, 0, total_sequence_length), num_heads // kv_num_heads, 1)
    q = torch.transpose(q, 1, 2)
    factor = 1.0 / torch.sqrt(float(q.size(3))) if scale is None or scale == 0.0 else scale
    scores = torch.matmul(q, torch.transpose(keys, 2, 3)) * factor
    if softcap > 0.0:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_bias is not None:
        scores = scores + attention_bias
    place = at.reshape([batch, 1, time, 1])
    every = torch.arange(total_sequence_length, dtype=torch.int64)
    seen = every <= place
    if local_window_size > 0:
        seen = torch.logical_and(seen, every > place - local_window_size)
    scores = torch.where(seen, scores, torch.full([], float("-inf"), dtype=scores.dtype))
    if head_sink is not None:
        weights = _softmax_beside(scores, head_sink.to(scores.dtype).reshape([1, -1, 1, 1]))
    elif smooth_softmax == 1:
        weights = _softmax_beside(scores, torch.zeros([1, 1, 1, 1], dtype=scores.dtype))
    else:
        weights = torch.softmax(scores, -1)
    y = torch.matmul(weights, values)
    return torch.transpose(y, 1, 2).reshape([batch, time, -1]), present_k, present_v


# Weights beside one more score, which takes its share and has no value.
def _softmax_beside(scores: Tensor, sink: Tensor) -> Tensor:
    rest = sink.expand([scores.size(0), scores.size(1), scores.size(2), 1])
    return torch.narrow(torch.softmax(torch.cat([scores, rest], -1), -1), -1, 0, scores.size(-1))
