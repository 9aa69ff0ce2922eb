"""Taggers with recurrent layers, decoders that step through cells, and a recommender with embedding bags. @case gives
the arguments of the calls of forward, in order."""

from typing import List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import cases

torch.manual_seed(20261121)

CASES, case = cases.collect()


def words(*sizes):
    return torch.randint(0, 100, sizes)


class Tagger(nn.Module):
    def __init__(self, layer, **flags):
        super().__init__()
        self.table = nn.Embedding(100, 24, padding_idx=0)
        self.layer = layer(24, 40, num_layers=2, **flags)
        size = flags.get("proj_size", 40) * (2 if flags.get("bidirectional") else 1)
        self.tags = nn.Linear(size, 9)

    def forward(self, text: Tensor) -> Tensor:
        out, _ = self.layer(self.table(text))
        return F.log_softmax(self.tags(out), -1)


@case(words(12, 1), words(12, 5), words(3, 2), words(70), words(2, 0))
class LstmTagger(Tagger):
    def __init__(self):
        super().__init__(nn.LSTM)


@case(words(5, 12), words(1, 64), words(7))
class LstmTaggerBoth(Tagger):
    def __init__(self):
        super().__init__(nn.LSTM, bidirectional=True, batch_first=True, dropout=0.3)


@case(words(12, 1), words(9, 5))
class LstmTaggerProjected(Tagger):
    def __init__(self):
        super().__init__(nn.LSTM, bidirectional=True, proj_size=16)


@case(words(12, 1), words(9, 5), words(9))
class GruTagger(Tagger):
    def __init__(self):
        super().__init__(nn.GRU, bidirectional=True)


@case(words(12, 1), words(9, 5))
class RnnTagger(Tagger):
    def __init__(self):
        super().__init__(nn.RNN, bias=False)


@case(words(12, 1), words(9, 5))
class ReluTagger(Tagger):
    def __init__(self):
        super().__init__(nn.RNN, nonlinearity="relu", batch_first=True)


class PackedTagger(nn.Module):
    """Sequences of different lengths, in any order."""

    def __init__(self, layer):
        super().__init__()
        self.table = nn.Embedding(100, 24)
        self.layer = layer(24, 33, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(66, 9)

    def forward(self, text: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor]:
        packed = pack_padded_sequence(self.table(text), lengths, batch_first=True, enforce_sorted=False)
        out, sizes = pad_packed_sequence(self.layer(packed)[0], batch_first=True, padding_value=0.5, total_length=text.size(1))
        return F.log_softmax(self.tags(out), -1), sizes


@case((words(4, 12), torch.tensor([3, 12, 7, 7])), (words(1, 5), torch.tensor([4])), (words(4, 12), torch.tensor([12, 1, 2, 12])))
class PackedLstm(PackedTagger):
    def __init__(self):
        super().__init__(nn.LSTM)


@case((words(4, 12), torch.tensor([3, 12, 7, 7])), (words(2, 5), torch.tensor([5, 4])))
class PackedGru(PackedTagger):
    def __init__(self):
        super().__init__(nn.GRU)


@case((torch.randn(5, 3, 10), torch.randn(2, 3, 20), torch.randn(2, 3, 20)), (torch.randn(1, 1, 10), torch.randn(2, 1, 20), torch.randn(2, 1, 20)))
class LstmStates(nn.Module):
    """States are inputs and outputs, as in a decoder that is called for each token."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(10, 20, 2)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(x, (h, c))
        z, (h, c) = self.layer(x * 2, (h, c))
        return y + z, h, c


@case(torch.randn(3, 2, 10), torch.randn(1, 4, 10), torch.randn(2, 1, 10))
class CellsFromZero(nn.Module):
    """Plain cells. Their states start as zeros, which are constants once the shapes are known."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(10, 12)
        self.state = nn.Linear(12, 12)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        a = torch.zeros(x.size(1), 12)
        b = torch.zeros(x.size(1), 12)
        for row in x:
            a = torch.tanh(self.state(a) + self.inner(row))
            b = F.relu(self.inner(row) + self.state(b)) + self.state(b)
        return a, b


@case((torch.randn(2, 10), 4), (torch.randn(1, 10), 1), (torch.randn(7, 10), 3))
class CellDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(10, 20)
        self.gru = nn.GRUCell(20, 10)
        self.rnn = nn.RNNCell(10, 10, nonlinearity="relu")

    def forward(self, x: Tensor, steps: int) -> Tuple[Tensor, Tensor]:
        h = torch.zeros(x.size(0), 20)
        c = torch.zeros(x.size(0), 20)
        outs: List[Tensor] = []
        for _ in range(steps):
            h, c = self.lstm(x, (h, c))
            x = self.rnn(x, self.gru(h, x))
            outs.append(x)
        return torch.stack(outs), c


def bags(batch, tables=4, most=6):
    """For each table the indices of all bags, and the start of each bag."""
    indices, offsets = [], []
    for _ in range(tables):
        sizes = torch.randint(0, most, (batch,))
        offsets.append(torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)[:-1]]))
        indices.append(torch.randint(0, 50, (int(sizes.sum()),)))
    return torch.randn(batch, 13), indices, offsets


@case(bags(1), bags(5), bags(64))
class Recommender(nn.Module):
    """A small DLRM: bags of categories and dense features, their pairwise products, an MLP."""

    def __init__(self, tables=4, width=16):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(50, width, mode="sum") for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: Tensor, indices: List[Tensor], offsets: List[Tensor]) -> Tensor:
        x = self.bottom(dense)
        rows = [x]
        for i, table in enumerate(self.tables):
            rows.append(table(indices[i], offsets[i]))
        features = torch.stack(rows, 1)
        products = torch.bmm(features, features.transpose(1, 2))
        flat = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, flat], 1))


@case(words(3, 5), words(1, 1), words(0, 4))
class BagModes(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(100, 12, mode="mean", padding_idx=3)
        self.max = nn.EmbeddingBag(100, 12, mode="max")
        self.sum = nn.EmbeddingBag(100, 70, mode="sum", include_last_offset=True)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        weights = torch.arange(x.numel(), dtype=torch.float32).view_as(x)
        ends = torch.arange(0, x.numel() + 1, x.size(1))
        return (self.mean(x), self.max(x), self.sum(x.view(-1), ends),
                F.embedding_bag(x, self.mean.weight, mode="sum", per_sample_weights=weights))
