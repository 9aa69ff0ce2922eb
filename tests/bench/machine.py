"""The machine that a benchmark runs on, as a line that stands above its table."""

import json
import pathlib
import subprocess
from typing import List, Optional

# What kernels choose by, with the names of /proc/cpuinfo.
SETS = {"avx512f": "AVX-512", "avx512_bf16": "AVX-512 BF16", "avx512_fp16": "AVX-512 FP16", "avx512_vnni": "AVX-512 VNNI", "amx_bf16": "AMX BF16",
        "amx_int8": "AMX INT8", "avx_vnni": "AVX VNNI", "avx2": "AVX2", "fma": "FMA", "asimd": "NEON", "sve": "SVE"}
CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
MODEL = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/models/shapes/1/model.pt"


def _field(name: str) -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.split(":")[0].strip().lower() == name:
            return line.split(":", 1)[1].strip()
    return ""


def cpu_name() -> str:
    """With the family and model where the maker's name alone says little."""
    name, family, model = _field("model name") or "?", _field("cpu family"), _field("model")
    return f"{name} (family {family}, model {model})" if family else name


def instruction_sets() -> List[str]:
    flags = (_field("flags") or _field("features")).split()
    return [name for flag, name in SETS.items() if flag in flags]


def caches() -> List[str]:
    out = []
    for index in sorted(CACHES.glob("index*")):
        kind, level, size = ((index / part).read_text().strip() for part in ("type", "level", "size"))
        if kind != "Instruction":
            out.append(f"L{level} {size}")
    return out


def _peak(tensord: str, precision: str) -> dict:
    command = [tensord, "bench", str(MODEL), "--input", "1,1,32,32", "--threads", "1", "--iterations", "3", "--precision", precision, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def describe(tensord: Optional[str] = None) -> str:
    """Processor, cores, instruction sets and caches; with a binary also what one thread reaches in each precision and reads from memory."""
    cores = len([line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor")])
    parts = [f"{cpu_name()}, {cores} processors", ", ".join(instruction_sets()), ", ".join(caches())]
    if tensord:
        peaks = {precision: _peak(tensord, precision) for precision in ("f32", "bf16", "int8")}
        rates = ", ".join(f"{precision} {peak['peak_gflops']:.0f}" for precision, peak in peaks.items())
        parts.append(f"peak of one thread in GFLOP/s: {rates}; reads {peaks['f32']['peak_read_gbs']:.0f} GB/s")
    return "; ".join(part for part in parts if part)
