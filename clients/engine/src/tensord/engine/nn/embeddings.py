"""Bags of embeddings."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn.module import Module, Parameter

__all__ = ["EmbeddingBag"]


class EmbeddingBag(Module):
    """Sums, means or maxima of the embeddings in each bag: F.embedding_bag with a table of its own."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 mode: str = "mean", sparse: bool = False, _weight=None, include_last_offset: bool = False, padding_idx=None):
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"EmbeddingBag: padding_idx must be within num_embeddings, got {padding_idx} of {num_embeddings}")
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode has to be one of sum, mean or max, got {mode!r}")
        self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type = num_embeddings, embedding_dim, max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse, self.include_last_offset = scale_grad_by_freq, mode, sparse, include_last_offset
        self.padding_idx = padding_idx + num_embeddings if padding_idx is not None and padding_idx < 0 else padding_idx
        if _weight is None:
            self.weight = Parameter(_engine._operator("aten::empty")((num_embeddings, embedding_dim)))
            self.reset_parameters()
        elif tuple(_weight.shape) != (num_embeddings, embedding_dim):
            raise ValueError(f"EmbeddingBag: the shape of _weight, {tuple(_weight.shape)}, does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings, freeze: bool = True, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        mode: str = "mean", sparse: bool = False, include_last_offset: bool = False, padding_idx=None) -> "EmbeddingBag":
        """With `embeddings` [num_embeddings, embedding_dim], which is not copied."""
        if embeddings.ndim != 2:
            raise ValueError(f"EmbeddingBag.from_pretrained: embeddings is expected to be 2-dimensional, got {embeddings.ndim} dimensions")
        made = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx] = 0

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for option, default in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False), ("mode", ""), ("padding_idx", None)):
            if getattr(self, option) != default:
                parts.append(f"{option}={getattr(self, option)}")
        return ", ".join(parts)
