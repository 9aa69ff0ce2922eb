"""Sequence models, decoupled models and decoders, with their configurations."""

import math
import os
from typing import List, NamedTuple, Tuple

import torch
from torch import Tensor, nn
from torch.jit import Final

from tests.e2e import serve_models


class Sums(NamedTuple):
    total: Tensor
    new_total: Tensor


class Accumulate(nn.Module):
    """The sum of a sequence's inputs; its state is an input and an output."""

    def forward(self, x: Tensor, START: Tensor, old_total: Tensor) -> Sums:
        if float(x.min()) < 0:
            raise ValueError("negative")
        total = old_total * (1 - START) + x
        return Sums(total, total)


class Continue(nn.Module):
    """The same with any initial state."""

    def forward(self, x: Tensor, old_total: Tensor) -> Sums:
        return Sums(x + old_total, x + old_total)


class Rows(nn.Module):
    """The same with the state in the module, by the sequence's row."""

    def __init__(self):
        super().__init__()
        self.register_buffer("totals", torch.zeros(2, 1))

    def forward(self, x: Tensor, START: Tensor, READY: Tensor) -> Tensor:
        rows = self.totals[:x.size(0)]
        rows.copy_(rows * (1 - START) + x * READY)
        return rows.clone()


class History(NamedTuple):
    joined: Tensor
    new_history: Tensor


class Remember(nn.Module):
    """All inputs of a sequence, in a growing state."""

    def forward(self, x: Tensor, history: Tensor) -> History:
        joined = torch.cat([history, x], 1)
        return History(joined, joined)


class Names(nn.Module):
    """Returns the sequence's id and its flags."""

    def forward(self, x: Tensor, START: Tensor, END: Tensor, CORRID: List[List[str]]) -> Tuple[List[List[str]], Tensor]:
        return CORRID, START + 2 * END


class Repeat(nn.Module):
    """A response for each element."""

    def forward(self, x: Tensor) -> List[Tuple[Tensor, Tensor]]:
        items: List[Tuple[Tensor, Tensor]] = []
        for i in range(x.size(0)):
            if int(x[i]) < 0:
                raise ValueError("negative")
            items.append((x[i:i + 1], torch.tensor([i])))
        return items


class Step(NamedTuple):
    token: Tensor
    new_keys: Tensor
    new_values: Tensor


LAYERS, HEADS, DIM, VOCABULARY, CONTEXT = 2, 4, 8, 61, 48


class Block(nn.Module):
    """A standard transformer layer."""

    head_count: Final[int] = HEADS
    dim: Final[int] = DIM

    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.head_count, self.dim).transpose(1, 2)

    def project(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.qkv(self.norm1(x)).chunk(3, 2)
        return self.heads(query), self.heads(key), self.heads(value)

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        scores = query @ keys.transpose(2, 3) / math.sqrt(float(self.dim))
        weights = torch.softmax(scores.masked_fill(~mask, -1e9), 3)
        x = x + self.out((weights @ values).transpose(1, 2).flatten(2))
        return x + self.shrink(torch.relu(self.grow(self.norm2(x))))


class Decoder(nn.Module):
    """Shared by the two decoders: everything but the cache."""

    context: Final[int] = CONTEXT

    def __init__(self):
        super().__init__()
        torch.manual_seed(11)
        width = HEADS * DIM
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, width))
        self.places = nn.Parameter(torch.randn(CONTEXT, width))
        self.blocks = nn.ModuleList([Block(width) for _ in range(LAYERS)])
        self.head = nn.Linear(width, VOCABULARY)
        for block in self.blocks:
            nn.init.normal_(block.qkv.weight, std=0.5)
            nn.init.normal_(block.out.weight, std=0.5)


class GrowingDecoder(Decoder):
    """Its cache grows with the tokens. Shorter rows of a batch are right-aligned."""

    def forward(self, tokens: Tensor, length: Tensor, keys: Tensor, values: Tensor) -> Step:
        before = keys.size(3)
        total = before + tokens.size(1)
        places = torch.arange(total)
        empty = total - length  # padding
        mask = ((places >= empty).unsqueeze(1) & (places <= places[before:].unsqueeze(1))).unsqueeze(1)
        x = self.embedding[tokens] + self.places[(places[before:] - empty).clamp(min=0)]
        new_keys: List[Tensor] = []
        new_values: List[Tensor] = []
        for i, block in enumerate(self.blocks):
            query, key, value = block.project(x)
            new_keys.append(torch.cat([keys[:, i], key], 2))
            new_values.append(torch.cat([values[:, i], value], 2))
            x = block(x, query, new_keys[i], new_values[i], mask)
        token = self.head(x[:, -1]).argmax(1, keepdim=True)
        return Step(token, torch.stack(new_keys, 1), torch.stack(new_values, 1))


class FixedStep(NamedTuple):
    token: Tensor
    done: Tensor
    new_cache: Tensor
    new_position: Tensor


class FixedDecoder(Decoder):
    """Its cache has a fixed size, and is written in place."""

    def forward(self, tokens: Tensor, START: Tensor, cache: Tensor, position: Tensor) -> FixedStep:
        now = position + torch.arange(tokens.size(1))
        mask = (torch.arange(self.context) <= now.unsqueeze(2)).unsqueeze(1)
        x = self.embedding[tokens] + self.places[now]
        for i, block in enumerate(self.blocks):
            query, key, value = block.project(x)
            where = now.unsqueeze(1).unsqueeze(3).expand_as(key)
            keys = cache[:, 2 * i].scatter_(2, where, key)
            values = cache[:, 2 * i + 1].scatter_(2, where, value)
            x = block(x, query, keys, values, mask)
        token = self.head(x[:, -1]).argmax(1, keepdim=True)
        position = position + tokens.size(1)
        return FixedStep(token, (position >= self.context - 1).to(torch.int32), cache, position)


