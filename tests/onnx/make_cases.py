"""Writes the ONNX standard's backend tests, which the package onnx carries, as folders that onnx_cases_test reads.

    build/onnx/bin/python -m tests.onnx.make_cases FOLDER [--every N]

Each case is FOLDER/NAME with model.onnx, K/input_I.pb and K/output_I.pb for each set K of data, and `tolerance`
(relative, absolute). Cases of single operators are made by the package, small models lie in it.
"""

import argparse
import pathlib
import shutil
import warnings

import onnx
import onnx.backend.test
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

# Tests of whole networks are downloads.
MODEL_KINDS = ["simple", "pytorch-converted", "pytorch-operator"]


def message_of(value, type_proto):
    if isinstance(value, onnx.TensorProto):
        return value
    kind = type_proto.WhichOneof("value")
    if kind == "optional_type":
        return numpy_helper.from_optional(value)
    if kind == "sequence_type":
        return numpy_helper.from_list(value)
    return numpy_helper.from_array(value)


def write_case(folder, case):
    folder.mkdir()
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
    graph = case.model.graph
    for k, (inputs, outputs) in enumerate(case.data_sets):
        (folder / str(k)).mkdir()
        for name, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                data = message_of(value, info.type).SerializeToString()
                (folder / str(k) / f"{name}_{i}.pb").write_bytes(data)


def copy_model(folder, source):
    folder.mkdir()
    shutil.copy(source / "model.onnx", folder / "model.onnx")
    (folder / "tolerance").write_text("0.001 1e-07\n")
    for k, data in enumerate(sorted(source.glob("test_data_set_*"))):
        shutil.copytree(data, folder / str(k))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="only one in so many cases")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    for case in collect_testcases(None)[:: options.every]:
        write_case(options.folder / case.name, case)
    data = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    for kind in MODEL_KINDS:
        for source in sorted((data / kind).iterdir())[:: options.every]:
            copy_model(options.folder / f"{kind}_{source.name}", source)


if __name__ == "__main__":
    main()
