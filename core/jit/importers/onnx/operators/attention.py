# Attention and what stands around it in transformers.


def _heads_apart(x: Tensor, heads: Optional[int]) -> Tensor:
    if x.dim() == 4:
        return x
    if heads is None:
        raise RuntimeError("Attention: 3D inputs want q_num_heads and kv_num_heads")
    if __torch__.onnx.control._at_load() and x.size(2) % heads != 0:
        raise RuntimeError("Attention: {} numbers for {} heads".format(x.size(2), heads))
    return torch.transpose(x.reshape([x.size(0), x.size(1), heads, x.size(2) // heads]), 1, 2)


# What each query may see, None for everything: [batch or 1, 1, queries, keys].
def _visible(
    queries: int,
    keys: int,
    past: int,
    nonpad_kv_seqlen: Optional[Tensor],
    is_causal: bool,
    left: int,
    right: int,
) -> Optional[Tensor]:
    if nonpad_kv_seqlen is None and not is_causal and left < 0 and right < 0:
        return None
    key = torch.arange(keys).reshape([1, 1, 1, keys])
    place = torch.arange(queries).reshape([1, 1, queries, 1]) + past
    seen = torch.ones([1, 1, queries, keys], dtype=torch.bool)
    if nonpad_kv_seqlen is not None:
        length = nonpad_kv_seqlen.to(torch.int64).reshape([-1, 1, 1, 1])
        place = place + (length - queries - past)
        seen = torch.logical_and(seen, key < length)
    if is_causal:
        seen = torch.logical_and(seen, key <= place)
    if left >= 0:
        seen = torch.logical_and(seen, key >= place - left)
    if right >= 0:
        seen = torch.logical_and(seen, key <= place + right)
    return seen


def _padded_mask(mask: Tensor, keys: int) -> Tensor:
    if mask.size(-1) >= keys or mask.size(-1) == 1:
        return mask
    more = keys - mask.size(-1)
    if mask.dtype == torch.bool:
        return torch.constant_pad_nd(mask.to(torch.uint8), [0, more]).to(torch.bool)
    return torch.constant_pad_nd(mask, [0, more], -float("inf"))


def _attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Optional[Tensor],
    past_key: Optional[Tensor],
    past_value: Optional[Tensor],
    nonpad_kv_seqlen: Optional[Tensor],
    outputs: int,
    is_causal: bool,
    left: int,
    right: int,
    q_num_heads: Optional[int],
    kv_num_heads: Optional[int],
    mode: int,
    scale: Optional[float],
    softcap: float,
    softmax_precision: Optional[int],
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    if (past_key is None) != (past_value is None):
        raise RuntimeError("Attention: one of past_key and past_value is missing")
    q = _heads_apart(Q, q_num_heads)
    k = _heads_apart(K, kv_num_heads)
    v = _heads_apart(V, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.size(2)
        k = torch.cat([past_key, k], 2)
        v = torch.cat([past_value, v], 2)
    present_k = k
    present_v = v
    keys = k.size(2)
    seen = _visible(q.size(2), keys, past, nonpad_kv_seqlen, is_causal, left, right)
    groups = q.size(1) // k.size(1)
    if q.size(1) != groups * k.size(1):
        raise RuntimeError("Attention: {} heads of queries for {} of keys".format(q.size(1), k.size(1)))
    if groups > 1:
        k = torch.repeat_interleave(k, groups, 1)
        v = torch.repeat_interleave(v, groups, 1)
    is_plain = outputs < 4 and softcap == 0.0 and softmax_precision is None and seen is None
    if is_plain and (attn_mask is None or attn_mask.dtype == q.dtype):
        mask: Optional[Tensor] = None
        if attn_mask is not None:
            mask = _padded_mask(attn_mask, keys)
        y = torch.scaled_dot_product_attention(q, k, v, mask, 0.0, False, scale=scale)
        qk = q
    else:
        root = torch.sqrt(1.0 / torch.sqrt(float(q.size(3))) if scale is None else scale)
        qk = torch.matmul(q * root, torch.transpose(k, 2, 3) * root)
        scores = qk
        if softcap > 0.0:
            scores = torch.tanh(scores / softcap) * softcap
        if mode == 1:
            qk = scores
        if attn_mask is not None:
            mask = _padded_mask(attn_mask, keys)
            if mask.dtype == torch.bool:
                scores = torch.where(mask, scores, torch.full([], -float("inf"), dtype=scores.dtype))
            else:
                scores = scores + mask
        if seen is not None:
            scores = torch.where(seen, scores, torch.full([], -float("inf"), dtype=scores.dtype))
        if mode == 2:
            qk = scores
        wide = scores if softmax_precision is None else scores.to(softmax_precision)
        is_empty = torch.amax(wide, [-1], True) == -float("inf")
        weights = torch.where(is_empty, torch.zeros([], dtype=wide.dtype), torch.softmax(wide, -1)).to(q.dtype)
        if mode == 3:
            qk = weights
        y = torch.matmul(weights, v)
    if Q.dim() == 3:
        y = torch.transpose(y, 1, 2).reshape([Q.size(0), Q.size(1), -1])
    return y, present_k, present_v, qk


def Attention_23(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Optional[Tensor] = None,
    past_key: Optional[Tensor] = None,
    past_value: Optional[Tensor] = None,
    *,
    _outputs: int,
    is_causal: int = 0,
    kv_num_heads: Optional[int] = None,
    q_num_heads: Optional[int] = None,
    qk_matmul_output_mode: int = 0,
    scale: Optional[float] = None,
    softcap: float = 0.0,
    softmax_precision: Optional[int] = None,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return _attention(
        Q, K, V, attn_mask, past_key, past_value, None, _outputs, is_causal != 0, -1, -1, q_num_heads, kv_num_heads,
        qk_matmul_output_mode, scale, softcap, softmax_precision,
    )


def Attention_24(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Optional[Tensor] = None,
    past_key: Optional[Tensor] = None,
    past_value: Optional[Tensor] = None,
    nonpad_kv_seqlen: Optional[Tensor] = None,
    *,
    _outputs: int,
    is_causal: int = 0,
    kv_num_heads: Optional[int] = None,
    q_num_heads: Optional[int] = None,
    qk_matmul_output_mode: int = 0,
    scale: Optional[float] = None,
    softcap: float = 0.0,
    softmax_precision: Optional[int] = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return _attention(
        Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen, _outputs, is_causal != 0, left_window_size,
        right_window_size, q_num_heads, kv_num_heads, qk_matmul_output_mode, scale, softcap, softmax_precision,
    )


def RotaryEmbedding_23(
    X: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Optional[Tensor] = None,
    *,
    interleaved: int = 0,
    num_heads: Optional[int] = None,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    x = X
    if X.dim() == 4:
        x = torch.transpose(X, 1, 2)
    elif num_heads is not None:
        x = X.reshape([X.size(0), X.size(1), num_heads, X.size(2) // num_heads])
    else:
        raise RuntimeError("RotaryEmbedding: a 3D input wants num_heads")
    if position_ids is not None:
        cos_cache = cos_cache[position_ids]
        sin_cache = sin_cache[position_ids]
    y = _rotated(x, cos_cache.unsqueeze(2), sin_cache.unsqueeze(2), interleaved != 0, rotary_embedding_dim)
    if X.dim() == 4:
        return torch.transpose(y, 1, 2)
    return y.reshape(X.shape)


# The first `dims` numbers (0: all) of the last dimension of x[batch, time, heads, size], turned in pairs.
def _rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, dims: int) -> Tensor:
    size = x.size(-1)
    turned = size if dims == 0 else dims
    if cos.size(-1) * 2 != turned:
        raise RuntimeError("RotaryEmbedding: cos_cache has {} angles for {} numbers".format(cos.size(-1), turned))
    part = torch.narrow(x, -1, 0, turned)
    if interleaved:
        a = torch.slice(part, -1, 0, turned, 2)
        b = torch.slice(part, -1, 1, turned, 2)
        y = torch.stack([cos * a - sin * b, sin * a + cos * b], -1).reshape(part.shape)
    else:
        a = torch.narrow(part, -1, 0, turned // 2)
        b = torch.narrow(part, -1, turned // 2, turned // 2)
        y = torch.cat([cos * a - sin * b, sin * a + cos * b], -1)
    if turned == size:
        return y
    return torch.cat([y, torch.narrow(x, -1, turned, size - turned)], -1)


def LinearAttention_27(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Optional[Tensor] = None,
    decay: Optional[Tensor] = None,
    beta: Optional[Tensor] = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> Tuple[Tensor, Tensor]:
    batch, time = query.size(0), query.size(1)
    q = query.reshape([batch, time, q_num_heads, query.size(2) // q_num_heads]).to(torch.float32)
    k = key.reshape([batch, time, kv_num_heads, key.size(2) // kv_num_heads]).to(torch.float32)
    v = value.reshape([batch, time, kv_num_heads, value.size(2) // kv_num_heads]).to(torch.float32)
    factor = scale if scale != 0.0 else 1.0 / torch.sqrt(float(q.size(3)))
    groups = q_num_heads // kv_num_heads
    is_gated = update_rule == "gated" or update_rule == "gated_delta"
    is_delta = update_rule == "delta" or update_rule == "gated_delta"
    state = torch.zeros([batch, kv_num_heads, k.size(3), v.size(3)], dtype=torch.float32)
    if past_state is not None:
        state = past_state.to(torch.float32)
    if is_gated and decay is None:
        raise RuntimeError("update_rule {} wants decay".format(update_rule))
    if is_delta and beta is None:
        raise RuntimeError("update_rule {} wants beta".format(update_rule))
    steps: List[Tensor] = []
    for t in range(time):
        if is_gated and decay is not None:
            state = state * torch.exp(decay[:, t].to(torch.float32).reshape([batch, kv_num_heads, -1, 1]))
        new = v[:, t]
        kt = k[:, t]
        if is_delta and beta is not None:
            old = torch.matmul(kt.unsqueeze(2), state).squeeze(2)
            new = (new - old) * beta[:, t].to(torch.float32).reshape([batch, -1, 1])
        state = state + kt.unsqueeze(3) * new.unsqueeze(2)
        every = state if groups == 1 else torch.repeat_interleave(state, groups, 1)
        steps.append(torch.matmul(q[:, t].unsqueeze(2), every).squeeze(2) * factor)
    kept = query.dtype if past_state is None else past_state.dtype
    return torch.stack(steps, 1).reshape([batch, time, -1]).to(query.dtype), state.to(kept)
