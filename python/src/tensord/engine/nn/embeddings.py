"""Embedding and EmbeddingBag."""

from __future__ import annotations

from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import parameter, placed
from tensord.engine.nn.module import Module, Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base of both."""

    def _make(self, num_embeddings: int, embedding_dim: int, padding_idx, weight) -> None:
        name = type(self).__name__
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"{name}: padding_idx must be within num_embeddings, got {padding_idx} of {num_embeddings}")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx + num_embeddings if padding_idx is not None and padding_idx < 0 else padding_idx
        if weight is None:
            self.weight = parameter(num_embeddings, embedding_dim)
            self.reset_parameters()
        elif tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ValueError(f"{name}: the shape of _weight, {tuple(weight.shape)}, does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx] = 0

    def _describe(self, *options) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        return ", ".join(parts + [f"{option}={getattr(self, option)}" for option, default in options if getattr(self, option) != default])


class Embedding(_Table):
    """A table whose rows are looked up by integer indices."""

    @placed
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx=None, max_norm=None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight=None, _freeze: bool = False, device=None, dtype=None):
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self._make(num_embeddings, embedding_dim, padding_idx, _weight)
        if _freeze:
            self.weight.requires_grad_(False)

    @classmethod
    def from_pretrained(cls, embeddings, freeze: bool = True, padding_idx=None, max_norm=None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, sparse: bool = False) -> "Embedding":
        """Uses `embeddings` [num_embeddings, embedding_dim] without a copy."""
        if embeddings.ndim != 2:
            raise ValueError(f"Embedding.from_pretrained: embeddings is expected to be 2-dimensional, got {embeddings.ndim} dimensions")
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        return self._describe(("padding_idx", None), ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False), ("sparse", False))


class EmbeddingBag(_Table):
    """Sums, means or maxima of the embeddings in each bag: F.embedding_bag with its own table."""

    @placed
    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 mode: str = "mean", sparse: bool = False, _weight=None, include_last_offset: bool = False, padding_idx=None, device=None, dtype=None):
        super().__init__()
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode has to be one of sum, mean or max, got {mode!r}")
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode = max_norm, norm_type, scale_grad_by_freq, mode
        self.sparse, self.include_last_offset = sparse, include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, _weight)

    @classmethod
    def from_pretrained(cls, embeddings, freeze: bool = True, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        mode: str = "mean", sparse: bool = False, include_last_offset: bool = False, padding_idx=None) -> "EmbeddingBag":
        """Uses `embeddings` [num_embeddings, embedding_dim] without a copy."""
        if embeddings.ndim != 2:
            raise ValueError(f"EmbeddingBag.from_pretrained: embeddings is expected to be 2-dimensional, got {embeddings.ndim} dimensions")
        made = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        return self._describe(("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False), ("mode", ""), ("padding_idx", None))
