"""Lines of C++ that must not compile, each paired with one that must and that differs only in the error. Usage:
wrong_types COMPILER GENERATED, the folder of what scripts/operators.py makes"""

import pathlib
import re
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
    ("add(x, y, {.alpha = 2});", "add(x, y, 2);"),  # keyword-only
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
    ("x.add(y);", 'x.add("y");'),
    ("x.add_(y, {.alpha = 2});", "x.add_(y, 2);"),
    ("x.sum({1}, true).relu_();", "x.sum({1}, 1);"),
    ("x.index({Slice(1, 3), None});", 'x.index({"0"});'),
    ("x.to(DType::kFloat64).view({2, 3});", "x.to(4);"),
    ("const auto [a, b] = x.max(0); a.add(b);", "Tensor a = x.max(0);"),
    ("x.transpose(0, 1).contiguous().clone().detach();", "x.transpose(0, 1.5);"),
    ("x.requires_grad_().sum().backward();", 'x.backward("y");'),
    ("x.item<double>();", "x.cat(y);"),  # `tensors`, not `self`
]
# The engine's own, which a file includes by family.
ENGINE_HEAD = """#include "ops/pointwise.h"
#include "ops/reduce.h"
using namespace tensord;
Tensor x, y;
"""
ENGINE_LINES = [
    ("ops::add(x, y);", "ops::no_such_operator(x, y);"),
    ("ops::add(x, y);", "ops::add(x);"),
    ("ops::add(x, y, {.alpha = 2});", 'ops::add(x, "y");'),
    ("ops::sum(x, Dims{0, 1}, true);", "ops::sum(x, Dims{0, 1}, 1);"),
    ("ops::sum(x, std::nullopt);", "ops::sum(x, 0.5);"),
    ("Tensor a = ops::amax(x, Dims{0});", "Tensor a = ops::max(x, 0);"),
    ("ops::relu(x);", "ops::relu(ops::Value(x));"),  # a value says only at run time what it is
]


def errors(compiler, generated, head, lines):
    """The indices of lines that do not compile, and the compiler's output."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "lines.cpp")
        path.write_text(head + "".join(f"void f{i}() {{ {line} }}\n" for i, line in enumerate(lines)))
        command = [compiler, "-std=c++20", "-fsyntax-only", "-fmax-errors=0", f"-I{ROOT / 'include'}", f"-I{ROOT}", f"-I{generated}",
                   str(path)]
        said = subprocess.run(command, capture_output=True, text=True).stderr
        first = head.count("\n") + 1
        return {int(number) - first for number in re.findall(r"lines\.cpp:(\d+):\d+: error", said)}, said


def main():
    compiler, generated = sys.argv[1:]
    for head, lines in ((HEAD, LINES), (ENGINE_HEAD, ENGINE_LINES)):
        found, said = errors(compiler, generated, head, [good for good, _ in lines])
        if found or "error" in said:
            raise SystemExit(f"the good lines do not compile:\n{said[:3000]}")
        found, said = errors(compiler, generated, head, [bad for _, bad in lines])
        taken = [bad for i, (_, bad) in enumerate(lines) if i not in found]
        if taken:
            raise SystemExit("these compile and should not:\n" + "\n".join(taken))
    print(f"{len(LINES) + len(ENGINE_LINES)} wrong lines are refused")


if __name__ == "__main__":
    main()
