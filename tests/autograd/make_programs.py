"""Random programs of operators, views and in-place writes, with what PyTorch's autograd makes of them.

Usage: python3 -m tests.autograd.make_programs OUTPUT_FILE [COUNT [FIRST_SEED]]
"""

from __future__ import annotations

import random
import sys
import warnings

import torch

UNARY = ["sigmoid", "tanh", "sin", "exp", "relu", "clone", "detach", "neg", "square", "cos"]
UNARY_IN_PLACE = ["sigmoid_", "tanh_", "sin_", "relu_", "neg_", "zero_", "exp_", "square_"]
BINARY = ["add.Tensor", "mul.Tensor", "sub.Tensor", "div.Tensor"]
BINARY_IN_PLACE = ["add_.Tensor", "mul_.Tensor", "sub_.Tensor", "copy_", "div_.Tensor"]


class Ref:
    """A variable of the program, by number."""

    def __init__(self, number: int):
        self.number = number


def resolve(argument, variables):
    if isinstance(argument, Ref):
        return variables[argument.number]
    if isinstance(argument, list):
        return [resolve(item, variables) for item in argument]
    return argument


def encode(argument):
    if isinstance(argument, Ref):
        return {"var": argument.number}
    if isinstance(argument, list):
        return [encode(item) for item in argument]
    return argument


def overload(name: str):
    base, _, kind = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), kind or "default")


