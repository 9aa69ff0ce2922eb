"""Inference requests and their results, without any I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from tensord._protocol import inference as pb
from tensord._shared_memory import Place, Regions
from tensord._tensors import (Array, Tensor, TensorLike, datatype_of, from_buffer, from_contents, needs_datatype,
                              size_bytes, texts, to_buffer, to_tensor)
from tensord._wire import RESPONSE_RAW_FIELD, Buffer, with_raw_contents, without_field
from tensord.errors import InternalError, InvalidArgumentError
from tensord.types import Class, ModelMetadata

Parameter = Union[bool, int, float, str]
# Names of the wanted outputs, or a mapping from them to arrays in shared memory for the results.
Outputs = Union[Sequence[str], Mapping[str, Optional[Array]]]
Inputs = Tuple[Union[TensorLike, Mapping[str, TensorLike]], ...]

_INT64_MAX = 2**63 - 1
# Copying less than this is cheaper than cutting the tensors out of the message.
_SMALL_BYTES = 1 << 14


@dataclass(frozen=True)
class InferOptions:
    """The parameters of `infer` besides the inputs."""

    outputs: Outputs = ()
    version: str = ""
    request_id: str = ""
    priority: int = 0
    queue_timeout: Optional[float] = None
    classes: int = 0
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


class Result(Mapping[str, Array]):
    """A model's outputs by name, in the model's order.

    Arrays are read-only views of the message if their elements are aligned there. BYTES elements are `bytes` objects
    (`texts` converts them to `str`). BF16 becomes float32 unless the package ml_dtypes is installed. If there is a
    single output, the result itself can be used as an array: `np.asarray(result)`, `torch.from_dlpack(result)`.
    """

    def __init__(self, outputs: Dict[str, Array], model: str = "", version: str = "", request_id: str = "",
                 parameters: Optional[Mapping[str, Parameter]] = None) -> None:
        self._outputs = outputs
        self.model = model
        self.version = version
        self.request_id = request_id
        self.parameters: Mapping[str, Parameter] = parameters or {}

    @property
    def output(self) -> Array:
        """The only output."""
        if len(self._outputs) != 1:
            raise InvalidArgumentError(f"the result has {len(self._outputs)} outputs, not one: {list(self._outputs)}")
        return next(iter(self._outputs.values()))

    def texts(self, name: str = "") -> Array:
        """A BYTES output as an array of str; without a name, the only output."""
        return texts(self[name] if name else self.output)

    def classes(self, name: str = "") -> List[List[Class]]:
        """For a request with `classes`: the largest values of each row, in descending order."""
        rows = self.texts(name)
        rows = rows.reshape(-1, rows.shape[-1]) if rows.ndim else rows.reshape(1, 1)
        return [[_class(entry) for entry in row] for row in rows]

    def __getitem__(self, name: str) -> Array:
        return self._outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array = self.output
        if dtype is not None and array.dtype != np.dtype(dtype):
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> object:
        array = self.output
        # Only newer versions of DLPack have a read-only flag; for older ones the array is copied.
        return (array if array.flags.writeable else array.copy()).__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {array.dtype}{list(array.shape)}" for name, array in self._outputs.items())
        return f"Result({self.model} version {self.version or '?'}: {shapes})"


def _class(entry: str) -> Class:
    score, index, label = (entry.split(":", 2) + [""])[:3]
    return Class(float(score), int(index), label)


def needs_metadata(inputs: Inputs, options: InferOptions) -> bool:
    """Whether the request needs the model's metadata, for names or types."""
    if options.classes and not options.outputs:
        return True
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        return any(needs_datatype(value) for value in inputs[0].values())
    return len(inputs) > 0


@dataclass(frozen=True)
class InferRequest:
    """A serialized request, and the outputs that go to shared memory."""

    message: bytes
    placed: Mapping[str, Array]


def build_request(model: str, inputs: Inputs, options: InferOptions, regions: Regions,
                  metadata: Optional[ModelMetadata], extra: Mapping[str, Parameter]) -> InferRequest:
    """`metadata` is required if `needs_metadata` returns true; `extra` are additional protocol parameters."""
    head = pb.ModelInferRequest(model_name=model, model_version=str(options.version), id=options.request_id)
    datatypes = {spec.name: spec.datatype for spec in metadata.inputs} if metadata else {}
    contents: List[Buffer] = []
    for name, value in _named(model, inputs, metadata).items():
        try:
            tensor = to_tensor(value, datatypes.get(name, ""))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"input '{name}': {error.message}") from error
        _add_input(head, contents, name, tensor, regions)
    placed = _add_outputs(head, options, regions, metadata)
    for key, parameter in {**options.parameters, **extra}.items():
        set_parameter(head.parameters[key], key, parameter)
    if options.priority:
        set_parameter(head.parameters["priority"], "priority", options.priority)
    if options.queue_timeout is not None:
        head.parameters["timeout"].int64_param = round(options.queue_timeout * 1e6)
    return InferRequest(with_raw_contents(head.SerializeToString(), contents), placed)


