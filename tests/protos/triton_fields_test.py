"""Checks that our messages and calls are Triton's: names, numbers, types and labels of triton_fields.txt.

`triton_fields_test.py --write FOLDER` writes that table from an unpacked tritonclient wheel.
"""

import ast
import os
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "triton_fields.txt")
PROTOS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "protos")
OURS_ONLY = ("ModelMetadataResponse.properties ", "ModelMetadataResponse.PropertiesEntry")  # KServe's
FIELD = descriptor_pb2.FieldDescriptorProto


def local(name):
    return name.removeprefix(".inference.")


def message_lines(message, prefix):
    name = prefix + message.name
    yield f"{name} {'map entry' if message.options.map_entry else 'message'}"
    for field in message.field:
        kind = local(field.type_name) or FIELD.Type.Name(field.type)[5:].lower()
        words = [f"{name}.{field.name}", str(field.number), FIELD.Label.Name(field.label)[6:].lower(), kind]
        if field.HasField("oneof_index"):
            words += ["in", message.oneof_decl[field.oneof_index].name]
        if field.proto3_optional:
            words.append("presence")
        yield " ".join(words)
    for enum in message.enum_type:
        yield from enum_lines(enum, name + ".")
    for nested in message.nested_type:
        yield from message_lines(nested, name + ".")


def enum_lines(enum, prefix):
    for value in enum.value:
        yield f"{prefix}{enum.name}.{value.name} {value.number}"


def file_lines(file):
    assert file.package == "inference" and file.syntax == "proto3", file.name
    for service in file.service:
        for call in service.method:
            yield (f"{service.name}.{call.name} {'stream ' * call.client_streaming}{local(call.input_type)} -> "
                   f"{'stream ' * call.server_streaming}{local(call.output_type)}")
    for enum in file.enum_type:
        yield from enum_lines(enum, "")
    for message in file.message_type:
        yield from message_lines(message, "")


def our_lines():
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "-I", PROTOS, f"--descriptor_set_out={out.name}", "inference.proto",
                        "model_config.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    return {line for file in files for line in file_lines(file)}


def triton_lines(folder):
    """The descriptors are literals in the generated modules; nothing is imported."""
    for module in ("service_pb2", "model_config_pb2"):
        with open(os.path.join(folder, "tritonclient", "grpc", module + ".py"), encoding="utf-8") as source:
            calls = [node for node in ast.walk(ast.parse(source.read())) if isinstance(node, ast.Call)]
        data, = [call.args[0].value for call in calls if getattr(call.func, "attr", "") == "AddSerializedFile"]
        yield from file_lines(descriptor_pb2.FileDescriptorProto.FromString(data))


def main():
    if sys.argv[1:2] == ["--write"]:
        with open(TABLE, "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in sorted(triton_lines(sys.argv[2])))
        return 0
    with open(TABLE, encoding="utf-8") as table:
        expected = set(table.read().splitlines())
    ours = our_lines()
    missing = sorted(expected - ours)
    extra = sorted(line for line in ours - expected if not line.startswith(OURS_ONLY))
    for line in missing:
        print("only Triton:", line)
    for line in extra:
        print("only ours:  ", line)
    print(f"{len(expected)} lines compared, {len(missing) + len(extra)} differences")
    return 1 if missing or extra or len(expected) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
