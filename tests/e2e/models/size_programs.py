"""Random TorchScript programs that compute with dynamic sizes, for converters."""

import random
from typing import List

HEADER = "def forward(self, x: Tensor, y: Tensor) -> List[Tensor]:"


class Writer:
    """Writes statements over two-dimensional tensors and ints."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.tensors, self.numbers = ["x", "y"], []
        self.lines: List[str] = []
        self.has_branches = self.random.random() < 0.4

    def pick(self, items):
        return self.random.choice(items)

    def tensor(self):
        return self.pick(self.tensors[-4:] + ["x", "y"])

    def number(self):
        return self.pick(self.numbers) if self.numbers and self.random.random() < 0.75 else str(self.pick([1, 2, 3, 4, 6, 11, 40]))

    def add_tensor(self, expression):
        self.tensors.append(f"t{len(self.lines)}")
        self.lines.append(f"{self.tensors[-1]} = {expression}")

    def add_number(self, expression):
        self.numbers.append(f"n{len(self.lines)}")
        self.lines.append(f"{self.numbers[-1]} = {expression}")

    def write_number(self):
        a, b, c = self.number(), self.number(), self.pick([2, 3, 4, 7, 13, 64])
        self.add_number(self.pick([
            f"{self.tensor()}.size({self.pick([0, 1])})", f"{self.tensor()}.size({self.pick([0, 1])})", f"{self.tensor()}.size(1)",
            f"{a} + {b}", f"{a} * {b}", f"{a} // {c}", f"({a} + {c - 1}) // {c}", f"min({a}, {b})", f"max({a}, {b})",
            f"min({a}, {c})", f"max({a}, {c})", f"{a} % {c}", f"abs({a} - {b})", f"{self.tensor()}.numel()", f"2 * {a}"]))

    def write_tensor(self):
        t, u, n, m, c = self.tensor(), self.tensor(), self.number(), self.number(), self.pick([2, 3, 4, 9, 30])
        self.add_tensor(self.pick([
            f"{t}[:, :{c}]", f"{t}[:, :{n}]", f"{t}[{c}:]", f"{t}[:, -{c}:]", f"{t}[::2]", f"{t}[:, 1:{n}]",
            f"{t}.reshape(-1, {t}.size(0))", f"{t}.reshape(1, -1)", f"{t}.reshape({t}.size(0) * {t}.size(1), 1)",
            f"{t}.reshape(-1, 2)", f"{t}.view({t}.size(0), -1)", f"{t}.t()", f"torch.cat([{t}, {t}], {self.pick([0, 1])})",
            f"torch.cat([{t}, {u}[:, :1].expand(-1, {t}.size(1))], 0)", f"{t} @ {t}.t()", f"{t}.sum({self.pick([0, 1])}, keepdim=True)",
            f"{t} + torch.arange({t}.size(1))", f"torch.arange({n} * 2).float().unsqueeze(0)", f"torch.zeros({n}, {m})",
            f"torch.ones({t}.size(0), {n}) * {m}", f"torch.nn.functional.pad({t}, [0, {n}])", f"{t}.repeat(1, {m})",
            f"{t}.chunk(2, 1)[0]", f"{t}.split({c}, 1)[0]", f"torch.avg_pool1d({t}.unsqueeze(0), 2, 2).squeeze(0)",
            f"{t}.narrow(1, 0, min({t}.size(1), {c}))", f"{t}.flip([1])", f"{t}.roll(1, 1)", f"{t}.cumsum(0)",
            f"{t}.expand({n}, {t}.size(0), {t}.size(1)).flatten(0, 1)", f"torch.full_like({t}, 3.0)", f"{t} / {n}",
            f"torch.nonzero({t} > 0).float()", f"torch.tensor([[{n}, {m}]]).float()", f"{t} * torch.eye({t}.size(1))",
            f"{t} + {u}", f"torch.where({t} > 0, {t}, torch.zeros_like({t}))", f"{t}.index_select(1, torch.arange(min({t}.size(1), {c})))",
            f"torch.diagonal({t}).unsqueeze(0)", f"{t}.unfold(1, 2, 1)[:, :, 0]", f"{t}.topk(1, 1)[0]", f"{t}.squeeze(1).unsqueeze(1)",
            f"torch.max({t}, {u}[:1, :1])", f"{t}.var(1, keepdim=True, unbiased=False)"]))

    def write_branch(self):
        test = f"{self.number()} {self.pick(['==', '!=', '<', '>', '<=', '>='])} {self.number()}"
        if self.random.random() < 0.3:
            test = f"bool({self.tensor()}.sum() > {self.pick([0, -3, 2])})"
        if "bool" in test or self.random.random() < 0.5:
            target = self.tensor()
            self.lines.append(f"r{len(self.lines)} = {target} * 2 if {test} else {self.pick([target, self.tensor()])} - 1")
            self.tensors.append(f"r{len(self.lines) - 1}")
        else:
            self.add_number(f"{self.number()} if {test} else {self.number()}")

    def source(self) -> str:
        for _ in range(self.random.randint(3, 9)):
            kind = self.random.random()
            if kind < 0.4:
                self.write_number()
            elif kind < 0.9 or not self.has_branches:
                self.write_tensor()
            else:
                self.write_branch()
        kept = [name for name in self.tensors[-3:] if name not in "xy"] + ["x"]
        given = kept + [f"torch.tensor({name})" for name in self.numbers[-2:]]
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"{HEADER}\n{body}\n    return [{', '.join(given)}]\n"


def random_program(seed: int) -> str:
    return Writer(seed).source()
