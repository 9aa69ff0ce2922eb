"""Exports networks with both exporters of torch.onnx, runs them by tensord and ONNX Runtime, and prints the differences.

    PYTHON -m tests.onnx.compare_models --tensord build/dev/server/tensord FOLDER [NAME...]

Ends with 1 when a difference is larger than --tolerance of the largest result, or tensord refuses a model.
"""

import argparse
import logging
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
import onnxruntime
import torch

from tests.onnx.library_models import FirstOutput, all_models


def export(model, x, path, dynamo):
    if dynamo:
        shapes = ({0: torch.export.Dim("batch")},)
        torch.onnx.export(model, (x,), path, dynamo=True, dynamic_shapes=shapes, verbose=False)
    else:
        torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


def run_peer(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


def run_tensord(binary, path, x):
    arguments, result = path.with_suffix(".in.pt"), path.with_suffix(".out.pt")
    torch.save((x,), arguments)
    command = [binary, "run", path, "--call", f"forward,{arguments},{result}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    value = torch.load(result)
    return (value if torch.is_tensor(value) else value[0]).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensord", required=True)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, make in all_models():
        if options.names and name not in options.names:
            continue
        for kind in ("dynamo", "legacy"):
            path = options.folder / f"{name}.{kind}.onnx"
            torch.manual_seed(0)
            model, x = make()
            model = FirstOutput(model).eval()
            try:
                if not path.exists():
                    export(model, x, path, kind == "dynamo")
                expected = run_peer(path, x)
            except Exception as error:
                print(f"{name} {kind}: not exported: {str(error)[:100]!r}", flush=True)
                continue
            begin = time.time()
            try:
                got = run_tensord(options.tensord, path, x)
                difference = float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30))
                failed += not difference <= options.tolerance
                print(f"{name} {kind}: differs by {difference:.1e}, {time.time() - begin:.1f} s", flush=True)
            except Exception as error:
                failed += 1
                print(f"{name} {kind}: {str(error)[:300]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
