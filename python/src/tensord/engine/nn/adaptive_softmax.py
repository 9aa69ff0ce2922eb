"""Softmax over many classes with a skewed frequency distribution."""

from __future__ import annotations

import collections

from tensord.engine._grad_mode import no_grad
from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn._placement import placed
from tensord.engine.nn.containers import ModuleList, Sequential
from tensord.engine.nn.layers import Linear
from tensord.engine.nn.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_Result = collections.namedtuple("_Result", ["output", "loss"])


def _pick(scores, which):
    """Returns scores[i, which[i]]."""
    return scores.gather(1, which.unsqueeze(1)).squeeze(1)


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes sorted by frequency. The head has those below cutoffs[0], and one entry for each further cluster of
    classes. A cluster's scores come from a smaller projection, smaller by div_value from cluster to cluster. Only the
    clusters of the targets are computed."""

    @placed
    def __init__(self, in_features: int, n_classes: int, cutoffs, div_value: float = 4.0, head_bias: bool = False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        bounds = [0, *cutoffs, n_classes]
        if not cutoffs or any(int(c) != c for c in cutoffs) or any(low >= high for low, high in zip(bounds, bounds[1:])):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                             f"between 1 and n_classes-1, got {cutoffs} of {n_classes} classes")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            inner = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, inner, False), Linear(inner, high - low, False)))

    def _clusters(self):
        return zip(self.cutoffs, self.cutoffs[1:])

    def reset_parameters(self) -> None:
        for linear in (self.head, *(linear for cluster in self.tail for linear in cluster)):
            linear.reset_parameters()

    def forward(self, input, target):
        """Returns the log probability of each target, and the mean negative one."""
        if target.ndim not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.ndim != target.ndim + 1:
            raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with size {tuple(input.shape)}")
        is_batched = target.ndim == 1
        if is_batched and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if not is_batched:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found.")
        in_head, output = target, None
        for i, (low, high) in enumerate(self._clusters()):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            scores = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
            own = _pick(scores, target.index_select(0, rows) - low)
            output = (own.new_zeros(target.shape[0]) if output is None else output).index_add(0, rows, own)
            in_head = in_head.index_fill(0, rows, self.shortlist_size + i)
        head = _pick(F.log_softmax(self.head(input), 1), in_head)
        output = head if output is None else output + head
        return _Result(output if is_batched else output.squeeze(0), (-output).mean())

    def log_prob(self, input):
        """Log probabilities, [batch, n_classes]."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return aten("cat")(parts, 1)

    def predict(self, input):
        """The most likely class of each row. A cluster is computed only for rows where the head prefers it."""
        with no_grad():
            head = self.head(input)
            best = head.argmax(1)
            rows = (best >= self.shortlist_size).nonzero().squeeze(1)
            return best.index_copy(0, rows, self.log_prob(input.index_select(0, rows)).argmax(1)) if rows.numel() else best
