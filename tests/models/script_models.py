"""Small models for make_models.py whose scripts use the language's features."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.layers(x), dim=-1)


class Constants(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        mean = x.float().mean()
        return x + 1e-6, mean + 1e-6, mean * 0.5, x.sum() - 2.5, mean / 3, torch.add(x, 0.5, alpha=2)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.heads, x.size(2) // self.heads).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / (q.size(-1) ** 0.5)
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -10000.0)
        context = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.output(context.transpose(1, 2).contiguous().view(x.size(0), x.size(1), -1))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.down(nn.functional.gelu(self.up(x)))))


class Encoder(nn.Module):
    """BERT-like: embeddings, masked self-attention layers, pooled output."""

    def __init__(self, words: int = 1000, width: int = 128, heads: int = 4, layers: int = 4):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.positions = nn.Embedding(128, width)
        self.kinds = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([EncoderLayer(width, heads) for _ in range(layers)])
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
        positions = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
        x = self.norm(self.words(ids) + self.positions(positions) + self.kinds(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class PaddedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=mask)


class Summary(NamedTuple):
    total: Tensor
    count: int


class Language(nn.Module):
    """if, while, for, lists, dicts, tuples, Optional, early return, f-strings, state."""

    calls: int
    history: List[float]

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.history = torch.jit.annotate(List[float], [])
        self.register_buffer("running", torch.zeros(4))
        self.scales = nn.ParameterList([nn.Parameter(torch.full((4,), 0.5 + i)) for i in range(3)])
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def weigh(self, x: Tensor, names: Optional[List[str]]) -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        if names is None:
            out["all"] = x
            return out
        for i, name in enumerate(names):
            if name.startswith("_"):
                continue
            out[f"{name}:{i}"] = x * (i + 1)
            if len(out) > 3:
                break
        return out

    def collatz(self, n: int) -> int:
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    def forward(self, x: Tensor, n: int = 6, names: Optional[List[str]] = None) -> Tuple[Dict[str, Tensor], str, Summary]:
        for i, block in enumerate(self.blocks):
            if i % 2 == 0:
                x = torch.relu(block(x))
            else:
                x = block(x) + x
        if x.size(0) > 3 and bool((x.sum() > 1e6).item()):
            raise ValueError("too large")
        pieces = [x[i] for i in range(x.size(0))]
        total = torch.stack(pieces).sum(0)
        steps = self.collatz(n)
        pairs = [(a, b) for a, b in zip([1, 2, 3], [4.0, 5.0, 6.0])]
        weight = 0.0
        for a, b in pairs:
            weight += a * b
        text = f"{steps} steps, weight {weight}, shape {x.shape}"
        return self.weigh(total * weight, names), text, Summary(total, len(pieces))

    @torch.jit.export
    def remember(self, x: Tensor) -> Tuple[int, List[float], Tensor]:
        self.calls += 1
        self.history.append(float(x.sum()))
        self.running.mul_(0.5).add_(x)
        return self.calls, self.history, self.running.clone()

    @torch.jit.export
    def refuse(self, x: Tensor) -> Tensor:
        if x.numel() > 0:
            raise RuntimeError(f"refused {x.numel()} elements")
        return x
