"""Multi-head attention."""

from __future__ import annotations

from tensord.engine.nested import NestedTensor
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import parameter, placed
from tensord.engine.nn.layers import Linear
from tensord.engine.nn.module import Module

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection, which has this name in PyTorch."""


class MultiheadAttention(Module):
    """Attention of [steps, batch, embed_dim] to keys and values; with batch_first, [batch, steps, embed_dim]."""

    @placed
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim=None, vdim=None, batch_first: bool = False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads}")
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim, self.dropout = embed_dim, num_heads, embed_dim // num_heads, dropout
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes = dict.fromkeys(("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight", "in_proj_bias"))
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            shapes.update(q_proj_weight=(embed_dim, embed_dim), k_proj_weight=(embed_dim, self.kdim), v_proj_weight=(embed_dim, self.vdim))
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        shapes["bias_k"] = shapes["bias_v"] = (1, 1, embed_dim) if add_bias_kv else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else parameter(*shape))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights: bool = True, attn_mask=None, average_attn_weights: bool = True,
                is_causal: bool = False):
        """Returns the result and the weights (None unless need_weights): [batch, steps, keys], per head unless
        average_attn_weights."""
        if isinstance(query, NestedTensor):
            if need_weights or key_padding_mask is not None or attn_mask is not None:
                raise RuntimeError("MultiheadAttention: nested tensors take neither masks nor need_weights")
            samples = zip(query.unbind(), key.unbind(), value.unbind())
            return NestedTensor(self(*sample, need_weights=False, is_causal=is_causal)[0] for sample in samples), None
        turns = self.batch_first and query.ndim == 3
        if turns:  # inputs that are the same tensor stay the same
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal)
        return output.transpose(0, 1) if turns else output, weights
