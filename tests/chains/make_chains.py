"""Draws chains of models, exports them, and runs them in PyTorch with copies everywhere:

    build/pypi_torch/bin/python -m tests.chains.make_chains FOLDER FIRST_SEED COUNT

FOLDER/repository is a model repository, FOLDER/calls.pt the requests with the answers that they must get.
"""

import copy
import importlib.util
import pathlib
import sys
import warnings

import torch

from tests.chains.models import SHAPE, Chain


def load_module(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.M().eval()


def export(model, module, folder):
    """Writes the model in its format, or in TorchScript if the exporter refuses it. Returns the format."""
    example = tuple(torch.zeros(SHAPE) for _ in model.inputs + (["state"] if model.kind == "sequence" else []))
    names = model.inputs + (["state"] if model.kind == "sequence" else [])
    outputs = model.outputs + ([f"OUTPUT__{len(model.outputs)}"] if model.kind == "sequence" else [])
    try:
        if model.format == "pt2":
            torch.export.save(torch.export.export(copy.deepcopy(module), example), folder / "model.pt2")
        elif model.format == "onnx":
            torch.onnx.export(copy.deepcopy(module), example, folder / "model.onnx", dynamo=True, input_names=names,
                              output_names=outputs, external_data=False, verbose=False)
    except Exception:  # noqa: BLE001  the exporter's own limits are not what is tried here
        for file in folder.iterdir():
            file.unlink()
        model.format = "script"
    if model.format == "script":
        torch.jit.save(torch.jit.script(module), folder / "model.pt")


class Reference:
    """Runs a chain with copies everywhere: a model can only affect its own results."""

    def __init__(self, chain, modules):
        self.chain, self.modules, self.states = chain, modules, {}

    def run_model(self, model, inputs, sequence):
        """The responses of one model: a list of {output: tensor}."""
        module = copy.deepcopy(self.modules[model.name])
        arguments = [tensor.clone() for tensor in inputs]
        if model.kind == "sequence":
            arguments.append(self.states.get((model.name, sequence), torch.zeros(SHAPE)).clone())
        with torch.no_grad():
            result = module(*arguments)
        result = list(result) if isinstance(result, (list, tuple)) else [result]
        if model.kind == "decoupled":
            return [{"OUTPUT__0": item.clone()} for item in result]
        if model.kind == "sequence":
            self.states[model.name, sequence] = result.pop().clone()
        return [dict(zip(model.outputs, (item.clone() for item in result)))]

    def run(self, inputs, sequence):
        """The responses of the chain. After a decoupled step every response passes through the rest separately."""
        chain = self.chain
        decoupled = {out for model, _, outs in chain.steps if model.kind == "decoupled" for out in outs}
        below = set(decoupled)
        wanted = self.needed()
        branches = None
        tensors = dict(inputs)
        for model, names, outs in chain.steps:
            if model.name not in wanted:
                continue
            if model.kind == "decoupled":
                answers = self.run_model(model, [tensors[name] for name in names], sequence)
                branches = [dict(zip(outs, answer.values())) for answer in answers]
            elif any(name in below for name in names):
                below.update(outs)
                for branch in branches:
                    seen = {**tensors, **branch}
                    answer = self.run_model(model, [seen[name] for name in names], sequence)[0]
                    branch.update(zip(outs, answer.values()))
            else:
                answer = self.run_model(model, [tensors[name] for name in names], sequence)[0]
                tensors.update(zip(outs, answer.values()))
        return [{name: {**tensors, **branch}[name] for name in chain.outputs} for branch in branches or [{}]]

    def needed(self):
        """The models that some requested output depends on."""
        wanted, models = set(self.chain.outputs), set()
        for model, names, outs in reversed(self.chain.steps):
            if wanted & set(outs):
                models.add(model.name)
                wanted.update(names)
        return models


def calls_of(chain, modules):
    """Requests for the chain, then for its models alone, then for the chain again."""
    reference, calls = Reference(chain, modules), []
    generator = torch.Generator().manual_seed(chain.seed)

    def draw(names):
        return {name: torch.randint(-3, 6, SHAPE, generator=generator).to(torch.float32) for name in names}

    def ask_chain(sequence, is_start, is_end):
        inputs = draw(chain.inputs())
        calls.append({"model": chain.name, "sequence": (sequence, is_start, is_end) if chain.is_sequence else None,
                      "inputs": inputs, "answers": reference.run(inputs, sequence)})

    for turn in range(3):
        for sequence in (1, 2) if chain.is_sequence else (1,):
            ask_chain(sequence, turn == 0, False)
    for model in chain.models:
        if model.kind != "plain":
            continue
        for _ in range(2):
            inputs = draw(model.inputs)
            calls.append({"model": model.name, "sequence": None, "inputs": inputs,
                          "answers": reference.run_model(model, list(inputs.values()), 0)})
    for sequence in (1, 2) if chain.is_sequence else (1,):
        ask_chain(sequence, False, True)
    return calls


def is_clear(chain):
    """False if a sequence follows a decoupled step, because it would get the responses in any order."""
    below = set()
    for model, names, outs in chain.steps:
        if model.kind == "decoupled":
            below.update(outs)
        elif any(name in below for name in names):
            if model.kind == "sequence":
                return False
            below.update(outs)
    return True


def main():
    folder, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    all_calls, seed = {}, first
    while len(all_calls) < count:
        chain = Chain(seed)
        seed += 1
        if not is_clear(chain):
            continue
        modules = {}
        for model in chain.models:
            version = folder / "repository" / model.name / "1"
            version.mkdir(parents=True)
            source = folder / f"{model.name}.py"
            source.write_text(model.source)
            modules[model.name] = load_module(source)
            export(model, modules[model.name], version)
            (version.parent / "config.pbtxt").write_text(model.config())
        (folder / "repository" / chain.name / "1").mkdir(parents=True)
        (folder / "repository" / chain.name / "config.pbtxt").write_text(chain.config())
        all_calls[chain.name] = calls_of(chain, modules)
    torch.save(all_calls, folder / "calls.pt")
    print(f"{len(all_calls)} chains of seeds {first} to {seed - 1} in {folder}")


if __name__ == "__main__":
    main()
