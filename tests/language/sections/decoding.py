"""Whole programs from real models: searches, decoders, tokenizers, caches, sequences of different lengths."""

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section

section = Section(before=(2,))
case, made = section.case, section.made
T = torch.tensor


def values(*sizes: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Tensor:
    return torch.empty(sizes).uniform_(low, high, generator=torch.Generator().manual_seed(seed))


def ids(*sizes: int, most: int = 5, seed: int = 0) -> Tensor:
    return torch.randint(0, most, sizes, generator=torch.Generator().manual_seed(seed))


class Hypothesis(NamedTuple):
    tokens: List[int]
    score: float
    state: Optional[Tensor] = None


def extended(h: Hypothesis, token: int, score: float, state: Optional[Tensor] = None) -> Hypothesis:
    return Hypothesis(h.tokens + [token], h.score + score, state if state is not None else h.state)


@case((values(4, 6), 3, 0), (values(5, 6, seed=1), 2, 1), rtol=1e-5)
def beam_of_named_tuples(steps: Tensor, width: int, end: int):
    log_probs = steps.log_softmax(-1)
    beams = [Hypothesis([], 0.0)]
    done: List[Hypothesis] = []
    for t in range(log_probs.size(0)):
        grown: List[Hypothesis] = []
        for beam in beams:
            scores, tokens = log_probs[t].topk(width)
            s_list: List[float] = scores.tolist()
            k_list: List[int] = tokens.tolist()
            for s, k in zip(s_list, k_list):
                grown.append(extended(beam, k, s, log_probs[t, k]))
        order = torch.tensor([h.score for h in grown]).argsort(descending=True)
        beams = []
        for i in order:
            h = grown[int(i)]
            if h.tokens[-1] == end:
                done.append(h)
            elif len(beams) < width:
                beams.append(h)
    found = done + beams
    return [h.tokens for h in found], [h.score for h in found], [h.state for h in found]


@case((values(5, 4), 2), rtol=1e-5)
def beam_of_dicts(steps: Tensor, width: int):
    beams: List[Dict[str, Tensor]] = [{"score": torch.zeros(()), "path": torch.zeros([0], dtype=torch.int64)}]
    for step in steps.log_softmax(-1):
        grown: List[Dict[str, Tensor]] = []
        for beam in beams:
            for k in range(step.numel()):
                new = beam.copy()
                new["score"] = beam["score"] + step[k]
                new["path"] = torch.cat([beam["path"], torch.tensor([k])])
                grown.append(new)
        keep = torch.stack([b["score"] for b in grown]).topk(width).indices
        beams = [grown[int(i)] for i in keep]
    return {i: b for i, b in enumerate(beams)}, [sorted(b.keys()) for b in beams]


@case((T([[1, 1, 0, 2, 2, 0, 2, 3]]), 0), (T([[0, 0], [1, 1], [1, 2]]), 0))
def ctc_greedy(frames: Tensor, blank: int):
    found: List[List[int]] = []
    for row in frames:
        kept = torch.unique_consecutive(row)
        kept = kept[kept != blank]
        text: List[int] = kept.tolist()
        found.append(text)
    longest = max([len(t) for t in found])
    padded = torch.full((len(found), longest), -1, dtype=torch.long)
    for i, t in enumerate(found):
        if len(t) > 0:
            padded[i, : len(t)] = torch.tensor(t)
    return found, padded


@case((values(6, 3), 0), (values(2, 4, seed=2), 1), rtol=1e-4)
def ctc_prefix_beam(log: Tensor, blank: int):
    probs = log.softmax(-1)
    beams: Dict[str, Tuple[float, float]] = {"": (1.0, 0.0)}
    for t in range(probs.shape[0]):
        grown: Dict[str, Tuple[float, float]] = {}
        for prefix, (pb, pn) in beams.items():
            for c in range(probs.shape[1]):
                p = float(probs[t, c])
                if c == blank:
                    b, n = grown.get(prefix, (0.0, 0.0))
                    grown[prefix] = (b + p * (pb + pn), n)
                    continue
                longer = prefix + chr(97 + c)
                b, n = grown.get(longer, (0.0, 0.0))
                if len(prefix) > 0 and prefix[-1] == chr(97 + c):
                    grown[longer] = (b, n + p * pb)
                    b, n = grown.get(prefix, (0.0, 0.0))
                    grown[prefix] = (b, n + p * pn)
                else:
                    grown[longer] = (b, n + p * (pb + pn))
        names = list(grown.keys())
        totals = torch.tensor([grown[k][0] + grown[k][1] for k in names])
        beams = {names[int(i)]: grown[names[int(i)]] for i in totals.argsort(descending=True)[:4]}
    return beams


@case((values(5, 3), values(3, 3, seed=1)), (values(1, 3), values(3, 3)), rtol=1e-5)
def viterbi(emissions: Tensor, moves: Tensor):
    score = emissions[0]
    history: List[Tensor] = []
    for t in range(1, emissions.size(0)):
        best, where = (score.unsqueeze(1) + moves).max(dim=0)
        score = best + emissions[t]
        history.append(where)
    last = int(score.argmax())
    path = [last]
    for where in history[::-1]:
        path.append(int(where[path[-1]]))
    path.reverse()
    return path, score.max()


@case((values(2, 5, 3), values(3, 3, seed=1), T([5, 2])), rtol=1e-5)
def crf_partition(emissions: Tensor, moves: Tensor, lengths: Tensor):
    mask = torch.arange(emissions.size(1))[None] < lengths[:, None]
    alpha = emissions[:, 0]
    for t in range(1, emissions.size(1)):
        inner = alpha.unsqueeze(2) + moves + emissions[:, t].unsqueeze(1)
        alpha = torch.where(mask[:, t].unsqueeze(1), inner.logsumexp(1), alpha)
    return alpha.logsumexp(1)


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(values(*p.shape, seed=i) * 0.3)

    def forward(self, x: Tensor, cache: Optional[Dict[str, List[Tensor]]] = None) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
        if cache is None:
            cache = {"k": [], "v": []}
        cache["k"].append(self.q(x))
        cache["v"].append(x)
        k, v = torch.cat(cache["k"], 1), torch.cat(cache["v"], 1)
        y = F.softmax(self.q(x) @ k.transpose(-2, -1) / math.sqrt(x.shape[-1]), -1) @ v
        return y, cache

    @torch.jit.export
    def generate(self, x: Tensor, steps: int = 3) -> Tensor:
        cache: Optional[Dict[str, List[Tensor]]] = None
        out = [x]
        for _ in range(steps):
            y, cache = self(out[-1], cache)
            out.append(torch.tanh(y))
        return torch.cat(out, dim=1)


made("Cache", Cache, (values(2, 1, 4), None), ("generate", (values(2, 1, 4), 5)), ("generate", (values(1, 2, 4),)), rtol=1e-4)


@case((values(2, 3, 4, 2), values(2, 1, 4, 2), 1), (values(1, 2, 2, 2), values(1, 2, 2, 2), 0), rtol=1e-5)
def cache_written_in_place(cache: Tensor, new: Tensor, at: int):
    cache = cache.clone()
    view = cache[:, at : at + new.size(1)]
    view.copy_(new)
    cache[:, :at] *= 0.5
    seen = cache.transpose(1, 2)
    seen[..., 0].add_(1)
    return cache, view, seen.sum(-1)


@case(("the cat sat on the mat the cat", 3), ("", 3), ("a b c d", 2))
def vocabulary(text: str, most: int):
    counts: Dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted([str(1000 - n) + ":" + w for w, n in counts.items()])
    table: Dict[str, int] = {}
    for i, entry in enumerate(ranked[:most]):
        table[entry.split(":")[1]] = i + 1
    return table, [table.get(w, 0) for w in text.split()]


@case((["low", "lower", "newest", "widest"], 4))
def byte_pairs(words: List[str], merges: int):
    pieces: List[List[str]] = [[c for c in w] for w in words]
    learned: List[Tuple[str, str]] = []
    for _ in range(merges):
        counts: Dict[str, int] = {}
        for p in pieces:
            for a, b in zip(p[:-1], p[1:]):
                counts[a + " " + b] = counts.get(a + " " + b, 0) + 1
        if len(counts) == 0:
            break
        top = sorted([f"{1000 - n}:{k}" for k, n in counts.items()])[0].split(":")[1].split(" ")
        learned.append((top[0], top[1]))
        for i in range(len(pieces)):
            p, merged, j = pieces[i], [""][:0], 0
            while j < len(p):
                if j + 1 < len(p) and p[j] == top[0] and p[j + 1] == top[1]:
                    merged.append(p[j] + p[j + 1])
                    j += 2
                else:
                    merged.append(p[j])
                    j += 1
            pieces[i] = merged
    return learned, pieces


@case(("unaffable", ["un", "##aff", "##able", "##a"]), ("xyz", ["x"]), ("", ["a"]))
def word_pieces(word: str, vocabulary: List[str]):
    known: Dict[str, int] = {w: i for i, w in enumerate(vocabulary)}
    start = 0
    found: List[int] = []
    while start < len(word):
        end = len(word)
        piece: Optional[int] = None
        while end > start and piece is None:
            part = ("##" if start > 0 else "") + word[start:end]
            if part in known:
                piece = known[part]
            else:
                end -= 1
        if piece is None:
            return [-1]
        found.append(piece)
        start = end
    return found


@case(("kitten", "sitting"), ("", "abc"), ("ü", "ü"))
def edit_distance(a: str, b: str):
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        last, row[0] = row[0], i + 1
        for j in range(len(b)):
            last, row[j + 1] = row[j + 1], min([row[j + 1] + 1, row[j] + 1, last + int(a[i] != b[j])])
    return row[-1], row


@case(([values(3, 2), values(1, 2), values(4, 2)],), ([values(2, 3)],))
def ragged_batch(rows: List[Tensor]):
    lengths = torch.tensor([r.size(0) for r in rows])
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    mask = torch.arange(batch.size(1)).expand(len(rows), -1) < lengths.unsqueeze(1)
    sums = batch.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1)
    means = sums / lengths.clamp(min=1).unsqueeze(-1)
    flat = batch[mask]
    sizes: List[int] = lengths.tolist()
    back = torch.split(flat, sizes)
    return batch, mask, means, flat, [b.shape for b in back], torch.cat([b.sum(0) for b in back])