class Writer:
    """Generates one program, and runs each step at once."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        shapes = [(2, 3), (3,), (2, 3), (3, 2), ()]
        self.leaves = [torch.rand(shape, generator=generator, dtype=torch.float64) + 0.25 for shape in shapes]
        self.inputs = [leaf.clone() for leaf in self.leaves]
        self.asks = [self.rng.random() < 0.7 for _ in shapes]
        for leaf, asks in zip(self.leaves, self.asks):
            leaf.requires_grad_(asks)
        self.variables = list(self.leaves)
        self.steps = []
        self.grad_enabled = True

    def pick(self, condition=lambda tensor: True):
        fitting = [i for i, tensor in enumerate(self.variables) if tensor.is_floating_point() and condition(tensor)]
        return Ref(self.rng.choice(fitting)) if fitting else None

    def step(self, name: str, *arguments) -> bool:
        record = {"op": "aten::" + name, "args": encode(list(arguments)), "error": "", "results": []}
        try:
            with torch.set_grad_enabled(self.grad_enabled):
                result = overload(name)(*resolve(list(arguments), self.variables))
        except (RuntimeError, IndexError) as error:
            record["error"] = str(error).split("\n")[0]
            self.steps.append(record)
            return False
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            self.variables.append(tensor)
            record["results"].append([bool(tensor.requires_grad), self.is_leaf(tensor)])
        record["grad_enabled"] = self.grad_enabled
        self.steps.append(record)
        return True

    @staticmethod
    def is_leaf(tensor):
        try:
            return bool(tensor.is_leaf)
        except RuntimeError:  # a view that is no longer valid
            return None

    def view(self):
        x = self.pick(lambda t: t.dim() > 0 and t.numel() > 0)
        tensor = self.variables[x.number]
        dim = self.rng.randrange(tensor.dim())
        size = tensor.shape[dim]
        kind = self.rng.choice(["select", "slice", "transpose", "view", "unsqueeze", "expand", "unbind", "narrow", "reshape",
                                "t", "permute", "as_strided", "diagonal", "chunk"])
        if kind == "select":
            return self.step("select.int", x, dim, self.rng.randrange(size))
        if kind == "slice":
            return self.step("slice.Tensor", x, dim, self.rng.randrange(size), size, self.rng.choice([1, 1, 2]))
        if kind == "narrow":
            start = self.rng.randrange(size)
            return self.step("narrow", x, dim, start, self.rng.randint(1, size - start))
        if kind == "transpose":
            return self.step("transpose.int", x, dim, self.rng.randrange(tensor.dim()))
        if kind in ("view", "reshape"):
            return self.step(kind, x, [-1])
        if kind == "unsqueeze":
            return self.step("unsqueeze", x, dim) if tensor.dim() < 4 else None
        if kind == "expand":
            return self.step("expand", x, [2, *tensor.shape]) if tensor.dim() < 3 else None
        if kind == "unbind":
            return self.step("unbind.int", x, dim)
        if kind == "chunk":
            return self.step("chunk", x, 2, dim)
        if kind == "t":
            return self.step("t", x) if tensor.dim() <= 2 else None
        if kind == "permute":
            order = list(range(tensor.dim()))
            self.rng.shuffle(order)
            return self.step("permute", x, order)
        if kind == "diagonal":
            return self.step("diagonal", x) if tensor.dim() >= 2 else None
        return self.step("as_strided", x, [2], [1]) if tensor.is_contiguous() and tensor.numel() >= 2 else None

    def random_step(self):
        kind = self.rng.choice(["unary", "binary", "binary", "view", "view", "view", "write", "write", "write", "scalar",
                                "many", "reduce", "mode", "index"])
        x = self.pick()
        if kind == "unary":
            return self.step(self.rng.choice(UNARY), x)
        if kind == "scalar":
            name = self.rng.choice(["mul.Scalar", "add.Scalar", "mul_.Scalar", "add_.Scalar", "fill_.Scalar", "pow.Tensor_Scalar"])
            return self.step(name, x, self.rng.choice([2.0, 0.5, -1.5] if "pow" not in name else [2.0, 3.0]))
        if kind == "reduce":
            tensor = self.variables[x.number]
            if tensor.dim() == 0 or self.rng.random() < 0.3:
                return self.step("sum", x)
            return self.step(self.rng.choice(["sum.dim_IntList", "mean.dim"]), x, [self.rng.randrange(tensor.dim())],
                             self.rng.random() < 0.5)
        if kind == "index":
            return self.step("masked_fill.Scalar", x, Ref(self.mask(x)), 0.5)
        if kind == "mode":
            self.grad_enabled = not self.grad_enabled or self.rng.random() < 0.5
            return None
        if kind == "view":
            return self.view()
        shape = self.variables[x.number].shape
        y = self.pick(lambda t: t.shape == shape or (t.dim() <= len(shape) and t.dim() < 2 and _expands(t.shape, shape)))
        if kind == "binary":
            return self.step(self.rng.choice(BINARY), x, y)
        if kind == "many":
            same = self.pick(lambda t: t.shape == shape)
            return self.step("stack", [x, same], 0) if len(shape) < 3 else None
        if self.rng.random() < 0.4:
            return self.step(self.rng.choice(UNARY_IN_PLACE), x)
        return self.step(self.rng.choice(BINARY_IN_PLACE), x, y)

    def mask(self, x: Ref) -> int:
        grad_enabled, self.grad_enabled = self.grad_enabled, True
        assert self.step("gt.Scalar", x, 0.4)
        self.grad_enabled = grad_enabled
        return len(self.variables) - 1


def _expands(small, large) -> bool:
    return all(a in (1, b) for a, b in zip(reversed(small), reversed(large)))


def is_usable(tensor) -> bool:
    try:
        return tensor.requires_grad and tensor.is_floating_point() and (tensor.grad_fn is not None or tensor.is_leaf)
    except RuntimeError:
        return False


def finish(writer: Writer) -> dict:
    """A loss of everything that requires a gradient, its gradients, and second gradients."""
    writer.grad_enabled = True
    total = None
    for number in range(len(writer.variables)):
        if not is_usable(writer.variables[number]):
            continue
        first = len(writer.variables)
        if not writer.step("mul.Tensor", Ref(number), Ref(number)) or not writer.step("sum", Ref(first)):
            continue
        if total is not None and not writer.step("add.Tensor", Ref(total), Ref(first + 1)):
            continue
        total = len(writer.variables) - 1
    out = {"inputs": writer.inputs, "asks": writer.asks, "steps": writer.steps, "total": total, "error": "", "grads": [],
           "second_error": "", "second": []}
    leaves = [leaf for leaf in writer.leaves if leaf.requires_grad and leaf.is_leaf]
    if total is None or not leaves or not writer.variables[total].requires_grad:
        out["total"] = None
        return out
    try:
        grads = torch.autograd.grad(writer.variables[total], leaves, create_graph=True, allow_unused=True)
        out["grads"] = [None if g is None else g.detach().clone() for g in grads]
    except RuntimeError as error:
        out["error"] = str(error).split("\n")[0]
        return out
    try:
        again = sum((g * g).sum() for g in grads if g is not None)
        second = torch.autograd.grad(again, leaves, allow_unused=True)
        out["second"] = [None if g is None else g.detach() for g in second]
    except (RuntimeError, AttributeError, TypeError) as error:
        out["second_error"] = str(error).split("\n")[0]
    return out


def make_program(seed: int) -> dict:
    writer = Writer(seed)
    for _ in range(writer.rng.randint(4, 18)):
        writer.random_step()
    return {"seed": seed, **finish(writer)}


def main() -> None:
    warnings.simplefilter("ignore")
    path, count, first = sys.argv[1], int((sys.argv[2:3] or [400])[0]), int((sys.argv[3:4] or [0])[0])
    programs = [make_program(first + i) for i in range(count)]
    torch.save(programs, path)
    failing = sum(bool(p["error"]) for p in programs)
    print(f"{count} programs, {sum(len(p['steps']) for p in programs)} steps, {failing} whose pass fails")


if __name__ == "__main__":
    main()
