"""Draws models whose parts share memory: in-place writes, views, inputs and weights that are returned."""

import random

SHAPE = (2, 4)
FORMATS = ("script", "script", "pt2", "onnx")  # scripts have the most features, so they are drawn twice as often


class Body:
    """The statements of one forward(). Values are small integers, so that every order of additions is exact."""

    def __init__(self, rng, inputs):
        self.rng = rng
        self.lines = []
        self.names = list(inputs)  # readable names
        self.writable = set(inputs)  # neither weights nor views of them

    def add(self, expression, is_writable):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.names.append(name)
        if is_writable:
            self.writable.add(name)

    def draw(self):
        rng = self.rng
        kind = rng.choice(("write", "write", "write", "new", "view", "weight"))
        if kind == "weight":
            return self.add(rng.choice(("self.weight", "self.buffer", "self.buffer.view(4, 2).t().t().view(2, 4)")), False)
        if kind == "new":
            a, b = rng.choice(self.names), rng.choice(self.names)
            return self.add(rng.choice((f"{a} + {b}", f"{a} - 1", f"torch.relu({a})", f"{a}.clone()")), True)
        if kind == "view":
            a = rng.choice(self.names)
            return self.add(rng.choice((f"{a}[:]", f"{a}.view(4, 2).view(2, 4)", f"{a}.t().t()")), a in self.writable)
        target = rng.choice(sorted(self.writable))
        other = rng.choice(self.names)
        self.lines.append(rng.choice((
            f"{target}.add_({rng.randint(1, 3)})", f"{target}.sub_({other}.clone())", f"{target} += {rng.randint(1, 3)}",
            f"{target}.relu_()", f"{target}.clamp_(max={rng.randint(2, 5)})", f"{target}.neg_()", f"{target}.fill_(3)",
            f"{target}.copy_({other}.clone())", f"{target}[:, 1:3].add_(1)", f"{target}[0] = {rng.randint(1, 4)}",
            f"{target}.t().sub_(1)", f"{target}.masked_fill_({target} > 2, 1)", f"{target}.zero_()",
            f"torch.add({other}, 1, out={target})" if other != target else f"{target}.add_(1)")))


class Model:
    """One random model: `source` has its class M, `inputs` and `outputs` name its tensors."""

    def __init__(self, rng, name, kind):
        self.name, self.kind = name, kind
        self.format = "script" if kind == "decoupled" else rng.choice(FORMATS)
        self.inputs = ["a"] if rng.random() < 0.4 else ["a", "b"]
        arguments = self.inputs + ["state"] if kind == "sequence" else self.inputs
        body = Body(rng, arguments)
        for _ in range(rng.randint(2, 6)):
            body.draw()
        if kind == "sequence":  # a cache that is written in place, and in some models is also an output
            body.lines.append(f"state[{rng.randint(0, 1)}] += a[0]")
        if self.format == "onnx":  # ONNX has no out= variants
            body.lines = [line for line in body.lines if "out=" not in line]
        count = rng.randint(1, 3)
        returned = [rng.choice(body.names) for _ in range(count)]
        if kind == "decoupled":
            returned = [returned[0]] * 2 + [rng.choice(body.names)]
            self.outputs = ["OUTPUT__0"]
        else:
            self.outputs = [f"OUTPUT__{i}" for i in range(count)]
        if kind == "sequence":
            returned.append(rng.choice(("state", "state", "state", "self.buffer", "state.clone()")))
        self.source = self._source(arguments, body.lines, returned)

    def _source(self, arguments, lines, returned):
        types = ", ".join(f"{name}: Tensor" for name in arguments)
        if self.kind == "decoupled":
            result, value = "List[Tensor]", f"[{', '.join(returned)}]"
        elif len(returned) == 1:
            result, value = "Tensor", returned[0]
        else:
            result, value = f"Tuple[{', '.join(['Tensor'] * len(returned))}]", ", ".join(returned)
        body = "\n        ".join(lines + [f"return {value}"])
        return f"""import torch
from torch import Tensor, nn
from typing import List, Tuple


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(8.0).view(2, 4), requires_grad=False)
        self.register_buffer("buffer", torch.arange(8.0).view(2, 4) - 3)

    def forward(self, {types}) -> {result}:
        {body}
"""

    def config(self):
        """config.pbtxt of the model."""
        def tensors(kind, names):
            items = ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 2, 4 ] }}' for name in names)
            return f"{kind} [ {items} ]\n"

        pbtxt = tensors("input", self.inputs) + tensors("output", self.outputs)
        if self.kind == "decoupled":
            pbtxt += "model_transaction_policy { decoupled: true }\n"
        if self.kind == "sequence":
            pbtxt += f"""sequence_batching {{ max_sequence_idle_microseconds: 600000000 oldest {{ max_candidate_sequences: 4 }} state [ {{
  input_name: "state" output_name: "OUTPUT__{len(self.outputs)}" data_type: TYPE_FP32 dims: [ 2, 4 ] }} ] }}
"""
        return pbtxt


class Chain:
    """An ensemble of random models: `steps` are (model, input names, output names), `outputs` its outputs."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.seed, self.name = seed, f"chain{seed}"
        self.models, self.steps = [], []
        tensors = ["X", "Y"]
        has_sequence, has_decoupled = rng.random() < 0.4, rng.random() < 0.25
        count = rng.randint(2, 5)
        special = {}
        if has_sequence:
            special[rng.randrange(count)] = "sequence"
        if has_decoupled:
            special.setdefault(rng.randrange(count), "decoupled")
        self.is_sequence = "sequence" in special.values()
        self.is_decoupled = "decoupled" in special.values()
        for i in range(count):
            model = Model(rng, f"chain{seed}_{i}", special.get(i, "plain"))
            self.models.append(model)
            inputs = [rng.choice(tensors) for _ in model.inputs]
            outputs = [f"t{i}_{k}" for k in range(len(model.outputs))]
            self.steps.append((model, inputs, outputs))
            tensors += outputs
        made = tensors[2:]
        self.outputs = sorted(set(rng.choice(made) for _ in range(rng.randint(1, 5))))

    def config(self):
        def tensors(kind, names):
            items = ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 2, 4 ] }}' for name in names)
            return f"{kind} [ {items} ]\n"

        used = {name for _, inputs, _ in self.steps for name in inputs}
        steps = []
        for model, inputs, outputs in self.steps:
            maps = "".join(f' input_map {{ key: "{key}" value: "{value}" }}' for key, value in zip(model.inputs, inputs))
            maps += "".join(f' output_map {{ key: "{key}" value: "{value}" }}'
                            for key, value in zip(model.outputs, outputs))
            steps.append(f'  {{ model_name: "{model.name}" model_version: -1{maps} }}')
        pbtxt = 'platform: "ensemble"\n' + tensors("input", [name for name in ("X", "Y") if name in used])
        pbtxt += tensors("output", self.outputs)
        if self.is_decoupled:
            pbtxt += "model_transaction_policy { decoupled: true }\n"
        return pbtxt + "ensemble_scheduling { step [\n" + ",\n".join(steps) + "\n] }\n"

    def inputs(self):
        used = {name for _, inputs, _ in self.steps for name in inputs}
        return [name for name in ("X", "Y") if name in used]