@case((values(3, 4, 2), T([4, 2, 1])), (values(2, 3, 2), T([3, 3])), rtol=1e-5)
def packed_steps(x: Tensor, lengths: Tensor):
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    sizes: List[int] = packed.batch_sizes.tolist()
    steps = torch.split(packed.data, sizes)
    h = torch.zeros(x.size(0), x.size(2))
    outs: List[Tensor] = []
    for s in steps:
        h = torch.cat([torch.tanh(s + h[: s.size(0)]), h[s.size(0) :]])
        outs.append(h[: s.size(0)])
    y, n = nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.PackedSequence(torch.cat(outs), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices), batch_first=True, total_length=x.size(1))
    return y, n, h


@case((values(7, 4), 0.9), (values(3, 2, seed=4), 0.3), rtol=1e-5)
def top_p_filter(logits: Tensor, p: float):
    ordered, where = torch.sort(logits, descending=True)
    cumulative = ordered.softmax(-1).cumsum(-1)
    drop = cumulative > p
    drop[..., 1:] = drop[..., :-1].clone()
    drop[..., 0] = False
    mask = drop.scatter(1, where, drop)
    logits[mask] = -float("inf")
    return logits, logits.argmax(-1)


@case((T([[1, 2, 1, 2, 3]]), values(1, 6), 2), (T([[1, 2, 3]]), values(1, 6), 2))
def no_repeated_ngrams(tokens: Tensor, logits: Tensor, n: int):
    for b in range(tokens.size(0)):
        row: List[int] = tokens[b].tolist()
        seen: Dict[str, List[int]] = {}
        for i in range(len(row) - n + 1):
            key = ",".join([str(t) for t in row[i : i + n - 1]])
            if key not in seen:
                seen[key] = torch.jit.annotate(List[int], [])
            seen[key].append(row[i + n - 1])
        last = ",".join([str(t) for t in row[len(row) - n + 1 :]])
        if last in seen:
            logits[b, torch.tensor(seen[last])] = -1e9
    return logits


