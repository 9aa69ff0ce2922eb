"""Small model files that demand much memory or time."""

import os
import struct
import time

import grpc
import torch
from torch import Tensor, nn

from tests.attacks.registry import Figure, attack
from tests.attacks.robust import add_model, load

LIMIT_S = 3  # of a load


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def string_field(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def value_info(name):
    return string_field(1, name) + string_field(2, string_field(1, number(1, 1) + string_field(2, string_field(1, string_field(2, "n")))))


def node(operator, inputs, outputs, attributes=()):
    return string_field(1, b"".join(string_field(1, name) for name in inputs) + b"".join(string_field(2, name) for name in outputs) + string_field(4, operator) +
                b"".join(string_field(5, attribute) for attribute in attributes))


def onnx_model(nodes, inputs, outputs, more=b""):
    graph = (nodes + string_field(2, "g") + more + b"".join(string_field(11, value_info(name)) for name in inputs) +
             b"".join(string_field(12, value_info(name)) for name in outputs))
    return number(1, 8) + string_field(7, graph) + string_field(8, string_field(1, "") + number(2, 17))


def sparse(name, *dims):
    """One element of a dense tensor of these sizes."""
    values = number(1, 1) + number(2, 1) + string_field(8, name) + string_field(9, struct.pack("<f", 5))
    indices = number(1, 1) + number(2, 7) + number(7, 0)
    return string_field(1, values) + string_field(2, indices) + b"".join(number(3, dim) for dim in dims)


def sparse_initializers():
    """Twenty of 1 GB each."""
    return onnx_model(node("Relu", ["x"], ["y"]), ["x"], ["y"],
                      b"".join(string_field(15, sparse(f"s{i}", 1 << 14, 1 << 14)) for i in range(20)))


def sparse_constants():
    attributes = [string_field(1, "sparse_value") + string_field(22, sparse("s", 1 << 14, 1 << 14)) + number(20, 11)]
    return onnx_model(b"".join(node("Constant", [], [f"c{i}"], attributes) for i in range(20)) + node("Relu", ["x"], ["y"]), ["x"], ["y"])


def overlapping_external():
    """Sixty-four unaligned tensors over one large sparse file."""
    def tensor(i):
        entries = [("location", "data"), ("offset", "1"), ("length", str(1 << 29))]
        return (number(1, 1 << 27) + number(2, 1) + string_field(8, f"w{i}") + number(14, 1) +
                b"".join(string_field(13, string_field(1, key) + string_field(2, value)) for key, value in entries))
    return onnx_model(node("Relu", ["x"], ["y"]), ["x"], ["y"], b"".join(string_field(5, tensor(i)) for i in range(64)))


class Expanded(nn.Module):
    """Layers whose weights are one number, expanded."""

    def __init__(self):
        super().__init__()
        one = torch.zeros(1)
        self.layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(8)])
        for layer in self.layers:
            layer.weight = nn.Parameter(one.expand(1 << 15, 1 << 15))
            layer.bias = nn.Parameter(one.expand(1 << 15))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def add_onnx(repository, name, data):
    os.makedirs(os.path.join(repository, name, "1"), exist_ok=True)
    with open(os.path.join(repository, name, "1", "model.onnx"), "wb") as out:
        out.write(data)


def refusal(daemon, name, timeout=60):
    """The error of the load, and its duration."""
    begin = time.monotonic()
    try:
        load(daemon, name, timeout)
    except grpc.RpcError as error:
        return error.details(), time.monotonic() - begin
    return "", time.monotonic() - begin


@attack("models_that_ask_for_memory", short=True)
def models_that_ask_for_memory(context):
    """A file of 1 KB requests 16 to 32 GB: it is refused with the sum, before any of it is allocated. Legitimate sparse
    files load."""
    repository = context.path("models")
    add_onnx(repository, "initializers", sparse_initializers())
    add_onnx(repository, "constants", sparse_constants())
    add_onnx(repository, "external", overlapping_external())
    with open(os.path.join(repository, "external", "1", "data"), "wb") as out:
        out.truncate(1 << 30)
    add_onnx(repository, "honest", onnx_model(node("Relu", ["x"], ["y"]), ["x"], ["y"], string_field(15, sparse("s", 1 << 10, 1 << 10))))
    add_model(repository, "expanded", Expanded(), dims=-1)
    with context.daemon("--model-control-mode", "explicit", "--model-memory-limit", "8GB", repository=repository) as daemon:
        with context.watched(daemon, 400) as figures:
            for name in ("initializers", "constants", "external", "expanded"):
                why, seconds = refusal(daemon, name)
                if "bytes of memory, more than the" not in why:
                    raise RuntimeError(f"{name}: {why}")
                figures.append(Figure(name, seconds, 10, "s"))
            load(daemon, "honest")
    return figures


def safetensors(count):
    header = ("{" + ",".join(f'"{i:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(count)) + "}").encode()
    return struct.pack("<Q", len(header)) + header


def script(body):
    return "class M(Module):\n  def forward(self, x: Tensor, c: int) -> Tensor:\n" + body + "    return x\n"


@attack("loads_that_take_long")
def loads_that_take_long(context):
    """Parts of a load whose duration the file controls end at the load's timeout."""
    repository = context.path("models")
    names = [f"v{i}" for i in range(100_001)]
    add_onnx(repository, "chain", onnx_model(b"".join(node("Transpose", names[i:i + 1], names[i + 1:i + 2]) for i in range(100_000)),
                                             ["v0"], ["v100000"]))
    add_onnx(repository, "outputs", onnx_model(b"".join(node("Relu", ["x"], [name]) for name in names[:60_000]), ["x"],
                                               names[:60_000]))
    scripts = {
        "early": script("".join(f"    if torch.eq(c, {i}):\n      return torch.relu(x)\n    else:\n      pass\n" for i in range(3000))),
        "lists": script("    l = annotate(List[Tensor], [])\n" + "".join(f"    _{i} = torch.append(l, x)\n" for i in range(30_000))),
        "products": script("    n = torch.arange(1000)\n    x = torch.add(x, torch.sum(torch.cartesian_prod([n, n, n])))\n"),
        "triangle": script("    x = torch.add(x, torch.sum(torch.triu_indices(100000, 100000)))\n"),
        "weights": script("    x = torch.relu(x)\n")}
    for name, source in scripts.items():
        os.makedirs(os.path.join(repository, name, "1"), exist_ok=True)
        with open(os.path.join(repository, name, "1", "model.py"), "w") as out:
            out.write(source)
    with open(os.path.join(repository, "weights", "1", "weights.safetensors"), "wb") as out:
        out.write(safetensors(1_000_000))
    figures = []
    with context.daemon("--model-control-mode", "explicit", "--model-load-timeout-secs", str(LIMIT_S),
                        "--copy-archives", "off", repository=repository) as daemon:
        for name in ("chain", "outputs", *scripts):
            why, seconds = refusal(daemon, name, timeout=120)
            figures.append(Figure(name, seconds, LIMIT_S + 3, "s"))
            if not daemon.is_alive() or (why and "it takes too long" not in why and name != "weights"):
                raise RuntimeError(f"{name}: {why}")
    return figures
