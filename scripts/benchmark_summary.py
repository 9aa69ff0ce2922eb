#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md and docs/diagrams/benchmarks.svg from the full ones in docs/benchmarks_full.md.

Usage: scripts/benchmark_summary.py [--check]      --check: only says whether they are up to date
"""

import pathlib
import sys
from xml.sax.saxutils import escape

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
FULL, PAGE, DIAGRAM = DOCS / "benchmarks_full.md", DOCS / "benchmarks.md", DOCS / "diagrams" / "benchmarks.svg"
BEGIN, END = "<!-- {}: made by scripts/benchmark_summary.py -->", "<!-- end of {} -->"

MODELS = ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "vit_b_16", "encoder 6×384 (16 words)", "encoder 6×384 (8–128 words)",
          "BERT-base (128 words)", "LSTM tagger", "DLRM")


def tables(text):
    """Tables by their first header cells: {header: [rows of {column: cell}]}."""
    found, header, rows = {}, None, []
    for line in text.splitlines() + [""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            header, rows = None, []
        elif header is None:
            header, rows = cells, []
            found.setdefault(tuple(header), rows)
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(header, cells)))
            if not found[tuple(header)]:
                found[tuple(header)] = rows
    return found


def table_with(found, *columns):
    for header, rows in found.items():
        if all(column in header for column in columns):
            return rows
    sys.exit(f"docs/benchmarks_full.md has no table with the columns {', '.join(columns)}")


def markdown(header, rows):
    return ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1), *("| " + " | ".join(row) + " |" for row in rows)]


def models(found):
    rows = [row for row in table_with(found, "best peer", "of peak") if row["threads"] == "1" and row["batch"] == "1"]
    by_name = {row["model"]: row for row in rows}
    return [(name, by_name[name]) for name in MODELS]


def of_models(found):
    return markdown(("model", "tensord ms", "PyTorch", "ONNX Runtime", "OpenVINO", "of the best"),
                    [(name, row["tensord"], row["PyTorch"], row["ONNX Runtime"], row["OpenVINO"], row["ratio"])
                     for name, row in models(found)])


def of_training(found):
    return markdown(("step", "threads", "tensord ms", "PyTorch ms", "ratio"),
                    [tuple(row[key] for key in ("model", "threads", "tensord ms", "PyTorch ms", "ratio"))
                     for row in table_with(found, "loss differs by")])


def of_servers(found):
    rows = table_with(found, "requests/s (p50, p99 in ms)", "TorchServe")
    rate = lambda cell: cell.partition(" ")[0]  # noqa: E731
    return markdown(("requests/s", "clients", "tensord", "Triton, Python backend", "TorchServe", "MLServer"),
                    [(row["requests/s (p50, p99 in ms)"], row["clients"], *(rate(row[name]) for name in
                                                                            ("tensord", "Triton, Python backend", "TorchServe", "MLServer")))
                     for row in rows])


def of_echo(found):
    return markdown(("bytes", "clients", "ours p50 µs", "bare gRPC p50 µs"),
                    [(row["payload"], row["clients"], row["ours p50 µs"], row["bare p50 µs"])
                     for row in table_with(found, "bare p50 µs") if row["clients"] in ("1", "16")])


def of_start(found):
    rows = table_with(found, "installed, MB")
    return markdown(("", "installed, MB", "ready, ms", "first answer, ms", "loaded, MB"),
                    [(row[""], row["installed, MB"], row["ready, ms"], row["first resnet50 answer, ms"], row["loaded, MB"]) for row in rows])


PARTS = {"models": of_models, "training": of_training, "servers": of_servers, "echo": of_echo, "start": of_start}


def diagram(found):
    """Bars: tensord's time as a part of the best peer's."""
    left, width, height, bar = 230, 760, 26, 16
    rows = models(found)
    scale = (width - left - 60) / 1.0
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height * (len(rows) + 2)}" '
           'font-family="DejaVu Sans, sans-serif" font-size="13">',
           f'<text x="{left}" y="18" fill="#555">time of one call, the best of PyTorch, ONNX Runtime and OpenVINO being 1</text>']
    for i, (name, row) in enumerate(rows):
        y, ratio = height * (i + 1) + 6, float(row["ratio"])
        out += [f'<text x="{left - 10}" y="{y + 13}" text-anchor="end" fill="#222">{escape(name)}</text>',
                f'<rect x="{left}" y="{y}" width="{scale:.0f}" height="{bar}" fill="#e4e4e4"/>',
                f'<rect x="{left}" y="{y}" width="{scale * min(ratio, 1):.0f}" height="{bar}" fill="#2f7d62"/>',
                f'<text x="{left + scale + 8:.0f}" y="{y + 13}" fill="#222">{row["ratio"]}</text>']
    return "\n".join([*out, "</svg>", ""])


def main():
    is_check = sys.argv[1:] == ["--check"]
    found = tables(FULL.read_text())
    page = before = PAGE.read_text()
    for name, make in PARTS.items():
        head, has_begin, rest = page.partition(BEGIN.format(name))
        _, has_end, tail = rest.partition(END.format(name))
        if not has_begin or not has_end:
            sys.exit(f"docs/benchmarks.md has lost its part '{name}'")
        page = "\n".join([head + BEGIN.format(name), "", *make(found), "", END.format(name)]) + tail
    drawn = diagram(found)
    if is_check:
        if page != before or not DIAGRAM.exists() or DIAGRAM.read_text() != drawn:
            sys.exit("docs/benchmarks.md is not what docs/benchmarks_full.md has: run scripts/benchmark_summary.py")
        return
    PAGE.write_text(page)
    DIAGRAM.write_text(drawn)


if __name__ == "__main__":
    main()
