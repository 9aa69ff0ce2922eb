"""The protocol's message classes, made from descriptors that the build generates from the repository's protos/.

They use a descriptor pool of their own: other clients of the same protocol (tritonclient, kserve) register the same
names and can be imported next to this one. Nor does generated code have to match the version of the protobuf package.
"""

from __future__ import annotations

import types
from importlib import resources
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from tensord._protocol import health_pb2 as health
    from tensord._protocol import inference_pb2 as inference
    from tensord._protocol import model_config_pb2 as model_config
    from tensord._protocol import training_pb2 as training

__all__ = ["health", "inference", "model_config", "training"]


def _message_class(pool: descriptor_pool.DescriptorPool, descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    factory: Any = message_factory.MessageFactory(pool)  # protobuf < 4.22
    return factory.GetPrototype(descriptor)


def _load() -> dict[str, types.SimpleNamespace]:
    data = resources.files(__package__).joinpath("descriptors.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    modules = {}
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
        messages = pool.FindFileByName(file.name).message_types_by_name
        modules[file.name] = types.SimpleNamespace(**{name: _message_class(pool, messages[name]) for name in messages})
    return modules


if not TYPE_CHECKING:
    _modules = _load()
    health = _modules["health.proto"]
    inference = _modules["inference.proto"]
    model_config = _modules["model_config.proto"]
    training = _modules["training.proto"]
