"""Transformers: layers of attention and feed-forward blocks, and stacks of them."""

from __future__ import annotations

import copy
import math

from tensord.engine import _engine
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import placed
from tensord.engine.nn.attention import MultiheadAttention
from tensord.engine.nn.containers import ModuleList
from tensord.engine.nn.layers import Dropout, Linear
from tensord.engine.nn.module import Module
from tensord.engine.nn.norms import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


def _activation(given):
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


def _causal(**flags) -> dict:
    """The flags that are set, because user-defined layers need not support them."""
    return {name: flag for name, flag in flags.items() if flag}


class _Layer(Module):
    """Base of encoder and decoder layers. `attentions`: names of the attention blocks, in order."""

    attentions = ()

    @placed
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first))
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        blocks = range(1, len(self.attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _run(self, x, *blocks):
        """Runs each block with a residual connection, with its norm before the block or after the sum."""
        for i, block in enumerate(blocks, 1):
            norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + drop(block(norm(x))) if self.norm_first else norm(x + drop(block(x)))
        return x

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block. `activation`: relu, gelu or a function."""

    attentions = ("self_attn",)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        def attend(x):
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._run(src, attend, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, cross-attention to the encoder's output, and a feed-forward block."""

    attentions = ("self_attn", "multihead_attn")

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False):
        def attend(x):
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def attend_memory(x):
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal)[0]

        return self._run(tgt, attend, attend_memory, self._feed_forward)


class TransformerEncoder(Module):
    """Copies of a layer, run in order, and a norm.

    With enable_nested_tensor, results at padded steps are zeros before the norm in the cases in which PyTorch's
    inference uses nested tensors: without gradients, for layers that have a fast path, and with padding at the ends
    only. Otherwise they are what the layers return.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm=None, enable_nested_tensor: bool = True, mask_check: bool = True):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm, self.enable_nested_tensor, self.mask_check = num_layers, norm, enable_nested_tensor, mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        hides = mask is None and src_key_padding_mask is not None and self._hides_steps(src)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, **_causal(is_causal=is_causal))
        if hides:
            hidden = src_key_padding_mask if src_key_padding_mask.dtype is _engine.bool else src_key_padding_mask != 0
            has_gaps = (hidden[:, :-1] & ~hidden[:, 1:]).any()  # a tensor, so that traces and plans do not depend on it
            src = src.masked_fill((hidden & ~has_gaps).unsqueeze(2), 0.0)
        return src if self.norm is None else self.norm(src)

    def _hides_steps(self, src) -> bool:
        """Whether PyTorch uses nested tensors if padding is at the ends."""
        layer = self.layers[0]
        if not self.enable_nested_tensor or self.training or not isinstance(layer, TransformerEncoderLayer) or src.ndim != 3:
            return False
        attention = layer.self_attn
        is_fast = (attention.batch_first and attention._qkv_same_embed_dim and attention.in_proj_bias is not None and attention.num_heads % 2 == 0
                   and not layer.norm_first and not layer.training and layer.activation in (F.relu, F.gelu) and layer.norm1.eps == layer.norm2.eps)
        needs_gradients = _engine.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.layers.parameters()))
        return is_fast and not needs_gradients


class TransformerDecoder(Module):
    """Copies of a layer, run in order, and a norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm=None):
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None,
                memory_is_causal: bool = False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, **_causal(tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal))
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder."""

    @placed
    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        arguments = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*arguments), num_encoder_layers, LayerNorm(d_model, layer_norm_eps, bias=bias))
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*arguments), num_decoder_layers, LayerNorm(d_model, layer_norm_eps, bias=bias))
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None):
        """A mask [sz, sz] with -inf above the diagonal and zeros elsewhere."""
        return _engine._operator("aten::full")((sz, sz), -math.inf, dtype=dtype or _engine.float32, device=device).triu(1)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal: bool = False):
        if src.ndim == 3 and src.shape[0 if self.batch_first else 1] != tgt.shape[0 if self.batch_first else 1]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, **_causal(is_causal=src_is_causal))
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask,
                            **_causal(tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal))