def growing_tokens(model, prompt, count):
    """The model's tokens after the prompt, computed alone by PyTorch."""
    tokens = torch.tensor([prompt])
    keys = values = torch.zeros(1, LAYERS, HEADS, 0, DIM)
    length, out = 0, []
    with torch.no_grad():
        for _ in range(count):
            length += tokens.size(1)
            tokens, keys, values = model(tokens, torch.tensor([[length]]), keys, values)
            out.append(int(tokens))
    return out


def fixed_tokens(model, prompt, count):
    tokens, cache = torch.tensor([prompt]), torch.zeros(1, 2 * LAYERS, HEADS, CONTEXT, DIM)
    position, out = torch.zeros(1, 1, dtype=torch.int64), []
    with torch.no_grad():
        for _ in range(count):
            tokens, done, cache, position = model(tokens, torch.zeros(1, 1), cache, position)
            out.append(int(tokens))
            if int(done):
                break
    return out


def control(name, kind, values="fp32_false_true: [ 0, 1 ]"):
    return f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{kind} {values} }} }}\n'


def state(input_name, output_name, dims, datatype="FP32", initial=""):
    if initial:
        initial = f"initial_state {{ data_type: TYPE_{datatype} {initial} }}"
    return (f'state {{ input_name: "{input_name}" output_name: "{output_name}" data_type: TYPE_{datatype} '
            f"dims: [ {dims} ] {initial} }}\n")


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


def sequences(*parts):
    return "sequence_batching {\n" + "".join(parts) + "}\n"


ONE = 'input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }\n'
START, READY, TOTAL = control("START", "START"), control("READY", "READY"), state("old_total", "new_total", 1)
GENERATION = ("model_transaction_policy { decoupled: true }\n" + parameter("generation_input", "tokens") +
              parameter("generation_output", "token") + parameter("generation_max_steps", 40))
CACHE = f"{LAYERS}, {HEADS}, -1, {DIM}"
EMPTY = f"dims: [ {LAYERS}, {HEADS}, 0, {DIM} ] zero_data: true"
FIXED = f"{2 * LAYERS}, {HEADS}, {CONTEXT}, {DIM}"

MODELS = {
    "direct": (Accumulate, "max_batch_size: 2\n" + ONE + sequences(START, TOTAL)),
    "oldest": (Accumulate, "max_batch_size: 4\n" + ONE +
               sequences(START, TOTAL, "oldest { max_candidate_sequences: 8 max_queue_delay_microseconds: 2000 }\n",
                         "max_sequence_idle_microseconds: 60000000\n")),
    "brief": (Accumulate, "max_batch_size: 4\n" + ONE +
              sequences(START, TOTAL, "max_sequence_idle_microseconds: 100000\n")),
    "first": (Continue, "max_batch_size: 4\n" + ONE +
              sequences(state("old_total", "new_total", 1, "FP32", 'dims: [ 1 ] data_file: "ten"'))),
    "rows": (Rows, "max_batch_size: 2\n" + ONE + sequences(START, READY)),
    "remember": (Remember, "max_batch_size: 4\n" + ONE +
                 sequences(state("history", "new_history", -1, "FP32", "dims: [ 0 ] zero_data: true"))),
    "names": (Names, "max_batch_size: 4\n" + ONE +
              sequences(START, control("END", "END"), control("CORRID", "CORRID", "data_type: TYPE_STRING"))),
    "repeat": (Repeat, 'input { name: "x" data_type: TYPE_INT64 dims: [ -1 ] }\n'
               'output [ { name: "out" data_type: TYPE_INT64 dims: [ 1 ] },\n'
               ' { name: "index" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
               "model_transaction_policy { decoupled: true }\n"),
    "growing": (GrowingDecoder, "max_batch_size: 8\n" + GENERATION + parameter("generation_length_input", "length") +
                parameter("plan_cache_size", 0) +
                'input { name: "tokens" data_type: TYPE_INT64 dims: [ -1 ] }\n' +
                sequences("iterative_sequence: true\n", state("keys", "new_keys", CACHE, "FP32", EMPTY),
                          state("values", "new_values", CACHE, "FP32", EMPTY))),
    "fixed": (FixedDecoder, "max_batch_size: 8\n" + GENERATION + parameter("generation_end_output", "done") +
              'input { name: "tokens" data_type: TYPE_INT64 dims: [ -1 ] }\n' +
              sequences("iterative_sequence: true\n", START, state("cache", "new_cache", FIXED),
                        state("position", "new_position", 1, "INT64"))),
}
# The same decoder with one response for all tokens.
MODELS["whole"] = (GrowingDecoder,
                   MODELS["growing"][1].replace("model_transaction_policy { decoupled: true }\n", ""))


def make_repository(root, names):
    for name in names:
        make, config = MODELS[name]
        serve_models.save(make(), root, name)
        with open(os.path.join(root, name, "config.pbtxt"), "w") as out:
            out.write(config)