def _named(model: str, inputs: Inputs, metadata: Optional[ModelMetadata]) -> Mapping[str, TensorLike]:
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        return inputs[0]
    values: Dict[str, TensorLike] = {}
    names = [spec.name for spec in metadata.inputs] if metadata else []
    if len(inputs) > len(names):
        raise InvalidArgumentError(f"model '{model}' has {len(names)} inputs {names}, got {len(inputs)}")
    for name, value in zip(names, inputs):
        if isinstance(value, Mapping):
            raise InvalidArgumentError("inputs are given by name, in one mapping, or by position; got both")
        values[name] = value
    return values


def _add_input(head: pb.ModelInferRequest, contents: List[Buffer], name: str, tensor: Tensor, regions: Regions) -> None:
    message = head.inputs.add(name=name, datatype=tensor.datatype, shape=tensor.data.shape)
    place = regions.find(tensor.data) if tensor.datatype != "BYTES" else None
    if place is None:
        contents.append(to_buffer(tensor))
    else:
        _set_place(message.parameters, place)


def _add_outputs(head: pb.ModelInferRequest, options: InferOptions, regions: Regions,
                 metadata: Optional[ModelMetadata]) -> Dict[str, Array]:
    wanted: Mapping[str, Optional[Array]]
    wanted = options.outputs if isinstance(options.outputs, Mapping) else dict.fromkeys(options.outputs)
    if options.classes and not wanted and metadata:
        wanted = dict.fromkeys(spec.name for spec in metadata.outputs)
    placed: Dict[str, Array] = {}
    for name, array in wanted.items():
        message = head.outputs.add(name=name)
        if options.classes:
            message.parameters["classification"].int64_param = options.classes
        if array is None:
            continue
        place = regions.find(array)
        if place is None:
            raise InvalidArgumentError(f"output '{name}': the array is not one of this client's shared memory")
        _set_place(message.parameters, place)
        placed[name] = array
    return placed


def _set_place(parameters: Any, place: Place) -> None:
    parameters["shared_memory_region"].string_param = place.region
    parameters["shared_memory_byte_size"].int64_param = place.byte_size
    if place.offset:
        parameters["shared_memory_offset"].int64_param = place.offset


def set_parameter(target: Any, name: str, value: Parameter) -> None:
    if isinstance(value, bool):
        target.bool_param = value
    elif isinstance(value, int):
        if not -_INT64_MAX - 1 <= value <= 2 * _INT64_MAX + 1:
            raise InvalidArgumentError(f"parameter '{name}': {value} does not fit into 64 bits")
        if value > _INT64_MAX:
            target.uint64_param = value
        else:
            target.int64_param = value
    elif isinstance(value, float):
        target.double_param = value
    elif isinstance(value, str):
        target.string_param = value
    else:
        raise InvalidArgumentError(f"parameter '{name}': must be bool, int, float or str, got {type(value).__name__}")


def get_parameters(messages: Any) -> Dict[str, Parameter]:
    out: Dict[str, Parameter] = {}
    for key, message in messages.items():
        kind = message.WhichOneof("parameter_choice")
        if kind:
            out[key] = getattr(message, kind)
    return out


def parse_response(message: Buffer, placed_of: Callable[[str], Mapping[str, Array]]) -> Result:
    """Parses a ModelInferResponse and keeps its memory. `placed_of` returns outputs in shared memory by the request's
    ID."""
    contents: Sequence[Buffer]
    if len(message) <= _SMALL_BYTES:
        head = pb.ModelInferResponse.FromString(bytes(message))
        contents = head.raw_output_contents
    else:
        head_bytes, contents = without_field(memoryview(message), RESPONSE_RAW_FIELD)
        head = pb.ModelInferResponse.FromString(head_bytes)
    placed = placed_of(head.id)
    outputs: Dict[str, Array] = {}
    for index, output in enumerate(head.outputs):
        shape = tuple(output.shape)
        if output.name in placed:
            outputs[output.name] = _written(placed[output.name], output, shape)
        elif index < len(contents):
            outputs[output.name] = from_buffer(memoryview(contents[index]), output.datatype, shape)
        elif output.HasField("contents"):
            outputs[output.name] = from_contents(output.contents, output.datatype, shape)
        else:
            raise InternalError(f"the server sent output '{output.name}' without its contents")
    return Result(outputs, head.model_name, head.model_version, head.id, get_parameters(head.parameters))


def _written(place: Array, output: pb.ModelInferResponse.InferOutputTensor, shape: Tuple[int, ...]) -> Array:
    """The part of an array in shared memory that the server wrote, in the shape of the response."""
    memory = place.reshape(-1).view(np.uint8)
    size = size_bytes(memory.data, output.datatype, shape)
    if size > place.nbytes:
        raise InternalError(f"output '{output.name}': the server says {size} bytes for an array of {place.nbytes}")
    if datatype_of(place.dtype) == output.datatype:
        return memory[:size].view(place.dtype).reshape(shape)
    return from_buffer(memory[:size].data, output.datatype, shape)
