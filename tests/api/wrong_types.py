"""Lines of C++ that must not compile, each beside one that differs in what is wrong alone and must. Usage: wrong_types COMPILER"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = """#include <tensord/index.h>
#include <tensord/operators.h>
#include <tensord/tensor.h>
using namespace tensord;
Tensor x, y;
"""
# (good, bad)
LINES = [
    ("add(x, y);", 'add(x, "y");'),
    ("add(x, y, {.alpha = 2});", "add(x, y, 2);"),  # for keywords only
    ("add(x, y, {.alpha = 2});", "add(x, y, {.beta = 2});"),
    ("softmax(x, 1);", "softmax(x, 1.5);"),
    ("tensord::std(x, true);", 'tensord::std(x, "true");'),
    ("sum(x, {0, 1}, true);", "sum(x, {0, 1}, 1);"),
    ("sum(x, {0, 1});", "sum(x, {0.5});"),
    ("view(x, {2, 3});", "view(x, 2);"),
    ("max_pool2d(x, 2);", "max_pool2d(x, true);"),
    ("cat({x, y}, 1);", "cat(x, 1);"),
    ('gelu(x, {.approximate = "tanh"});', "gelu(x, {.approximate = 1});"),
    ("auto [a, b] = max(x, 0); add(a, b);", "Tensor a = max(x, 0);"),
    ("tensord::zeros({2}, {.dtype = DType::kInt64});", "tensord::zeros({2}, {.dtype = 4});"),
    ("argsort(x, {.stable = true});", "argsort(x, {.dim = 0});"),
    ("tensord::index(x, {Slice(1, 3), None, 0});", 'tensord::index(x, {"0"});'),
    ("x + 1 - y;", 'x + "1";'),
]


def compiles(compiler, folder, line):
    path = pathlib.Path(folder, "line.cpp")
    path.write_text(f"{HEAD}void f() {{ {line} }}\n")
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{ROOT}", "-include", f"{folder}/head.h", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    compiler = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        # The headers are compiled once.
        head = pathlib.Path(folder, "head.h")
        head.write_text("".join(line + "\n" for line in HEAD.splitlines() if line.startswith("#include")))
        subprocess.run([compiler, "-std=c++20", "-x", "c++-header", str(head), f"-I{ROOT / 'include'}", f"-I{ROOT}", "-o", f"{head}.gch"], check=True)
        good = compiles(compiler, folder, " ".join(f"{{ {line} }}" for line, _ in LINES))
        if good.returncode:
            raise SystemExit(f"the good lines do not compile:\n{good.stderr[:3000]}")
        taken = [bad for _, bad in LINES if compiles(compiler, folder, bad).returncode == 0]
    if taken:
        raise SystemExit("these compile and should not:\n" + "\n".join(taken))
    print(f"{len(LINES)} wrong lines are refused")


if __name__ == "__main__":
    main()
