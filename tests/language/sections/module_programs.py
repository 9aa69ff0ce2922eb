"""Whole modules as in real code: layers of PyTorch with masks and lengths, state that calls change, classes, traces."""

from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.decoding import ids, values

section = Section()
case, made = section.case, section.made
T = torch.tensor


def filled(module: nn.Module, scale: float = 0.4) -> nn.Module:
    """Fills it with the same numbers at every start."""
    with torch.no_grad():
        for i, p in enumerate(list(module.parameters())):
            p.copy_(values(*p.shape, seed=i) * scale)
    return module.eval()


class Encoder(nn.Module):
    def __init__(self, cell: str):
        super().__init__()
        self.embed = nn.Embedding(6, 4, padding_idx=0)
        self.rnn = (nn.LSTM if cell == "lstm" else nn.GRU)(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.is_lstm = cell == "lstm"


class LstmEncoder(Encoder):
    def __init__(self):
        super().__init__("lstm")

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.rnn(packed)
        padded, n = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, padding_value=-5.0)
        last = padded.gather(1, (n - 1).view(-1, 1, 1).expand(-1, 1, padded.size(2))).squeeze(1)
        return padded, torch.cat((h[-2], h[-1]), -1), last + c.sum()


made("LstmEncoder", lambda: filled(LstmEncoder()), (ids(3, 5, most=6), T([2, 5, 3])), (ids(1, 1), T([1])), (ids(2, 3), T([0, 3])), rtol=1e-4)


class GruSteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(3, 4), nn.GRUCell(4, 4)])
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor, steps: int, teacher: Optional[Tensor] = None):
        hs: List[Tensor] = [torch.zeros(x.size(0), 4) for _ in range(2)]
        outs = torch.jit.annotate(List[Tensor], [])
        for t in range(steps):
            y = x
            for i, cell in enumerate(self.cells):
                hs[i] = cell(y, hs[i])
                y = hs[i]
            x = self.out(y)
            outs += [x]
            if teacher is not None and t < teacher.size(1):
                x = teacher[:, t]
        return torch.stack(outs, dim=1) if len(outs) > 0 else x.unsqueeze(1), hs


made("GruSteps", lambda: filled(GruSteps()), (values(2, 3), 3, None), (values(2, 3), 3, values(2, 2, 3)), (values(1, 3), 0, None), rtol=1e-4)


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 12, dropout=0.1, batch_first=True)
        self.embed = nn.Embedding(7, 8)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        pad = source == 0
        n = target.size(1)
        causal = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
        return self.model(self.embed(source), self.embed(target), tgt_mask=causal, src_key_padding_mask=pad, memory_key_padding_mask=pad)


made("Seq2Seq", lambda: filled(Seq2Seq()), (T([[1, 2, 3, 0], [4, 0, 0, 0]]), T([[1, 2], [3, 4]])), (T([[5, 6]]), T([[1, 2, 3]])), (T([[1, 2, 3], [4, 0, 0]]), T([[1, 2], [3, 4]])), rtol=1e-3)


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]):
        a, w = self.attention(q, k, v, key_padding_mask=mask, average_attn_weights=False)
        b, none = self.attention(q, k, v, need_weights=False)
        return a, w, b, none


made("Attend", lambda: filled(Attend()), (values(3, 2, 6), values(4, 2, 6, seed=1), values(4, 2, 6, seed=2), None),
     (values(3, 2, 6), values(4, 2, 6, seed=1), values(4, 2, 6, seed=2), T([[False, True, False, False], [False, False, False, True]])), rtol=1e-4)


