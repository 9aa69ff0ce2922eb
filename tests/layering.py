"""Checks over #include lines that arrows between layers point one way (ARCHITECTURE.md), and that no Python files import each other."""

import pathlib
import re
import sys

import import_cycles

ROOT = pathlib.Path(__file__).resolve().parent.parent

BELOW_TRANSPORT = ["server/config", "server/connections", "server/web", "server/http", "server/training", "server/repository",
                   "server/executor", "server/scheduler", "server/tracing", "server/metrics", "server/memory", "core"]

# Folder -> folders it may include, besides itself. The longest matching folder counts.
ALLOWED = {
    "core/base": [],
    "core/tensor": ["core/base"],
    "core/ops": ["core/tensor", "core/base"],
    "core/autograd": ["core/ops", "core/tensor", "core/base"],
    "core/nn": ["core/distributed", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/distributed": ["core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/ir": ["core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/frontend": ["core/jit/ir", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/archive": ["core/jit/ir", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/importers": ["core/jit/archive", "core/jit/frontend", "core/jit/ir", "core/autograd", "core/ops",
                           "core/tensor", "core/base"],
    "core/jit/tracing": ["core/jit/ir", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/exporters": ["core/jit/importers", "core/jit/tracing", "core/jit/archive", "core/jit/ir", "core/autograd",
                           "core/ops", "core/tensor", "core/base"],
    "core/jit/passes": ["core/jit/ir", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/jit/runtime": ["core/jit", "core/autograd", "core/ops", "core/tensor", "core/base"],
    "core/files": ["core/nn", "core/jit/archive", "core/autograd", "core/ops", "core/tensor", "core/base"],
    # Images: of the engine library, and of the daemon with TENSORD_IMAGES.
    "core/vision": ["core/files", "core/nn", "core/jit/archive", "core/autograd", "core/ops", "core/tensor", "core/base"],
    # The other direction too: include/tensord exposes core, and core/api implements what it declares.
    "core/api": ["core"],
    "kernels": ["core/autograd", "core/ops", "core/tensor", "core/base"],
    "server/config": ["core/base"],
    "server/metrics": ["core/base", "core/tensor"],
    "server/connections": ["core/base"],
    "server/memory": ["core/base", "core/tensor"],
    "server/tracing": ["server/config", "server/metrics", "core/base"],
    "server/scheduler": ["server/metrics", "core/base"],
    "server/executor": ["server/config", "server/scheduler", "server/tracing", "server/metrics", "core"],
    "server/fetch": ["core/distributed", "core/base"],
    "server/images": ["server/config", "server/executor", "core"],
    # Its header does not include protobuf.
    "server/config/pbtxt": ["protos", "server/config", "core/base"],
    "server/repository": ["server/config/pbtxt", "server/config", "server/executor", "server/scheduler", "server/metrics", "core"],
    "server/training": ["server/repository", "server/executor", "server/scheduler", "server/metrics", "core"],
    "server/http": ["core/base", "core/tensor"],
    "server/web": ["server/http", "server/training", "server/repository", "server/executor", "server/metrics", "core"],
    "server/transport/access": ["server/config", "server/web", "server/http", "core/base"],
    "server/transport/grpc": ["protos", "server/transport/access", *BELOW_TRANSPORT],
    "server/transport/infer": ["protos", "server/transport/grpc", "server/transport/access", *BELOW_TRANSPORT],
    "server/transport/calls": ["protos", "server/transport/infer", "server/transport/grpc", "server/transport/access",
                               *BELOW_TRANSPORT],
    "server/transport/hosts": ["protos", "server/transport/grpc", "server/transport/access", *BELOW_TRANSPORT],
    "server/transport": ["protos", "server/transport", *BELOW_TRANSPORT],
    "server/rest": ["protos", "server/transport", "server/web", "server/http", "server/repository", "server/executor",
                    "server/tracing", "server/metrics", "server/memory", "core"],
    "server/daemon": ["server/rest", "server/transport", "server/connections", "server/web", "server/http",
                      "server/training", "server/repository", "server/executor", "server/scheduler",
                      "server/tracing", "server/metrics", "server/config", "core"],
    "server/commands": ["protos", "server", "core"],
    "server": ["server", "core"],
}
# Folders of kernels that others build on, from bottom to top: each may include those of rows above it, and a folder that
# is not in the list may include all of these.
KERNEL_ROWS = [["base", "expr"], ["onednn"], ["gemm", "pointwise"], ["complex", "reduce", "special", "view"], ["cuda"],
               ["attention", "fused", "index", "rnn"]]
# Library headers that only some folders may include.
LIBRARIES = {
    r"<(grpc|grpcpp)/": ["server/transport"],
    r"<google/protobuf/": ["server/transport", "server/rest", "server/config/pbtxt"],
    r"[<\"].*\.pb\.h": ["server/transport", "server/rest", "server/config/pbtxt"],
    r"<tensord/client/": ["server/commands"],
    r"<prometheus/": ["server/metrics"],
    r"<httplib": ["server/tracing", "server/web", "server/fetch"],
    r"<boost/": ["server/http"],
    r"<(dnnl|oneapi/dnnl|cblas)": ["kernels"],
    r"<hwy": ["kernels", "server/commands"],
    r"<minizip/": ["core/jit/archive"],
    r"<(jpeglib|png)\.h": ["core/vision"],
    r"<gloo/": ["core/distributed"],
}
# Only core/base/thread creates threads: an exception that leaves any other thread, or a failed start, would end the
# process. The client commands are processes of their own.
THREADS = re.compile(r"\bstd::(j?thread|async)\b(?!::id)")
THREADS_IN = ("core/base/thread.", "server/commands/client/")
# A value's device comes from its tensors, or from its plan.
NAMES_DEFAULT_DEVICE = re.compile(r"\bDevice\{\}")
# Loops over elements are a device's: kernels/ROOM/NAME.cpp reads no memory, and hands none to any.
ELEMENT_ACCESS = re.compile(r"\braw_data\b|\bdata<")
DEVICE_FILES = ("_cpu.cpp", "_simd.cpp", "_cuda.cpp")


def layer_of(path: str) -> str | None:
    folders = [folder for folder in ALLOWED if path == folder or path.startswith(folder + "/")]
    return max(folders, key=len, default=None)


def may_include_kernels(name: str, target: str) -> bool:
    folder, other = name.split("/")[1], target.split("/")[1]
    row_of = {entry: number for number, row in enumerate(KERNEL_ROWS) for entry in row}
    return folder == other or row_of.get(other, len(KERNEL_ROWS)) < row_of.get(folder, len(KERNEL_ROWS))


def main() -> int:
    problems, count = [], 0
    for folder in ("core", "kernels", "server"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh", ".def"):
                continue
            count += 1
            name = file.relative_to(ROOT).as_posix()
            layer = layer_of(name)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if match := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
                    target = match.group(1)
                    top = target.split("/")[0]
                    if top == "ops":  # made by scripts/operators.py, compiled into core/ops
                        top, target = "core", f"core/{target}"
                    if top not in ("core", "kernels", "server", "protos"):
                        continue
                    allowed = [layer, *ALLOWED[layer]]
                    if not any(target.startswith(prefix + "/") for prefix in allowed):
                        problems.append(f"{name}:{number}: {layer} may not include {target}")
                    elif layer == "kernels" and top == "kernels" and not may_include_kernels(name, target):
                        problems.append(f"{name}:{number}: kernels/{name.split('/')[1]} may not include {target}")
                if name.startswith("core/jit/") and NAMES_DEFAULT_DEVICE.search(line):
                    problems.append(f"{name}:{number}: names the host's device")
                if name.startswith("kernels/") and name.endswith(".cpp") and not name.endswith(DEVICE_FILES) and ELEMENT_ACCESS.search(line):
                    problems.append(f"{name}:{number}: a tensor's memory, which only NAME_cpu.cpp, NAME_simd.cpp and NAME.cu may read")
                if THREADS.search(line) and not name.startswith(THREADS_IN):
                    problems.append(f"{name}:{number}: threads are made by core/base/thread.h")
                for pattern, folders in LIBRARIES.items():
                    if re.match(r"\s*#\s*include\s+" + pattern, line) and not any(f"{layer}/".startswith(folder + "/") for folder in folders):
                        problems.append(f"{name}:{number}: {layer} may not include {line.strip()}")
    problems += import_cycles.problems(ROOT)
    for problem in problems:
        print(problem)
    print(f"{count} files checked, {len(problems)} problems")
    return 1 if problems or count < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
