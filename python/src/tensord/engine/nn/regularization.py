"""Dropouts, distances and local response normalization."""

from __future__ import annotations

from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn.layers import Dropout
from tensord.engine.nn.module import Module

__all__ = [
    "AlphaDropout", "CosineSimilarity", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "LocalResponseNorm", "PairwiseDistance",
]


def _dropout(name: str, function):
    """Makes a Dropout class with another function of (input, p, training, inplace)."""
    return type(name, (Dropout,), {"forward": lambda self, input: function(input, self.p, self.training, self.inplace), "__module__": __name__})


Dropout1d, Dropout2d, Dropout3d = _dropout("Dropout1d", F.dropout1d), _dropout("Dropout2d", F.dropout2d), _dropout("Dropout3d", F.dropout3d)
AlphaDropout, FeatureAlphaDropout = _dropout("AlphaDropout", F.alpha_dropout), _dropout("FeatureAlphaDropout", F.feature_alpha_dropout)


class LocalResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CosineSimilarity(Module):
    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2):
        return aten("cosine_similarity")(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return aten("pairwise_distance")(x1, x2, self.norm, self.eps, self.keepdim)