class AttendPlainly(nn.Module):
    """The fast path of nn.MultiheadAttention, whose operator omits unrequested weights: None, not a tensor."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, batch_first=True)

    def attend(self, x: Tensor, needed: bool) -> Tuple[Tensor, Optional[Tensor]]:
        return self.attention(x, x, x, need_weights=needed)

    def forward(self, x: Tensor, needed: bool):
        y, w = self.attention(x, x, x, need_weights=False)
        if w is not None:
            y = y + w.mean()
        z, v = self.attend(x, needed)
        if v is not None:
            z = z * v.sum()
        if needed:
            pair = self.attention(x, x, x, need_weights=False)
        else:
            pair = self.attention(x, y, y, need_weights=False)
        return y, w, z, v, pair[1] is None


made("AttendPlainly", lambda: filled(AttendPlainly()), (values(2, 3, 6), False), (values(2, 3, 6), True), rtol=1e-4)


class MovingAverage(nn.Module):
    shadow: Dict[str, Tensor]
    last: Optional[Tensor]
    history: List[Tuple[int, float]]

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.shadow = {}
        self.history = []
        self.last = None
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, decay: float = 0.9):
        y = self.fc(x)
        self.seen += x.size(0)
        if "mean" not in self.shadow:
            self.shadow["mean"] = y.mean(0)
        else:
            self.shadow["mean"].mul_(decay).add_(y.mean(0), alpha=1 - decay)
        last = self.last
        change = torch.tensor(-1.0)
        if last is not None:
            change = (y - last).abs().sum() if last.shape == y.shape else change
        self.last = y
        self.history.append((int(self.seen), float(decay)))
        return self.shadow["mean"].clone(), change, self.history, self.seen.clone()

    @torch.jit.export
    def reset(self):
        self.shadow.clear()
        self.history.clear()
        self.last = None
        self.seen.zero_()


made("MovingAverage", lambda: filled(MovingAverage()), (values(2, 3),), (values(2, 3, seed=1), 0.5), ("reset", ()), (values(1, 3),), rtol=1e-5)


class RingBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3, 2))
        self.at = 0
        self.full = False

    def forward(self, rows: Tensor) -> Tuple[Tensor, int, bool]:
        for row in rows:
            self.memory[self.at] = row
            self.at = (self.at + 1) % self.memory.size(0)
            self.full = self.full or self.at == 0
        seen = self.memory if self.full else self.memory[: self.at]
        return torch.cat((seen[self.at :], seen[: self.at])) if self.full else seen.clone(), self.at, self.full


made("RingBuffer", RingBuffer, (values(1, 2),), (values(2, 2, seed=1),), (values(4, 2, seed=2),), (values(0, 2),))


@torch.jit.script
class BoxList:
    def __init__(self, boxes: Tensor, size: Tuple[int, int], fields: Optional[Dict[str, Tensor]] = None):
        self.boxes = boxes
        self.size = size
        self.fields: Dict[str, Tensor] = {} if fields is None else fields

    def area(self) -> Tensor:
        return (self.boxes[:, 2] - self.boxes[:, 0]) * (self.boxes[:, 3] - self.boxes[:, 1])

    def resized(self, size: Tuple[int, int]):
        ratio = torch.tensor([float(size[0]) / self.size[0], float(size[1]) / self.size[1]]).repeat(2)
        return BoxList(self.boxes * ratio, size, self.fields)

    def __getitem__(self, keep: Tensor):
        return BoxList(self.boxes[keep], self.size, {k: v[keep] for k, v in self.fields.items()})

    def __len__(self) -> int:
        return self.boxes.size(0)


@case((values(4, 4, low=0.0, high=8.0),), (values(1, 4),), rtol=1e-5)
def box_lists(x: Tensor):
    boxes = BoxList(x, (8, 4))
    boxes.fields["score"] = x[:, 0]
    big = boxes.resized((16, 16))
    big.fields["label"] = torch.arange(len(big))
    chosen = big[big.area() > 0]
    lists = [boxes, chosen, big]
    return [len(b) for b in lists], chosen.boxes, chosen.fields, sorted(boxes.fields.keys()), lists[-1].size


class Mode(Enum):
    MEAN = "mean"
    MAX = "max"


class Pooler(nn.Module):
    mode: Mode

    def __init__(self, mode: Mode):
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        m = mask.unsqueeze(-1)
        if self.mode == Mode.MEAN:
            return (x * m).sum(1) / m.sum(1).clamp(min=1)
        return x.masked_fill(~m, -3.4e38).amax(1)


class Poolers(nn.Module):
    def __init__(self):
        super().__init__()
        self.all = nn.ModuleDict({"a": Pooler(Mode.MEAN), "b": Pooler(Mode.MAX)})

    def forward(self, x: Tensor, mask: Tensor):
        found: Dict[str, Tensor] = {}
        for name, pool in self.all.items():
            found[name + pool.mode.value] = pool(x, mask)
        return found, [k.upper() for k in found.keys()]


made("Poolers", Poolers, (values(2, 3, 2), T([[True, True, False], [False, False, False]])), rtol=1e-5)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 3)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(3, 2), nn.GELU()) for _ in range(3)])

    def forward(self, x: Tensor, k: int = 2) -> Tuple[Tensor, Tensor]:
        w, chosen = self.gate(x).softmax(-1).topk(k, -1)
        out = x.new_zeros(x.size(0), 2)
        for i, expert in enumerate(self.experts):
            rows, slots = torch.where(chosen == i)
            if rows.numel() > 0:
                out.index_add_(0, rows, expert(x[rows]) * w[rows, slots].unsqueeze(-1))
        load = torch.zeros(3).scatter_add_(0, chosen.flatten(), torch.ones(chosen.numel()))
        return out, load


made("Mixture", lambda: filled(Mixture()), (values(5, 3),), (values(1, 3), 1), (values(0, 3),), rtol=1e-4)


class LossScale(nn.Module):
    def forward(self, logits: List[Tensor], targets: Dict[str, Tensor], weights: List[float]) -> Dict[str, Tensor]:
        losses: Dict[str, Tensor] = {}
        for i, (l, w) in enumerate(zip(logits, weights)):
            losses[f"ce_{i}"] = w * F.cross_entropy(l, targets["label"], label_smoothing=0.1)
        if "box" in targets:
            losses["box"] = F.smooth_l1_loss(logits[0][:, :2], targets["box"], beta=0.5)
        losses["total"] = torch.stack(list(losses.values())).sum()
        return losses


made("LossScale", LossScale, ([values(2, 3), values(2, 4)], {"label": T([0, 2])}, [1.0, 0.5]), ([values(2, 3)], {"label": T([1, 2]), "box": values(2, 2, seed=2)}, [2.0, 3.0]), rtol=1e-5)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.weight_norm(nn.Conv1d(2, 3, 3, padding="same", padding_mode="circular"))
        self.n = nn.ModuleList([nn.InstanceNorm1d(3, affine=True, track_running_stats=True), nn.GroupNorm(3, 3), nn.LocalResponseNorm(2)])
        self.p = nn.ParameterList([nn.Parameter(torch.ones(3, 1)) for _ in range(3)])
        self.d = nn.ParameterDict({"scale": nn.Parameter(torch.tensor(2.0))})

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(x)
        for n, p in zip(self.n, self.p):
            x = n(x) * p
        return F.prelu(x, self.d["scale"].view(1)) + F.lp_pool1d(x, 2.0, 3, 1).mean() + F.unfold(x.unsqueeze(1), (1, 3)).sum()


made("Normed", lambda: filled(torch.jit.trace(Normed().eval(), values(2, 2, 5), check_trace=False)), (values(2, 2, 5),), (values(1, 2, 9),), rtol=1e-4)


class TreeNode(NamedTuple):
    value: Tensor
    children: List[int]


class TreeSum(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.node = nn.Linear(2, 3), nn.Linear(3, 3)

    def forward(self, values: Tensor, children: List[List[int]]) -> Tuple[Tensor, List[int]]:
        nodes = [TreeNode(v, c) for v, c in zip(values.unbind(0), children)]
        done: Dict[int, Tensor] = {}
        stack = [0]
        order: List[int] = []
        while len(stack) > 0:
            i = stack[-1]
            waiting = [c for c in nodes[i].children]
            for c in nodes[i].children:
                if c in done:
                    waiting.remove(c)
            if len(waiting) == 0:
                stack.pop()
                parts = [done[c] for c in nodes[i].children]
                inner = torch.stack(parts).sum(0) if len(parts) > 0 else torch.zeros(3)
                done[i] = torch.tanh(self.leaf(nodes[i].value) + self.node(inner))
                order.append(i)
            else:
                stack.extend(waiting)
        return done[0], order


made("TreeSum", lambda: filled(TreeSum()), (values(4, 2), [[1, 2], [3], [], []]), (values(1, 2), [[]]), rtol=1e-4)


@torch.jit.script_if_tracing
def cut(x: Tensor, n: int) -> Tensor:
    if x.size(0) > n:
        x = x[:n]
    return x


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(GruSteps())
        self.register_buffer("count", torch.zeros(1))

    def forward(self, inputs: Dict[str, Tensor], pair: Tuple[Tensor, List[Tensor]]):
        x = cut(inputs["x"], 2)
        y, hs = self.inner(x, 2, None)
        self.count += 1
        z = y.new_zeros(y.shape[0], y.shape[1] * 2)
        z[:, 1::2] = pair[0][: x.shape[0], :2]
        return {"y": y, "z": z, "h": torch.stack(hs)}, (pair[1][0].repeat(x.shape[0], 1), self.count * 1)


made("Traced", lambda: torch.jit.trace(filled(Traced()), ({"x": values(3, 3)}, (values(3, 2), [values(2)])), strict=False, check_trace=False),
     ({"x": values(3, 3)}, (values(3, 2), [values(2)])), ({"x": values(1, 3)}, (values(4, 3), [values(5)])), rtol=1e-4)


class Half(nn.Module):
    def forward(self, x: Tensor, to: int) -> List[Tensor]:
        d = torch.float16 if to == 1 else (torch.bfloat16 if to == 2 else torch.float64)
        y = x.to(d)
        s = y.sum(-1, dtype=torch.float32)
        return [y, s, y * 2, y + x, (y > 0).type_as(y), y if y.dtype == x.dtype else x, y.softmax(-1, dtype=torch.float32)]


made("Half", Half, (values(2, 3), 2), (values(2, 3), 0), rtol=1e-2)


class Unpool(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2, 2, return_indices=True, ceil_mode=True)
        self.up = nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        y, where = self.pool(x)
        z = F.max_unpool2d(y, where, [2, 2], [2, 2], [0, 0], [x.size(2), x.size(3)])
        return z, where, self.up(y, output_size=[x.size(2), x.size(3)]) + F.pixel_unshuffle(F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), 2)[:, :2]


made("Unpool", lambda: filled(Unpool()), (values(1, 2, 6, 6),), (values(2, 2, 5, 6),), rtol=1e-4)


@case((T([[1.0, -2.0, 3.0]]),), grad=False, rtol=1e-6)
class AsksForGradients(nn.Module):
    """Gradients of parameters, frozen parameters, buffers and detached tensors."""

    def __init__(self):
        super().__init__()
        self.first = filled(nn.Linear(3, 2))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.register_buffer("offset", torch.ones(3))
        self.both = nn.ParameterList([nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(2))])

    def forward(self, x: Tensor):
        asked = [self.first.weight.requires_grad, self.first.bias.requires_grad, self.frozen.requires_grad, self.offset.requires_grad,
                 self.first.weight.detach().requires_grad, (self.first.weight * 2).requires_grad, x.requires_grad]
        for parameter in self.both:
            asked.append(parameter.requires_grad)
        y = self.first(x)
        if self.first.weight.requires_grad:
            y = y + 1
        return y, asked, self.first.weight.is_leaf