@case((T([[3, 1, 0], [2, 0, 0]]), values(2, 5), 1.5), rtol=1e-6)
def repetition_penalty(tokens: Tensor, logits: Tensor, penalty: float):
    picked = torch.gather(logits, 1, tokens)
    picked = torch.where(picked < 0, picked * penalty, picked / penalty)
    return logits.scatter_(1, tokens, picked)


@case((values(4, 6, low=0.0, high=4.0), values(4, low=0.0, high=1.0), 0.4), rtol=1e-5)
def suppressed_boxes(corners: Tensor, scores: Tensor, most: float):
    boxes = torch.cat([torch.minimum(corners[:, :2], corners[:, 2:4]), torch.maximum(corners[:, :2], corners[:, 2:4])], 1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    order = scores.argsort(descending=True)
    keep: List[int] = []
    while order.numel() > 0:
        i = order[0].item()
        keep.append(int(i))
        rest = order[1:]
        low = torch.max(boxes[int(i), :2], boxes[rest, :2])
        high = torch.min(boxes[int(i), 2:], boxes[rest, 2:])
        inter = (high - low).clamp(min=0).prod(1)
        order = rest[inter / (areas[int(i)] + areas[rest] - inter) <= most]
    return keep, boxes[keep]


@case((values(3, 3), 5), rtol=1e-4)
def sinkhorn(x: Tensor, rounds: int):
    u, v = torch.zeros(3), torch.zeros(3)
    for k in range(rounds):
        u = -torch.logsumexp(x + v[None, :], 1)
        v = -torch.logsumexp(x + u[:, None], 0)
        if k > 2 and bool((u.abs() < 1e-3).all()):
            break
    return torch.exp(x + u[:, None] + v[None, :]), u, v


@case((values(4, 4, low=0.1, high=3.0),), rtol=1e-5)
def shortest_paths(weights: Tensor):
    d = weights.clone()
    d.fill_diagonal_(0.0)
    for k in range(d.size(0)):
        torch.minimum(d, d[:, k, None] + d[None, k], out=d)
    return d


@case(({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, "a"))
def topological_order(graph: Dict[str, List[str]], start: str):
    seen: Dict[str, bool] = {}
    order: List[str] = []
    stack: List[Tuple[str, int]] = [(start, 0)]
    while len(stack) > 0:
        node, i = stack.pop()
        if i == 0:
            if node in seen:
                continue
            seen[node] = True
        if i < len(graph[node]):
            stack.append((node, i + 1))
            stack.append((graph[node][i], 0))
        else:
            order.insert(0, node)
    return order, seen


@case((values(5, 3), 2, 4), rtol=1e-4)
def k_means(points: Tensor, k: int, rounds: int):
    centers = points[:k].clone()
    labels = torch.zeros(points.size(0), dtype=torch.int64)
    for _ in range(rounds):
        labels = torch.cdist(points, centers).argmin(1)
        for c in range(k):
            mine = labels == c
            if mine.any():
                centers[c] = points[mine].mean(0)
    counts = torch.zeros(k).index_add_(0, labels, torch.ones_like(points[:, 0]))
    return centers, labels, counts, torch.bincount(labels, minlength=k)
