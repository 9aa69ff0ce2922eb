"""The rows of the benchmark: a model, its inputs for each batch size, and the target."""

import dataclasses
import random
from typing import Callable, List, Optional, Tuple

import torch
import torchvision
from torch import Tensor, nn

from tests.models import make_models, script_models


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[int], List[tuple]]  # batch size → the requests, in order; several if shapes change
    input_names: Tuple[str, ...]
    aim: float  # our time divided by that of the best peer, at most
    large_batch_aim: Optional[float] = None  # if different
    large_batch: Optional[int] = 8  # None: only measured at batch 1
    dynamic_axis: Optional[int] = None  # of all inputs: its size changes from request to request
    exported: Optional[Callable[[nn.Module], nn.Module]] = None  # the same weights with operators that ONNX has

    def aim_at(self, batch: int) -> float:
        return self.aim if batch == 1 or self.large_batch_aim is None else self.large_batch_aim


class AddOne(nn.Module):
    """Costs nothing but the call itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Tagger(nn.Module):
    def __init__(self, words: int = 10000, tags: int = 32):
        super().__init__()
        self.words = nn.Embedding(words, 128)
        self.lstm = nn.LSTM(128, 256, num_layers=2, batch_first=True)
        self.tags = nn.Linear(256, tags)

    def forward(self, ids: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.words(ids))
        return self.tags(hidden)


class Dlrm(nn.Module):
    """26 categorical features of 4 values each, 13 numbers, dot products between all pairs."""

    def __init__(self, rows: int = 20000, width: int = 64):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(26)])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                    nn.Linear(256, width), nn.ReLU())
        pairs = torch.tril_indices(27, 27, offset=-1)
        self.register_buffer("pairs", pairs[0] * 27 + pairs[1])
        self.top = nn.Sequential(nn.Linear(27 * 26 // 2 + width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                 nn.Linear(256, 1))

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        bottom = self.bottom(dense)
        vectors = [bottom]
        for i, bag in enumerate(self.bags):
            vectors.append(bag(sparse[i]))
        features = torch.stack(vectors, 1)
        dots = torch.matmul(features, features.transpose(1, 2)).flatten(1)
        crossed = torch.cat([bottom, dots.index_select(1, self.pairs)], 1)
        return torch.sigmoid(self.top(crossed))


class GatherSum(nn.Module):
    """An embedding bag composed of operators that ONNX has: the exporter would write a loop."""

    def __init__(self, bag: nn.EmbeddingBag):
        super().__init__()
        self.weight = bag.weight

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.embedding(ids, self.weight).sum(1)


def without_bags(model: Dlrm) -> Dlrm:
    out = Dlrm(rows=1)
    out.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith("bags")}, strict=False)
    out.bags = nn.ModuleList([GatherSum(bag) for bag in model.bags])
    return out.eval()


def vision(name: str) -> nn.Module:
    model = make_models.condition(getattr(torchvision.models, name)(weights=None))
    return make_models.fit_statistics(model, torch.randn(4, 3, 224, 224))


def image(batch: int) -> List[tuple]:
    return [(torch.randn(batch, 3, 224, 224),)]


def words(batch: int, length: int) -> tuple:
    return torch.randint(1, 1000, (batch, length)), torch.ones(batch, length, dtype=torch.int64)


def changing_words(batch: int) -> List[tuple]:
    """40 distinct lengths in a fixed order."""
    lengths = random.Random(7).sample(range(8, 129), 40)
    return [words(batch, length) for length in lengths]


def encoders(name: str, make: Callable[[], nn.Module], changing_batch: Optional[int]) -> List[Row]:
    names = ("ids", "mask")
    fixed = [Row(f"{name} ({length} words)", make, lambda batch, length=length: [words(batch, length)], names, 0.85)
             for length in (16, 128)]
    return [*fixed, Row(f"{name} (8–128 words)", make, changing_words, names, 0.7, large_batch=changing_batch,
                        dynamic_axis=1)]


def encoder() -> nn.Module:
    return make_models.condition(script_models.Encoder(words=1000, width=384, heads=6, layers=6))


def bert() -> nn.Module:
    return make_models.condition(script_models.Encoder(words=30522, width=768, heads=12, layers=12))


ROWS = [
    Row("call", AddOne, lambda batch: [(torch.randn(batch, 16),)], ("x",), 1.0, large_batch=None),
    Row("resnet18", lambda: vision("resnet18"), image, ("x",), 0.95),
    Row("resnet50", lambda: vision("resnet50"), image, ("x",), 0.95),
    Row("mobilenet_v2", lambda: vision("mobilenet_v2"), image, ("x",), 0.8),
    Row("convnext_tiny", lambda: make_models.condition(torchvision.models.convnext_tiny(weights=None)), image, ("x",),
        0.95),
    Row("efficientnet_b0", lambda: vision("efficientnet_b0"), image, ("x",), 0.95),
    Row("vit_b_16", lambda: make_models.condition(torchvision.models.vit_b_16(weights=None)), image, ("x",), 0.85),
    *encoders("encoder 6×384", encoder, changing_batch=8),
    *encoders("BERT-base", bert, changing_batch=None),
    Row("LSTM tagger", Tagger, lambda batch: [(torch.randint(0, 10000, (batch, 64)),)], ("ids",), 0.7,
        large_batch_aim=1.0),
    Row("MLP", Mlp, lambda batch: [(torch.randn(batch, 784),)], ("x",), 0.7, large_batch_aim=1.0, large_batch=64),
    Row("DLRM", Dlrm, lambda batch: [(torch.randn(batch, 13), torch.randint(0, 20000, (26, batch, 4)))],
        ("dense", "sparse"), 1.0, large_batch=64, exported=without_bags),
]
