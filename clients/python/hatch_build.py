"""Generates the protocol's descriptors and type stubs from the repository's protos/ before the wheel is built."""

# Runs in Pythons that the client does not support too, so that pip says so.
from __future__ import annotations

import os
import pathlib
import re
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTOS = ("model_config.proto", "inference.proto", "training.proto", "health.proto")


class ProtocolHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        protos = pathlib.Path(self.root).resolve().parent.parent / "protos"
        target = pathlib.Path(self.root) / "src" / "tensord" / "_protocol"
        if all((protos / name).exists() for name in PROTOS):
            generate(protos, target)
        elif not (target / "descriptors.binpb").exists():
            # A source distribution contains the generated files.
            raise FileNotFoundError(f"{protos}: the .proto files are not there, and neither is what is made from them")


def generate(protos: pathlib.Path, target: pathlib.Path) -> None:
    import grpc_tools
    from grpc_tools import protoc

    made = target / f"descriptors.{os.getpid()}.tmp"
    # protobuf's own .proto files come with grpcio-tools.
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{protos}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={made}", f"--pyi_out={target}"]
    if protoc.main([*arguments, *PROTOS]) != 0:
        raise RuntimeError("protoc failed; its message is above")
    made.replace(target / "descriptors.binpb")
    for stub in target.glob("*_pb2.pyi"):
        # protoc takes the modules to be at the top level.
        source = re.sub(r"^import (\w+_pb2) as", r"from tensord._protocol import \1 as", stub.read_text(), flags=re.M)
        stub.write_text(source)
