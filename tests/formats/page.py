"""docs/real_models.md: a table of architectures and formats, updated row by row as they are run."""

import collections
import importlib.metadata
import re

KINDS = {"model.pt2": ".pt2", "core.pt2": ".pt2, decomposed", "dynamo.onnx": "ONNX, newer exporter", "legacy.onnx": "ONNX, older exporter",
         "optimized.onnx": "ONNX, optimized", "int8.onnx": "ONNX, dynamic int8", "qdq.onnx": "ONNX, QDQ", "qlinear.onnx": "ONNX, QLinear"}
PEERS = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime", "transformers": "transformers", "timm": "timm", "torchvision": "torchvision"}

HEAD = """# Real models

Architectures of transformers, timm and torchvision with random weights, exported by
{versions},
and run by tensord, PyTorch and ONNX Runtime, with two sets of sizes where sizes are dynamic. `tests/formats/real_models.py` writes this
page; its [README](../tests/formats/README.md) says how to run it.

A number is how far tensord's results are from PyTorch's (`.pt2`) or ONNX Runtime's (ONNX), as a share of the largest element: at most
1e-4 for floats, 3e-2 for networks that the quantizer rounded (beyond that, at most half as much again as ONNX Runtime's own results move with
the input's fifth digit), and 1e-2 for the scores of detectors. `–`: PyTorch or ONNX Runtime's tool
could not write such a file, or (`late`) not within its time. An empty field was not run. What tensord refuses or gives otherwise is named
under the table.

"""


def cell_of(verdict, words):
    if verdict == "not exported":
        return "late" if words.startswith("the exporter ended") else "–"
    return "; ".join(dict.fromkeys(re.findall(r"\d+e[-+]\d+(?: from PyTorch)?", re.sub(r" \(ONNX.*?\)", "", words)))) if verdict == "right" else verdict


class Page:
    def __init__(self, path):
        self.path, self.rows, self.reasons = path, {}, {}
        for line in path.read_text().split("\n") if path.exists() else ():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| `") and len(cells) == len(KINDS) + 1:
                self.rows[cells[0].strip("`")] = dict(zip(KINDS, cells[1:]))
            reason = re.fullmatch(r"- `(\w+)`, (\S+): (.*)", line)
            if reason:
                self.reasons[reason[1], reason[2]] = reason[3]

    def set(self, name, rows):
        """`rows`: (kind, verdict, words) of one architecture. Results that were not rerun stay."""
        mine = self.rows.setdefault(name, {})
        for kind, verdict, words in rows:
            mine[kind] = cell_of(verdict, words)
            self.reasons.pop((name, kind), None)
            if verdict in ("refused", "WRONG", "differs"):
                self.reasons[name, kind] = words

    def write(self):
        versions = [f"{title} {importlib.metadata.version(name).split('+')[0]}" for name, title in PEERS.items()]
        markdown = HEAD.format(versions=", ".join(versions[:-1]) + " and " + versions[-1])
        counts = collections.Counter()
        for row in self.rows.values():
            for kind, cell in row.items():
                counts[kind, "right" if cell[:1].isdigit() else cell] += 1
        verdicts = {"right": "right", "refused": "refused", "differs": "differs", "WRONG": "WRONG", "–": "not exported", "late": "late"}
        markdown += "| | " + " | ".join(KINDS.values()) + " |\n|---|" + "---|" * len(KINDS) + "\n"
        for verdict, title in verdicts.items():
            numbers = [str(counts[kind, verdict]) for kind in KINDS]
            if set(numbers) != {"0"}:
                markdown += f"| **{title}** | " + " | ".join(numbers) + " |\n"
        for name in sorted(self.rows):
            markdown += f"| `{name}` | " + " | ".join(self.rows[name].get(kind, "") or " " for kind in KINDS) + " |\n"
        if self.reasons:
            markdown += "\n## What is refused or differs\n\n"
            markdown += "".join(f"- `{name}`, {kind}: {words}\n" for (name, kind), words in sorted(self.reasons.items()))
        self.path.write_text(markdown)
