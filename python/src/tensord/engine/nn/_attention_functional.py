"""torch.nn.functional.multi_head_attention_forward."""

from __future__ import annotations

import math

from tensord.engine import _engine
from tensord.engine._operators import aten


def _check_inputs(query, key, value, key_padding_mask, attn_mask) -> None:
    if query.ndim not in (2, 3):
        raise ValueError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor")
    form = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(f"For {form} query, expected key and value to be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D")
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise ValueError(f"For {form} query, expected key_padding_mask to be {query.ndim - 1}-D but found {key_padding_mask.ndim}-D")
    for name, mask in (("key_padding_mask", key_padding_mask), ("attn_mask", attn_mask)):
        if mask is not None and mask.dtype != _engine.bool and not mask.dtype.is_floating_point:
            raise ValueError(f"only bool and floating types of {name} are supported, not {mask.dtype}")


def _project(inputs, in_proj_weight, in_proj_bias, separate_weights) -> list:
    """Projects query, key and value; inputs that are the same tensor share one product."""
    if separate_weights is not None:
        if any(weight is None for weight in separate_weights):
            raise ValueError("use_separate_proj_weight needs q_proj_weight, k_proj_weight and v_proj_weight")
        biases = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        return [aten("linear")(*parts) for parts in zip(inputs, separate_weights, biases)]
    if in_proj_weight is None:
        raise ValueError("in_proj_weight is needed unless use_separate_proj_weight")
    query, key, value = inputs
    if key is not value:
        weights, biases = in_proj_weight.chunk(3), [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        return [aten("linear")(*parts) for parts in zip(inputs, weights, biases)]
    if query is key:
        return list(aten("linear")(query, in_proj_weight, in_proj_bias).chunk(3, -1))
    width = query.shape[-1]
    own, others = (in_proj_weight[:width], in_proj_weight[width:])
    own_bias, other_biases = (None, None) if in_proj_bias is None else (in_proj_bias[:width], in_proj_bias[width:])
    return [aten("linear")(query, own, own_bias), *aten("linear")(key, others, other_biases).chunk(2, -1)]


def _additive(mask, dtype):
    """What is added to the scores: -inf where a bool mask is true."""
    return aten("zeros_like")(mask, dtype=dtype).masked_fill(mask, -math.inf) if mask.dtype == _engine.bool else mask


def _merge(attn_mask, key_padding_mask, batch: int, heads: int, dtype):
    """Combines the masks into one that broadcasts to [batch, heads, steps, keys], or returns None. `attn_mask` is [1 or
    batch · heads, steps, keys]."""
    if attn_mask is not None:
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.unflatten(0, (batch, heads))
    if key_padding_mask is None:
        return None if attn_mask is None else _additive(attn_mask, dtype)
    padding = key_padding_mask.reshape(batch, 1, 1, -1)
    if attn_mask is None:
        return _additive(padding, dtype)
    if attn_mask.dtype == _engine.bool and padding.dtype == _engine.bool:
        return _additive(attn_mask | padding, dtype)
    return _additive(attn_mask, dtype) + _additive(padding, dtype)


def _check_mask(attn_mask, steps: int, keys: int, batch_heads: int):
    """Returns the mask as [1 or batch · heads, steps, keys]."""
    if attn_mask.ndim not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {attn_mask.ndim} is not supported")
    want = (steps, keys) if attn_mask.ndim == 2 else (batch_heads, steps, keys)
    if tuple(attn_mask.shape) != want:
        raise RuntimeError(f"The shape of the {attn_mask.ndim}D attn_mask is {tuple(attn_mask.shape)}, but should be {want}.")
    return attn_mask.unsqueeze(0) if attn_mask.ndim == 2 else attn_mask


def _static(given, name: str, batch_heads: int, head_dim: int):
    if given.ndim != 3 or given.shape[0] != batch_heads or given.shape[2] != head_dim:
        raise ValueError(f"expecting {name} of shape ({batch_heads}, keys, {head_dim}), but got {tuple(given.shape)}")
    return given


def multi_head_attention_forward(
        query, key, value, embed_dim_to_check: int, num_heads: int, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn: bool,
        dropout_p: float, out_proj_weight, out_proj_bias, training: bool = True, key_padding_mask=None, need_weights: bool = True,
        attn_mask=None, use_separate_proj_weight: bool = False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
        static_v=None, average_attn_weights: bool = True, is_causal: bool = False):
    """Attention of [steps, batch, features] to [keys, batch, features], or without the batch; and its weights, if
    needed.

    Masks are true, or -inf, for keys to ignore: attn_mask is [steps, keys] or [batch · heads, steps, keys],
    key_padding_mask [batch, keys]. is_causal says that attn_mask is causal, so that it need not be read. A query with
    no key left gets zeros, or NaN with need_weights.
    """
    _check_inputs(query, key, value, key_padding_mask, attn_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if (bias_k is None) != (bias_v is None):
        raise ValueError("bias_k and bias_v go together")
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise ValueError("bias_k and bias_v cannot be added to static_k and static_v")
    inputs, is_batched = (query, key, value), query.ndim == 3
    if not is_batched:
        inputs = [query.unsqueeze(1)] * 3 if query is key is value else [x.unsqueeze(1) for x in inputs]
        key_padding_mask = key_padding_mask if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    (steps, batch, width), keys = inputs[0].shape, inputs[1].shape[0]
    if width != embed_dim_to_check:
        raise ValueError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise ValueError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    compared = 2 if use_separate_proj_weight else 3
    if inputs[1].shape[:compared] != inputs[2].shape[:compared] or inputs[1].shape[1] != batch:
        raise ValueError(f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)} or the query's, {tuple(query.shape)}")
    if attn_mask is not None:
        attn_mask = _check_mask(attn_mask, steps, keys if static_k is None else static_k.shape[1], batch * num_heads)

    q, k, v = _project(inputs, in_proj_weight, in_proj_bias, (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None)
    added = 0
    if bias_k is not None:
        k, v = (aten("cat")([x, bias.expand(1, batch, width)]) for x, bias in ((k, bias_k), (v, bias_v)))
        added += 1
    head_dim = width // num_heads
    q, k, v = (x.unflatten(2, (num_heads, head_dim)).permute(1, 2, 0, 3) for x in (q, k, v))  # [batch, heads, steps, head_dim]
    if static_k is not None:
        k = _static(static_k, "static_k", batch * num_heads, head_dim).unflatten(0, (batch, num_heads))
    if static_v is not None:
        v = _static(static_v, "static_v", batch * num_heads, head_dim).unflatten(0, (batch, num_heads))
    if add_zero_attn:
        k, v = (aten("cat")([x, x.new_zeros((batch, num_heads, 1, head_dim))], 2) for x in (k, v))
        added += 1
    if added:
        attn_mask, key_padding_mask = (mask if mask is None else aten("pad")(mask, [0, added]) for mask in (attn_mask, key_padding_mask))
    if key_padding_mask is not None and tuple(key_padding_mask.shape) != (batch, k.shape[2]):
        raise ValueError(f"expecting key_padding_mask shape of {(batch, k.shape[2] - added)}, "
                         f"but got {(key_padding_mask.shape[0], key_padding_mask.shape[1] - added)}")

    dropout_p, weights = dropout_p if training else 0.0, None
    if not need_weights and is_causal and not added and key_padding_mask is None:
        output = aten("scaled_dot_product_attention")(q, k, v, None, dropout_p, True)
    elif not need_weights:
        output = aten("scaled_dot_product_attention")(q, k, v, _merge(attn_mask, key_padding_mask, batch, num_heads, q.dtype), dropout_p)
    else:
        mask, scores = _merge(attn_mask, key_padding_mask, batch, num_heads, q.dtype), (q / math.sqrt(head_dim)) @ k.transpose(2, 3)
        weights = aten("dropout")(aten("softmax")(scores if mask is None else scores + mask, -1), dropout_p, True)
        output = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    output = aten("linear")(output.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if not is_batched:
        output, weights = output.squeeze(1), weights if weights is None else weights.squeeze(0)
    return output, weights
