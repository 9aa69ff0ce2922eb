"""The calls of the protocol that are one request and one answer, without any I/O."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from tensord._connection import Operation
from tensord._inference import InferRequest, Result, parse_response
from tensord._plain import to_dict
from tensord._protocol import health
from tensord._protocol import inference as pb
from tensord._shared_memory import SharedMemory
from tensord.errors import InvalidArgumentError
from tensord.types import Duration, ModelIndex, ModelMetadata, ModelStatistics, Region, ServerMetadata, TensorSpec

T = TypeVar("T")

SERVICE = "/inference.GRPCInferenceService/"
STREAM_INFER = SERVICE + "ModelStreamInfer"
# The contents of a model file, or its path.
FileSource = Union[bytes, str, "os.PathLike[str]"]
Setting = Union[bool, int, str, Sequence[str], None]


def _call(name: str, request: Any, response_type: Any, parse: Callable[[Any], T], is_repeatable: bool = True,
          service: str = SERVICE) -> Operation[T]:
    def read(message: bytes) -> T:
        return parse(response_type.FromString(message))

    return Operation(service + name, request.SerializeToString(), read, is_repeatable)


def nothing(_: Any) -> None:
    """Parses an empty response."""


def infer(request: InferRequest, is_repeatable: bool) -> Operation[Result]:
    def read(message: bytes) -> Result:
        return parse_response(message, lambda _: request.placed)

    return Operation(SERVICE + "ModelInfer", request.message, read, is_repeatable)


def live() -> Operation[bool]:
    return _call("ServerLive", pb.ServerLiveRequest(), pb.ServerLiveResponse, lambda answer: bool(answer.live))


def ready(model: str, version: str) -> Operation[bool]:
    if not model:
        return _call("ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse, lambda answer: bool(answer.ready))
    request = pb.ModelReadyRequest(name=model, version=str(version))
    return _call("ModelReady", request, pb.ModelReadyResponse, lambda answer: bool(answer.ready))


def health_check(service: str) -> Operation[str]:
    def status(answer: health.HealthCheckResponse) -> str:
        names = health.HealthCheckResponse.DESCRIPTOR.enum_types_by_name["ServingStatus"].values_by_number
        return str(names[answer.status].name) if answer.status in names else str(answer.status)

    return _call("Check", health.HealthCheckRequest(service=service), health.HealthCheckResponse, status,
                 service="/grpc.health.v1.Health/")


def server_metadata() -> Operation[ServerMetadata]:
    return _call("ServerMetadata", pb.ServerMetadataRequest(), pb.ServerMetadataResponse,
                 lambda answer: ServerMetadata(answer.name, answer.version, tuple(answer.extensions)))


def metadata(model: str, version: str) -> Operation[ModelMetadata]:
    def specs(tensors: Any) -> Tuple[TensorSpec, ...]:
        return tuple(TensorSpec(tensor.name, tensor.datatype, tuple(tensor.shape)) for tensor in tensors)

    def parse(answer: pb.ModelMetadataResponse) -> ModelMetadata:
        return ModelMetadata(answer.name, tuple(answer.versions), answer.platform, specs(answer.inputs),
                             specs(answer.outputs), dict(answer.properties))

    return _call("ModelMetadata", pb.ModelMetadataRequest(name=model, version=str(version)), pb.ModelMetadataResponse,
                 parse)


def config(model: str, version: str) -> Operation[Dict[str, Any]]:
    return _call("ModelConfig", pb.ModelConfigRequest(name=model, version=str(version)), pb.ModelConfigResponse,
                 lambda answer: to_dict(answer.config))


def statistics(model: str, version: str) -> Operation[List[ModelStatistics]]:
    def durations(message: Any) -> Dict[str, Duration]:
        fields = [field for field in message.DESCRIPTOR.fields if field.message_type is not None]
        values = {field.name: getattr(message, field.name) for field in fields}
        return {name: Duration(value.count, value.ns / 1e9) for name, value in values.items()}

    def memory(usage: Any) -> Dict[str, int]:
        out: Dict[str, int] = {}
        for item in usage:
            kind = f"GPU {item.id}" if item.type == "GPU" else item.type
            out[kind] = out.get(kind, 0) + item.byte_size
        return out

    def parse(answer: pb.ModelStatisticsResponse) -> List[ModelStatistics]:
        return [ModelStatistics(item.name, item.version, item.inference_count, item.execution_count,
                                item.last_inference, durations(item.inference_stats),
                                {batch.batch_size: durations(batch) for batch in item.batch_stats},
                                memory(item.memory_usage))
                for item in answer.model_stats]

    return _call("ModelStatistics", pb.ModelStatisticsRequest(name=model, version=str(version)),
                 pb.ModelStatisticsResponse, parse)


def models(only_ready: bool) -> Operation[List[ModelIndex]]:
    def parse(answer: pb.RepositoryIndexResponse) -> List[ModelIndex]:
        return [ModelIndex(item.name, item.version, item.state, item.reason) for item in answer.models]

    return _call("RepositoryIndex", pb.RepositoryIndexRequest(ready=only_ready), pb.RepositoryIndexResponse, parse)


def load(model: str, config: Optional[Mapping[str, Any]], files: Mapping[str, FileSource],
         labels: Optional[Mapping[str, Union[int, str]]] = None) -> Operation[None]:
    request = pb.RepositoryModelLoadRequest(model_name=model)
    if config is not None:
        request.parameters["config"].string_param = json.dumps(config)
    for path, source in files.items():
        request.parameters[f"file:{path}"].bytes_param = read_source(source)
    if labels is not None:
        assignments = ",".join(f"{label}={version}" for label, version in labels.items())
        request.parameters["version_labels"].string_param = assignments
    return _call("RepositoryModelLoad", request, pb.RepositoryModelLoadResponse, nothing)


def weights_file(source: FileSource, version: int, kind: str) -> Dict[str, FileSource]:
    """The file of a load that replaces weights alone. The format is that of the path, or given explicitly."""
    if not kind:
        if isinstance(source, bytes):
            raise InvalidArgumentError("weights_format: must say 'pt' or 'safetensors' of bytes")
        kind = "safetensors" if os.fspath(source).endswith(".safetensors") else "pt"
    return {f"{version}/weights.{kind}": source}


def read_source(source: FileSource) -> bytes:
    if isinstance(source, bytes):
        return source
    with open(source, "rb") as file:
        return file.read()


def unload(model: str, with_dependents: bool) -> Operation[None]:
    request = pb.RepositoryModelUnloadRequest(model_name=model)
    if with_dependents:
        request.parameters["unload_dependents"].bool_param = True
    return _call("RepositoryModelUnload", request, pb.RepositoryModelUnloadResponse, nothing)


def register_region(region: SharedMemory) -> Operation[None]:
    request = pb.SystemSharedMemoryRegisterRequest(name=region.name, key=region.key, byte_size=region.byte_size)
    # A repeated attempt would find the region already registered.
    return _call("SystemSharedMemoryRegister", request, pb.SystemSharedMemoryRegisterResponse, nothing, False)


def unregister_region(name: str) -> Operation[None]:
    return _call("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name=name),
                 pb.SystemSharedMemoryUnregisterResponse, nothing)


def regions(name: str) -> Operation[List[Region]]:
    def parse(answer: pb.SystemSharedMemoryStatusResponse) -> List[Region]:
        return [Region(item.name, item.key, item.offset, item.byte_size) for item in answer.regions.values()]

    return _call("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(name=name),
                 pb.SystemSharedMemoryStatusResponse, parse)


def trace_settings(model: str, changes: Mapping[str, Setting]) -> Operation[Dict[str, List[str]]]:
    request = pb.TraceSettingRequest(model_name=model)
    for name, value in changes.items():
        target = request.settings[name].value
        if value is not None:  # None restores the server's value
            target.extend([value] if isinstance(value, str) else
                          [str(value)] if isinstance(value, (bool, int)) else value)
    return _call("TraceSetting", request, pb.TraceSettingResponse,
                 lambda answer: {name: list(setting.value) for name, setting in answer.settings.items()})


def log_settings(changes: Mapping[str, Union[bool, int, str]]) -> Operation[Dict[str, Union[bool, int, str]]]:
    request = pb.LogSettingsRequest()
    for name, value in changes.items():
        target = request.settings[name]
        if isinstance(value, bool):
            target.bool_param = value
        elif isinstance(value, int):
            target.uint32_param = value
        else:
            target.string_param = value

    def parse(answer: pb.LogSettingsResponse) -> Dict[str, Union[bool, int, str]]:
        kinds = {name: setting.WhichOneof("parameter_choice") for name, setting in answer.settings.items()}
        return {name: getattr(answer.settings[name], kind) for name, kind in kinds.items() if kind}

    return _call("LogSettings", request, pb.LogSettingsResponse, parse)
