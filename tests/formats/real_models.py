"""Exports architectures of transformers, timm and torchvision to every format, runs the files by `tensord run`, PyTorch and
ONNX Runtime, and prints which are right, which are refused and why, and which are wrong:

    build/pypi_torch/bin/python -m tests.formats.real_models FOLDER build/dev/server/tensord [NAME …]

The Python is the one that `scripts/setup pypi_torch` makes. What FOLDER has already is not exported again: remove
FOLDER/NAME for that. `--export-only` needs no tensord; `--kinds legacy.onnx,int8.onnx` takes only those files;
`--page docs/real_models.md` puts what was found into the page, `--remove` keeps no files of architectures that are right.
Ends with 1 when something is wrong.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import torch

from tests.formats.export_models import KINDS, QUANTIZED, export_apart, leaves
from tests.formats.page import Page

# Relative to the largest element: for floats in networks with some hundred layers.
TOLERANCE = 1e-4
# In quantized networks, rounding depends on the last bit of a float.
INT8_TOLERANCE = 3e-2


# Cases where tensord and ONNX Runtime differ, and tensord follows the standard and PyTorch.
KNOWN = {
    ("funnel", "qlinear.onnx"): "ONNX Runtime's QLinearAveragePool counts what ceil_mode adds at the end; its AveragePool does not",
}


def distance(got, expected):
    """The difference of results, relative to the largest element; a string if they cannot be compared."""
    got = [leaf for leaf in leaves(got) if isinstance(leaf, torch.Tensor)]
    expected = [leaf for leaf in expected if isinstance(leaf, torch.Tensor)]
    if len(got) != len(expected):
        return f"{len(got)} results, expected {len(expected)}"
    worst = 0.0
    for index, (one, other) in enumerate(zip(got, expected)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {index} is {one.dtype} {tuple(one.shape)}, expected {other.dtype} {tuple(other.shape)}"
        wide = torch.complex128 if other.is_complex() else torch.float64
        one, other = one.to(wide), other.to(wide)
        finite = torch.isfinite(other)
        if not torch.equal(torch.nan_to_num(one[~finite], 1.5), torch.nan_to_num(other[~finite], 1.5)):
            return f"result {index} has other infinities or NaN"
        if finite.any():
            worst = max(worst, ((one - other).abs()[finite].max() / (other.abs()[finite].max() + 1e-6)).item())
    return worst


def run(tensord, file, calls):
    """The results, or tensord's error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tensord, "run", str(file)]
        for number, (arguments, *_) in enumerate(calls):
            torch.save(tuple(arguments), f"{folder}/{number}.args")
            command += ["--call", f"forward,{folder}/{number}.args,{folder}/{number}.result"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return "no answer within 600 s"
        if done.returncode:
            return (done.stderr or done.stdout).strip() or f"ended with {done.returncode}"
        return [torch.load(f"{folder}/{number}.result") for number in range(len(calls))]


def is_detector(name):
    return name.startswith("tv_") and any(part in name for part in ("rcnn", "retinanet", "fcos", "ssd"))


def only_scores(results):
    """Untrained detectors return hundreds of boxes whose scores differ in the last bit, so their order is arbitrary."""
    return [leaf.sort()[0] for leaf in leaves(results) if leaf.ndim == 1 and leaf.is_floating_point()]


def movement(file, arguments, results):
    """The change of ONNX Runtime's results for a quantized network when the input changes in its fifth digit. If one
    value rounds the other way, everything after it is another realization of the network's noise."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.graph_optimization_level = 4, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    worst = 0.0
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        moved = [value * (1 + 1e-5 * torch.randn(value.shape, generator=generator)) if value.is_floating_point() else value for value in arguments]
        other = session.run(None, {name: value.numpy() for name, value in zip(names, moved)})
        far = distance([torch.from_numpy(value) for value in other], results)
        worst = max(worst, far if isinstance(far, float) else 0.0)
    return worst


def judge(name, kind, got, calls, file):
    """('right' or 'WRONG', the difference and from what)."""
    tolerance = INT8_TOLERANCE if kind in QUANTIZED else TOLERANCE
    verdict, words = "right", []
    for result, (arguments, pytorch, peer) in zip(got, calls):
        if is_detector(name):
            result, pytorch, peer = only_scores(result), only_scores(pytorch), only_scores(peer) if peer is not None else None
            tolerance = max(tolerance, 1e-2)
        far = distance(result, peer if peer is not None else pytorch)
        if isinstance(far, float) and far <= tolerance:
            words.append(f"{far:.0e}")
            continue
        # If the two peers differ, the best possible check is that the result is as near to one of them as they are to
        # each other.
        other, peers = distance(result, pytorch), distance(peer, pytorch) if peer is not None else 0.0
        if kind not in QUANTIZED and isinstance(other, float) and other <= tolerance:
            words.append(f"{other:.0e} from PyTorch, as ONNX Runtime is not")
            continue
        moves = movement(file, arguments, peer) if kind in QUANTIZED and isinstance(far, float) else 0.0
        if isinstance(far, float) and far <= 1.5 * moves:
            words.append(f"{far:.0e} (ONNX Runtime's own: {moves:.0e})")
            continue
        verdict = "WRONG"
        words.append(f"{far if isinstance(far, str) else format(far, '.1e')} (from PyTorch {other}; ONNX Runtime from PyTorch {peers})")
    return verdict, "; ".join(dict.fromkeys(words))


def refusal(output):
    """The operator or sentence that a model was refused for."""
    line = [line for line in output.split("\n") if line.strip()][0]
    return re.sub(r"^(error: |tensord: )+|/\S+/", "", line)[:170]


def compare(tensord, folder, kinds):
    """[(kind, verdict, words)] of one architecture."""
    rows = []
    for kind in kinds:
        note = torch.load(folder / (kind + ".pt"), weights_only=False)
        if "error" in note:
            rows.append((kind, "not exported", note["error"][:120]))
            continue
        got = run(tensord, folder / kind, note["calls"])
        verdict, words = ("refused", refusal(got)) if isinstance(got, str) else judge(folder.name, kind, got, note["calls"], folder / kind)
        if verdict == "WRONG" and (folder.name, kind) in KNOWN:
            verdict, words = "differs", KNOWN[folder.name, kind]
        rows.append((kind, verdict, words))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tensord", nargs="?", default="build/dev/server/tensord")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--compare-only", action="store_true", help="what FOLDER has already")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--page", type=pathlib.Path, help="the table that takes the results")
    parser.add_argument("--remove", action="store_true", help="the files of architectures that are right")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if options.compare_only:
        library = {path.name: None for path in sorted(options.folder.iterdir())}
    else:
        from tests.formats.architectures import LIBRARY as library
    counts, refused = collections.Counter(), collections.Counter()
    for name, make in library.items():
        if options.names and name not in options.names:
            continue
        folder = options.folder / name
        if make:
            export_apart(folder, make, kinds)
        if options.export_only:
            print(name, flush=True)
            continue
        rows = compare(options.tensord, folder, [kind for kind in kinds if (folder / (kind + ".pt")).exists()])
        for kind, verdict, words in rows:
            counts[kind, verdict] += 1
            if verdict == "refused":
                refused[words] += 1
            print(f"{name:28} {kind:14} {verdict:12} {words}", flush=True)
        if options.page:
            page = Page(options.page)
            page.set(name, rows)
            page.write()
        if options.remove and all(verdict in ("right", "not exported") for _, verdict, _ in rows):
            shutil.rmtree(folder)
    for kind in kinds:
        print(f"{kind}: " + ", ".join(f"{count} {verdict}" for (one, verdict), count in sorted(counts.items()) if one == kind))
    for words, count in refused.most_common():
        print(f"{count:3} refused: {words}")
    return any(verdict == "WRONG" for _, verdict in counts)


if __name__ == "__main__":
    sys.exit(main())
