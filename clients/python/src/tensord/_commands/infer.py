"""infer"""

from __future__ import annotations

import argparse
import functools
import json
import re
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from tensord._commands.connect import add_command, connect, json_value, pairs, print_json
from tensord._inference import Parameter, Result
from tensord._tensors import dtype_of
from tensord.client import Client
from tensord.errors import InvalidArgumentError
from tensord.types import TensorSpec

_DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
           "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64"}


def add_to(commands: Any) -> None:
    command = add_command(commands, "infer", infer, "Ask a model, and print or save its outputs")
    command.add_argument("model")
    command.add_argument("--input", action="append", default=[], metavar="[NAME=]VALUE",
                         help="JSON, a file (.npy, .json; .npz for all inputs; @FILE for its bytes), random[:SHAPE[:DTYPE]] "
                         "such as random:1,3,224,224:f32, or text:TEXT; without names they go by position")
    command.add_argument("--random", action="store_true",
                         help="random values for all other inputs; dynamic sizes become 1")
    command.add_argument("--version", dest="model_version", default="", help="a number, or a label")
    command.add_argument("--output", action="append", default=[], metavar="NAME",
                         help="only this output; may be repeated")
    command.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE",
                         help="a parameter of the request: a number, true, false or a string; may be repeated")
    command.add_argument("--classes", type=int, default=0, help="only the largest values of each row")
    command.add_argument("--stream", action="store_true", help="a decoupled model: print each response as it arrives")
    command.add_argument("--save", metavar="FILE",
                         help="write the outputs to FILE.npz, or the only one to FILE.npy, instead of printing them")


class Signature:
    """The model's metadata, fetched on first use."""

    def __init__(self, client: Client, given: argparse.Namespace) -> None:
        self._client = client
        self._model, self._version = given.model, given.model_version
        self._inputs: Optional[Sequence[TensorSpec]] = None

    @property
    def inputs(self) -> Sequence[TensorSpec]:
        if self._inputs is None:
            self._inputs = self._client.metadata(self._model, self._version).inputs
        return self._inputs

    def find(self, name: str) -> Optional[TensorSpec]:
        return next((spec for spec in self.inputs if spec.name == name), None)


def read_value(argument: str, find: Callable[[], Optional[TensorSpec]]) -> Any:
    """What an --input means; `find` gives what the model says of it."""
    if argument == "random":
        spec = find()
        if spec is None:
            raise InvalidArgumentError("random: takes :SHAPE[:DTYPE] here")
        return random_input(spec)
    if argument.startswith("random:"):
        return random_array(argument[len("random:"):])
    if argument.startswith("text:"):
        return np.full(least_shape(find()), argument[len("text:"):], object)
    if argument.startswith("@"):
        with open(argument[1:], "rb") as file:
            return np.full(least_shape(find()), file.read(), object)
    if argument.endswith(".npy"):
        return np.load(argument, allow_pickle=False)
    if argument.endswith(".json"):
        with open(argument) as file:
            argument = file.read()
    try:
        return json.loads(argument)
    except ValueError:
        raise InvalidArgumentError(f"--input: '{argument}' is neither JSON, a file (.npy, .npz, .json, @FILE), "
                                   "random[:SHAPE[:DTYPE]], nor text:TEXT") from None


def least_shape(spec: Optional[TensorSpec]) -> List[int]:
    """The model's shape with 1 for dynamic sizes."""
    return [1] if spec is None else [max(size, 1) for size in spec.shape]


def random_input(spec: TensorSpec) -> Any:
    if spec.datatype in ("BYTES", "BF16", ""):
        raise InvalidArgumentError(f"input '{spec.name}' is {spec.datatype or 'of any type'}: give it with --input")
    shape = least_shape(spec)
    if spec.datatype == "BOOL":
        return np.ones(shape, np.bool_)
    return random_array(f"{','.join(map(str, shape))}:{dtype_of(spec.datatype).name}")


def random_array(spec: str) -> Any:
    """SHAPE[:DTYPE]: floats of [0, 1), whole numbers 0 or 1; the same ones each time."""
    sizes, _, dtype_name = spec.partition(":")
    dtype = np.dtype(_DTYPES.get(dtype_name or "f32", dtype_name))
    try:
        shape = [int(size) for size in sizes.split(",")] if sizes else []
    except ValueError:
        raise InvalidArgumentError(f"random: a shape is numbers with commas between them, got '{sizes}'") from None
    generator = np.random.default_rng(0)
    if dtype.kind == "f":
        return generator.random(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def read_inputs(given: argparse.Namespace, client: Client, random_rest: bool) -> Any:
    """The inputs of the command line as `Client.infer` takes them: one mapping, or none."""
    signature = Signature(client, given)
    named: Dict[str, Any] = {}
    unnamed: Dict[str, Any] = {}
    for argument in given.input:
        name, mark, value = argument.partition("=")
        if mark and re.fullmatch(r"[\w.-]+", name):
            named[name] = read_value(value, functools.partial(signature.find, name))
        elif argument.endswith(".npz"):
            with np.load(argument, allow_pickle=False) as arrays:
                named.update(arrays)
        elif len(unnamed) == len(signature.inputs):
            raise InvalidArgumentError(f"--input: model '{given.model}' has {len(signature.inputs)} inputs")
        else:
            spec = signature.inputs[len(unnamed)]
            unnamed[spec.name] = read_value(argument, functools.partial(signature.find, spec.name))
    if named and unnamed:
        raise InvalidArgumentError("--input: name all of them, or none")
    inputs = {**named, **unnamed}
    for spec in signature.inputs if random_rest else ():
        if spec.name not in inputs:
            inputs[spec.name] = random_input(spec)
    return (inputs,) if inputs else ()


def read_parameter(argument: str) -> Parameter:
    try:
        value = json.loads(argument)
    except ValueError:
        return argument
    return value if isinstance(value, (bool, int, float)) else argument


def infer(given: argparse.Namespace) -> int:
    parameters = {name: read_parameter(value)
                  for name, value in pairs(given.parameter, "--parameter", "NAME=VALUE").items()}
    with connect(given) as client:
        inputs = read_inputs(given, client, given.random)
        if given.stream:
            for result in client.infer_stream(given.model, *inputs, outputs=given.output, version=given.model_version,
                                              parameters=parameters, timeout=given.timeout):
                show(given, result)
            return 0
        result = client.infer(given.model, *inputs, outputs=given.output, version=given.model_version,
                              classes=given.classes, parameters=parameters)
    if given.save:
        save(given, result)
        return 0
    show(given, result)
    return 0


def save(given: argparse.Namespace, result: Result) -> None:
    """Saves strings as NumPy's dtype S, which every reader supports."""
    arrays: Dict[str, Any] = {name: array.astype("S") if array.dtype == object else array
                              for name, array in result.items()}
    if not given.save.endswith(".npy"):
        np.savez(given.save, **arrays)
    elif len(arrays) == 1:
        np.save(given.save, next(iter(arrays.values())))
    else:
        raise InvalidArgumentError(f"--save: a .npy file holds one output, the model has {len(arrays)}; choose with "
                                   "--output, or save as .npz")


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
            values = result.texts(name) if value.dtype == object else value
            print(f"{name}  {value.dtype if value.dtype != object else 'text'}{list(value.shape)}\n{values}")
        else:
            print(name)
            for row in value:
                print("  " + ", ".join(f"{item.label or item.index} {json_value(item.score):.4g}" for item in row))
