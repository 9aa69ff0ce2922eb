"""infer"""

from __future__ import annotations

import argparse
import json
from typing import Any, Dict

import numpy as np

from tensord._commands.connect import add_command, connect, json_value, pairs, print_json
from tensord._inference import Parameter, Result
from tensord.errors import InvalidArgumentError

_DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
           "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64"}


def add_to(commands: Any) -> None:
    command = add_command(commands, "infer", infer, "Ask a model, and print or save its outputs")
    command.add_argument("model")
    command.add_argument("--input", action="append", default=[], metavar="[NAME=]VALUE",
                         help="JSON, a file (.npy, .json; .npz for all inputs), or random:SHAPE[:DTYPE] such as "
                         "random:1,3,224,224:f32; without a name they go by position")
    command.add_argument("--version", dest="model_version", default="", help="a number, or a label")
    command.add_argument("--output", action="append", default=[], metavar="NAME",
                         help="only this output; may be repeated")
    command.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE",
                         help="of the request, a number, true, false or text; may be repeated")
    command.add_argument("--classes", type=int, default=0, help="only the largest values of each row")
    command.add_argument("--stream", action="store_true", help="a decoupled model: print each response as it comes")
    command.add_argument("--save", metavar="FILE.npz", help="write the outputs there instead of printing them")


def read_value(text: str) -> Any:
    """What an --input means."""
    if text.startswith("random:"):
        return random_array(text[len("random:"):])
    if text.endswith(".npy"):
        return np.load(text, allow_pickle=False)
    if text.endswith(".json"):
        with open(text) as file:
            text = file.read()
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidArgumentError(f"--input: '{text}' is neither JSON, a .npy file, nor random:SHAPE") from None


def random_array(text: str) -> Any:
    """SHAPE[:DTYPE]: floats of [0, 1), whole numbers 0 or 1; the same ones each time."""
    shape_text, _, dtype_text = text.partition(":")
    dtype = np.dtype(_DTYPES.get(dtype_text or "f32", dtype_text))
    try:
        shape = [int(size) for size in shape_text.split(",")] if shape_text else []
    except ValueError:
        raise InvalidArgumentError(f"random: a shape is numbers with commas between them, got '{shape_text}'") from None
    generator = np.random.default_rng(0)
    if dtype.kind == "f":
        return generator.random(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def read_inputs(given: argparse.Namespace) -> Any:
    """The inputs of the command line, as `Client.infer` takes them: by position, or one mapping."""
    named: Dict[str, Any] = {}
    unnamed = []
    for text in given.input:
        name, mark, value = text.partition("=")
        if mark and name.replace("_", "a").isalnum():
            named[name] = read_value(value)
        elif text.endswith(".npz"):
            with np.load(text, allow_pickle=False) as arrays:
                named.update(arrays)
        else:
            unnamed.append(read_value(text))
    if named and unnamed:
        raise InvalidArgumentError("--input: name all of them, or none")
    return (named,) if named else tuple(unnamed)


def read_parameter(text: str) -> Parameter:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def infer(given: argparse.Namespace) -> int:
    inputs = read_inputs(given)
    parameters = {name: read_parameter(value)
                  for name, value in pairs(given.parameter, "--parameter", "NAME=VALUE").items()}
    with connect(given) as client:
        if given.stream:
            for result in client.infer_stream(given.model, *inputs, outputs=given.output, version=given.model_version,
                                              parameters=parameters, timeout=given.timeout):
                show(given, result)
            return 0
        result = client.infer(given.model, *inputs, outputs=given.output, version=given.model_version,
                              classes=given.classes, parameters=parameters)
    if given.save:
        arrays: Dict[str, Any] = dict(result)
        np.savez(given.save, **arrays)
        return 0
    show(given, result)
    return 0


def show(given: argparse.Namespace, result: Result) -> None:
    if given.classes:
        outputs: Dict[str, Any] = {name: result.classes(name) for name in result}
    else:
        outputs = dict(result)
    if given.json:
        print_json({"model": result.model, "version": result.version, "outputs": outputs})
        return
    for name, value in outputs.items():
        if isinstance(value, np.ndarray):
            texts = result.texts(name) if value.dtype == object else value
            print(f"{name}  {value.dtype if value.dtype != object else 'text'}{list(value.shape)}\n{texts}")
        else:
            print(name)
            for row in value:
                print("  " + ", ".join(f"{item.label or item.index} {json_value(item.score):.4g}" for item in row))
