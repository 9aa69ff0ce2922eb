"""Attention, and the fused operators of nn.MultiheadAttention and nn.TransformerEncoderLayer."""

import torch

from tests.ops.case import FULL, case, t

CLOSE = {"rtol": 1e-4, "atol": 1e-5, "dtypes": FULL}
BOOL = torch.bool


def _dot_product(query, key, value, mask=None, dropout=0.0, need_weights=False, causal=False):
    return torch.ops.aten._scaled_dot_product_attention(query, key, value, mask, dropout, need_weights, causal)


def _dot_product_only(query, key, value, mask=None, dropout=0.0, causal=False, scale=None):
    if scale is not None:
        query = query * (scale * query.size(-1) ** 0.5)
    return _dot_product(query, key, value, mask, dropout, False, causal)[0]


def _no_key_left(query, key, value, mask):
    """PyTorch since 2.5: zeros if all keys are masked."""
    added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else mask
    is_empty = (added == -torch.inf).all(-1, keepdim=True)
    scores = (query / max(query.size(-1), 1) ** 0.5) @ key.transpose(-2, -1) + added.masked_fill(is_empty, 0)
    return torch.where(is_empty, 0.0, scores.softmax(-1) @ value)


SOME_HIDDEN = [[True, False, True], [False, False, False]]
MINUS = [[0.5, -float("inf"), 1.0], [-float("inf")] * 3]


def _dense(args):
    return [a.contiguous() if isinstance(a, torch.Tensor) else a for a in args]


def _multi_head(*args):
    out, weights = torch.ops.aten._native_multi_head_attention(*_dense(args))
    return out, weights


def _layer(*args):
    return torch.ops.aten._transformer_encoder_layer_fwd(*_dense(args))


def _heads(queries, keys):
    return t(2, 3, queries, 8), t(2, 3, keys, 8), t(2, 3, keys, 8)


X = t(2, 5, 8)
PROJECTIONS = t(24, 8, low=-0.5, high=0.5), t(24), t(8, 8, low=-0.5, high=0.5), t(8)
KEYS = t(values=[[False, False, True, False, True], [False, True, True, True, True]], dtype=BOOL)
LEFT = t(values=[[True, True, False, False, False], [False] * 5], dtype=BOOL)
PAIRS = t(values=[[j > i for j in range(5)] for i in range(5)], dtype=BOOL)
NORMS = t(8), t(8), t(8), t(8)
FEED = t(16, 8, low=-0.5, high=0.5), t(16), t(8, 16, low=-0.5, high=0.5), t(8)


def _attention_row(mask, need_weights, average, mask_type):
    return case("aten::_native_multi_head_attention", X, X, X, 8, 2, *PROJECTIONS, mask, need_weights, average,
                mask_type, reference=_multi_head, **CLOSE)


def _layer_row(gelu, norm_first, mask, mask_type):
    return case("aten::_transformer_encoder_layer_fwd", X, 8, 2, *PROJECTIONS, gelu, norm_first, 1e-5, *NORMS, *FEED,
                mask, mask_type, reference=_layer, **CLOSE)


CASES = [
    case("aten::_scaled_dot_product_attention", t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), reference=_dot_product, **CLOSE),
    case("aten::scaled_dot_product_attention", t(2, 2, 2, 4), t(2, 2, 3, 4), t(2, 2, 3, 5), t(values=SOME_HIDDEN, dtype=BOOL), reference=_no_key_left, **CLOSE),
    case("aten::scaled_dot_product_attention", t(2, 2, 2, 4), t(2, 2, 3, 4), t(2, 2, 3, 5), t(values=MINUS), reference=_no_key_left, **CLOSE),
    case("aten::scaled_dot_product_attention", t(2, 4), t(3, 4), t(3, 4), t(values=[[True], [False]], dtype=BOOL), reference=_no_key_left, **CLOSE),
    case("aten::scaled_dot_product_attention", t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), reference=_dot_product_only,
         **CLOSE),
    case("aten::_scaled_dot_product_attention", *_heads(4, 6), reference=_dot_product, **CLOSE),
    case("aten::_scaled_dot_product_attention", *_heads(4, 6), t(4, 6), reference=_dot_product, **CLOSE),
    case("aten::_scaled_dot_product_attention", *_heads(5, 5), PAIRS, reference=_dot_product, **CLOSE),
    case("aten::_scaled_dot_product_attention", *_heads(5, 5), None, 0.0, False, True, reference=_dot_product, **CLOSE),
    case("aten::scaled_dot_product_attention", *_heads(4, 6), reference=_dot_product_only, **CLOSE),
    case("aten::scaled_dot_product_attention", *_heads(4, 6), None, 0.0, True, reference=_dot_product_only, **CLOSE),
    case("aten::scaled_dot_product_attention", *_heads(4, 6), None, 0.0, False, 0.7, reference=_dot_product_only,
         **CLOSE),
    _attention_row(None, False, True, None),
    _attention_row(None, True, True, None),
    _attention_row(None, True, False, None),
    _attention_row(KEYS, False, True, 1),
    _layer_row(True, False, None, None),
    _layer_row(False, True, None, None),
    _layer_row(False, False, KEYS, 1),
    # Nested tensors themselves cannot be saved; padded_encoder in tests/models has them.
    case("aten::_nested_tensor_from_mask_left_aligned", X, KEYS, dtypes=FULL),
    case("aten::_nested_tensor_from_mask_left_aligned", X, LEFT, dtypes=FULL),
    case("aten::_nested_tensor_from_mask_left_aligned", X, t(2, 4, dtype=BOOL), error="Mask size should match input size"),
    case("aten::_nested_tensor_from_mask", X, t(2, 5), error="Expected mask to be of ScalarType Bool, but got"),
    case("aten::_nested_tensor_from_mask", X, t(5, dtype=BOOL), error="Padding mask should be 2D"),
    case("aten::_nested_tensor_from_mask", t(5, 8), t(5, 8, dtype=BOOL), error="Input should be a 3D tensor"),
    case("aten::_nested_tensor_from_mask", X, KEYS, error="Mask must be left-aligned without gaps"),
    case("aten::to_padded_tensor", X, 0.0, error="to_padded_tensor"),
]
