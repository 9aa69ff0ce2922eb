"""Names of inputs and outputs are the same in metadata, answers and requests, over gRPC and HTTP and in ensembles, for
every model format."""

import os
import subprocess
import tempfile
import unittest
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, pb, request
from tests.e2e.rest import RestTest


class Weighted(nn.Module):
    """Has a trainable parameter that leaves the first input unchanged."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


class One(Weighted):
    def forward(self, x: Tensor) -> Tensor:
        x = x * self.weight
        return x * 2


class Two(Weighted):
    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
        x = x * self.weight
        return x * 2, x - y


class Swapped(Weighted):
    """Own names that are positional names of other inputs."""

    def forward(self, INPUT__1: Tensor, INPUT__0: Tensor) -> Tuple[Tensor, Tensor]:
        INPUT__1 = INPUT__1 * self.weight
        return INPUT__1 * 2, INPUT__1 - INPUT__0


class Keys(Weighted):
    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        x = x * self.weight
        return {"a.b": x * 2, "größe 量": x + 1, "OUTPUT__0": -x}


class OneKey(Weighted):
    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        x = x * self.weight
        return {"logits": x * 2}


class Box(NamedTuple):
    boxes: Tensor
    scores: Tensor


class Nested(Weighted):
    def forward(self, x: Tensor) -> Tuple[Tensor, Box, Box]:
        x = x * self.weight
        return x, Box(x + 1, x + 2), Box(x + 3, x + 4)


class Shadow(Weighted):
    """A key that is also the first output's default name."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        x = x * self.weight
        return x, {"OUTPUT__0": x + 1}


class Detector(Weighted):
    def forward(self, x: Tensor) -> List[Dict[str, Tensor]]:
        x = x * self.weight
        out: List[Dict[str, Tensor]] = []
        for i in range(3):
            out.append({"boxes": x + i, "labels": x - i})
        return out


class Boxes(Weighted):
    def forward(self, x: Tensor) -> List[Box]:
        x = x * self.weight
        return [Box(x + 1, x + 2), Box(x + 3, x + 4)]


class TwoDicts(Weighted):
    def forward(self, x: Tensor) -> Tuple[Dict[str, Tensor], Dict[str, Tensor]]:
        x = x * self.weight
        return {"a": x, "b": x + 1}, {"b": x + 2, "c": x + 3}


class Keyed(Weighted):
    """Keys that a script sets one by one."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        x = x * self.weight
        out: Dict[str, Tensor] = {"second": x}
        out["first"] = x + 2
        out["last.one"] = x + 3
        out["second"] = x + 1
        return x, out


class Branched(Weighted):
    """Keys that depend on the run."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        x = x * self.weight
        out: Dict[str, Tensor] = {}
        if bool(x.sum() > 0):
            out["yes"] = x + 1
        else:
            out["no"] = x - 1
        return x, out


class Nones(Weighted):
    def forward(self, x: Tensor) -> Tuple[Tensor, Optional[Tensor], Tensor]:
        x = x * self.weight
        return x, None, x + 1


# Inputs, outputs, and the value of each output for x = 1 and y = 5.
PYTHON = {
    "one": (One, ["x"], {"OUTPUT__0": 2}),
    "two": (Two, ["x", "y"], {"OUTPUT__0": 2, "OUTPUT__1": -4}),
    "swapped": (Swapped, ["INPUT__1", "INPUT__0"], {"OUTPUT__0": 2, "OUTPUT__1": -4}),
    "keys": (Keys, ["x"], {"a.b": 2, "größe 量": 2, "OUTPUT__0": -1}),
    "one_key": (OneKey, ["x"], {"logits": 2}),
    "nested": (Nested, ["x"], {"OUTPUT__0": 1, "boxes": 2, "scores": 3, "2.boxes": 4, "2.scores": 5}),
    "shadow": (Shadow, ["x"], {"OUTPUT__1": 1, "OUTPUT__0": 2}),
    "keyed": (Keyed, ["x"], {"OUTPUT__0": 1, "second": 2, "first": 3, "last.one": 4}),
    "branched": (Branched, ["x"], {"OUTPUT__0": 1, "yes": 2}),
    "detector": (Detector, ["x"], {"boxes": 1, "labels": 1, "1.boxes": 2, "1.labels": 0, "2.boxes": 3, "2.labels": -1}),
    "boxes": (Boxes, ["x"], {"boxes": 2, "scores": 3, "1.boxes": 4, "1.scores": 5}),
    "two_dicts": (TwoDicts, ["x"], {"a": 1, "b": 2, "1.b": 3, "c": 4}),
    "nones": (Nones, ["x"], {"OUTPUT__0": 1, "OUTPUT__2": 2}),
}
PROGRAMS = {name: row for name, row in PYTHON.items() if name != "branched"}
# Names in the ONNX file may be any strings.
ONNX = {
    "one": (One, ["x"], {"logits": 2}),
    "one_shadowed": (One, ["INPUT__1"], {"OUTPUT__1": 2}),
    "two": (Two, ["a.b", "größe 量"], {"c.d": 2, "c": -4}),
    "swapped": (Two, ["INPUT__1", "INPUT__0"], {"OUTPUT__1": 2, "OUTPUT__0": -4}),
}


def save_onnx(kind, inputs, outputs, path):
    values = tuple(torch.ones(3) * (1 + 4 * i) for i in range(len(inputs)))
    axes = {name: {0: "n"} for name in [*inputs, *outputs]}
    torch.onnx.export(kind(), values, path, input_names=list(inputs), output_names=list(outputs), dynamic_axes=axes)


def save_program(script, inputs, path):
    sizes = ["--input", "3"] * len(inputs)
    subprocess.run([BINARY, "convert", script, "--to", "pt2", "-o", path, *sizes], check=True, capture_output=True)


def quoted(string):
    return '"' + string + '"'


def make_ensemble(root, model, inputs, outputs):
    """An ensemble over one model that renames each of its outputs."""
    name = "ensemble_" + model
    maps = [f'input_map {{ key: {quoted(own)} value: "I{i}" }}' for i, own in enumerate(inputs)]
    maps += [f'output_map {{ key: {quoted(own)} value: "O{i}" }}' for i, own in enumerate(outputs)]
    lines = ['platform: "ensemble"']
    lines += [f'input {{ name: "I{i}" data_type: TYPE_FP32 dims: [ -1 ] }}' for i in range(len(inputs))]
    lines += [f'output {{ name: "O{i}" data_type: TYPE_FP32 dims: [ -1 ] }}' for i in range(len(outputs))]
    lines.append(f'ensemble_scheduling {{ step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }} }}')
    os.makedirs(os.path.join(root, name, "1"))
    with open(os.path.join(root, name, "config.pbtxt"), "w") as config:
        config.write("\n".join(lines))


def make_models(root):
    """Writes every model and an ensemble over each; returns the inputs and outputs of each model."""
    interfaces = {}
    for name, (kind, inputs, outputs) in PYTHON.items():
        serve_models.save(kind(), root, "script_" + name)
        interfaces["script_" + name] = (inputs, outputs)
    for name, (kind, inputs, outputs) in PROGRAMS.items():
        folder = os.path.join(root, "program_" + name, "1")
        os.makedirs(folder)
        save_program(os.path.join(root, "script_" + name, "1", "model.pt"), inputs, os.path.join(folder, "model.pt2"))
        interfaces["program_" + name] = (inputs, outputs)
    for name, (kind, inputs, outputs) in ONNX.items():
        folder = os.path.join(root, "onnx_" + name, "1")
        os.makedirs(folder)
        save_onnx(kind, inputs, outputs, os.path.join(folder, "model.onnx"))
        interfaces["onnx_" + name] = (inputs, outputs)
    for model, (inputs, outputs) in interfaces.items():
        make_ensemble(root, model, inputs, outputs)
    return interfaces


class InterfacesTest(RestTest):
    """The untrained models; tests/e2e/training/train_names_test.py covers them after training."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.interfaces = make_models(cls.folder.name)
        cls.daemon = Daemon(cls.folder.name, "--allow-http", "true", "--http-port", "0")
        cls.host, cls.port = cls.daemon.ready["http"].rsplit(":", 1)

    def check_interface(self, model, inputs, outputs, names):
        """`names`: the names by which outputs are requested."""
        metadata = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name=model))
        over_http = self.get(f"/v2/models/{model}")
        self.assertEqual([tensor.name for tensor in metadata.inputs], inputs)
        self.assertEqual([tensor["name"] for tensor in over_http["inputs"]], inputs)
        listed = [tensor.name for tensor in metadata.outputs]
        self.assertEqual([tensor["name"] for tensor in over_http["outputs"]], listed)
        # Metadata omits outputs that only a run determines.
        self.assertEqual(listed, names[:len(listed)])
        feeds = [(name, "FP32", [3], torch.full([3], 1.0 + 4 * i).numpy().tobytes()) for i, name in enumerate(inputs)]
        wanted = {name: torch.full([3], float(value)).numpy().tobytes() for name, value in zip(names, outputs)}
        answer = self.daemon.stub.ModelInfer(request(model, feeds))
        self.assertEqual([tensor.name for tensor in answer.outputs], names)
        self.assertEqual(dict(zip(names, answer.raw_output_contents)), wanted)
        body = {"inputs": [{"name": name, "datatype": "FP32", "shape": [3], "data": [1.0 + 4 * i] * 3}
                           for i, name in enumerate(inputs)]}
        answer = self.post(f"/v2/models/{model}/infer", body)
        self.assertEqual([(tensor["name"], tensor["data"]) for tensor in answer["outputs"]],
                         [(name, [value] * 3) for name, value in zip(names, outputs)])
        for name, value in zip(names, outputs):
            answer = self.daemon.stub.ModelInfer(request(model, feeds, outputs=[name]))
            self.assertEqual([(tensor.name, data) for tensor, data in zip(answer.outputs, answer.raw_output_contents)],
                             [(name, wanted[name])])
            answer = self.post(f"/v2/models/{model}/infer", {**body, "outputs": [{"name": name}]})
            self.assertEqual([(tensor["name"], tensor["data"]) for tensor in answer["outputs"]], [(name, [value] * 3)])

    def test_every_model(self):
        for model, (inputs, outputs) in self.interfaces.items():
            with self.subTest(model=model):
                self.check_interface(model, inputs, list(outputs.values()), list(outputs))

    def test_metadata_lists_keys_that_every_run_gives(self):
        for name in ("keys", "one_key", "shadow", "keyed", "two_dicts"):
            listed = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="script_" + name)).outputs
            self.assertEqual([tensor.name for tensor in listed], list(PYTHON[name][2]), name)
        listed = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="script_branched")).outputs
        self.assertEqual([tensor.name for tensor in listed], ["OUTPUT__0"])

    def test_every_model_in_an_ensemble(self):
        for model, (inputs, outputs) in self.interfaces.items():
            with self.subTest(model=model):
                values = list(outputs.values())
                self.check_interface("ensemble_" + model, [f"I{i}" for i in range(len(inputs))], values,
                                     [f"O{i}" for i in range(len(values))])

    def test_places_that_no_name_has_taken(self):
        """Inputs accept INPUT__ and their number, and the only output of an ONNX file accepts OUTPUT__0."""
        one = torch.ones(3).numpy().tobytes()
        for model in ("script_one", "program_one", "onnx_one", "onnx_one_shadowed"):
            answer = self.daemon.stub.ModelInfer(request(model, [("INPUT__0", "FP32", [3], one)], outputs=["OUTPUT__0"]))
            self.assertEqual(answer.outputs[0].name, "OUTPUT__0", model)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(torch.relu(x))


class Cast(Mlp):
    """Accepts any dtype."""

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x.float())


class Scaled(Mlp):
    """Also accepts bytes and integers, which become float32."""

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x / 255.0)


class EitherWay(Mlp):
    """Either a linear layer or a copy: any dtype works in one of the branches."""

    def forward(self, x: Tensor, flag: bool) -> Tensor:
        if flag:
            return self.a(x)
        return x * 1


class BothWays(Mlp):
    def forward(self, x: Tensor, flag: bool) -> Tensor:
        if flag:
            return self.a(x)
        return self.a(x + 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.bn, self.f = nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn(self.c(x)))
        return self.f(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class OneImage(nn.Module):
    """Without a batch: the rows of an image become the channels of a batch, were there one."""

    def __init__(self):
        super().__init__()
        self.c, self.f = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.f(self.c(x).mean([1, 2]))


class ChannelsLast(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.c(x.permute(0, 3, 1, 2))


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.f = nn.Embedding(10, 4), nn.Linear(4, 2)

    def forward(self, ids: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        return self.f(self.e(ids).mean(1))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn, self.ln = nn.BatchNorm1d(3), nn.LayerNorm(7)

    def forward(self, x: Tensor, y: Tensor) -> Dict[str, Tensor]:
        return {"x": self.bn(x), "y": self.ln(y)}


class Replaced(Ids):
    """The first value of x is not the one that is returned."""

    def forward(self, ids: Tensor) -> Dict[str, Tensor]:
        table = self.e(ids)
        out = {"x": ids, "ids": ids + 1}
        out["x"] = table
        return out


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


class Branches(Ids):
    """A pair that the graph does not make in one place, and None, which is not an output."""

    def forward(self, ids: Tensor, flag: bool) -> Tuple[None, Tensor, Pair]:
        if flag:
            pair = Pair(ids, ids)
        else:
            pair = Pair(ids + 1, ids)
        return None, self.e(ids), pair


class Plain(nn.Module):
    def forward(self, words: List[List[str]], sizes: List[int], scale: float) -> Tensor:
        return torch.ones(len(words)) * scale * len(sizes)


STATED = {"mlp": Mlp, "cast": Cast, "scaled": Scaled, "either": EitherWay, "both": BothWays, "net": Net, "one_image": OneImage,
          "channels_last": ChannelsLast, "ids": Ids, "norms": Norms, "replaced": Replaced, "branches": Branches,
          "plain": Plain}


class StatedInputsTest(RestTest):
    """Types and dimensions of models that neither a configuration nor their file describes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, module in STATED.items():
            serve_models.save(module().eval(), cls.folder.name, name)
        traced = torch.jit.trace(Net().eval(), torch.rand(1, 3, 32, 32))
        os.makedirs(os.path.join(cls.folder.name, "traced", "1"))
        traced.save(os.path.join(cls.folder.name, "traced", "1", "model.pt"))
        cls.daemon = Daemon(cls.folder.name, "--allow-http", "true", "--http-port", "0")
        cls.host, cls.port = cls.daemon.ready["http"].rsplit(":", 1)

    def stated(self, model):
        """(datatype, shape) of inputs and of outputs; the configuration must agree."""
        metadata = self.get(f"/v2/models/{model}")
        config = self.daemon.stub.ModelConfig(pb.ModelConfigRequest(name=model)).config
        for tensors, listed in ((metadata["inputs"], config.input), (metadata["outputs"], config.output)):
            self.assertEqual([tensor["name"] for tensor in tensors], [tensor.name for tensor in listed])
            for tensor, one in zip(tensors, listed):
                known = one.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[one.data_type].name
                self.assertEqual(known, "TYPE_" + (tensor["datatype"] or "INVALID").replace("BYTES", "STRING"))
                if tensor["shape"] != [-1]:
                    self.assertEqual(list(one.dims), tensor["shape"])
        return [[(tensor["datatype"], tensor["shape"]) for tensor in metadata[kind]] for kind in ("inputs", "outputs")]

    def infer_zeros(self, model, *inputs):
        """`inputs`: name, datatype, shape."""
        sizes = {"FP32": 4, "INT64": 8, "INT32": 4, "UINT8": 1, "FP64": 8, "FP16": 2}
        return self.daemon.stub.ModelInfer(request(model, [
            (name, datatype, shape, bytes(int(torch.tensor(shape).prod()) * sizes[datatype])) for name, datatype, shape in inputs]))

    def test_before_any_request(self):
        """Only what the graph determines. This test runs first: later ones let the models learn from requests."""
        unknown = ("", [-1])
        for model, wanted in {
                "mlp": [("FP32", [-1])], "cast": [unknown], "scaled": [unknown], "either": [unknown, ("BOOL", [1])],
                "both": [("FP32", [-1]), ("BOOL", [1])], "net": [("FP32", [-1, 3, -1, -1])],
                "traced": [("FP32", [-1, 3, -1, -1])], "one_image": [("FP32", [-1])],
                "channels_last": [("FP32", [-1, -1, -1, 3])], "norms": [("FP32", [-1]), ("FP32", [-1])], "ids": [("INT64", [-1]), unknown],
                "plain": [("BYTES", [-1, -1]), ("INT64", [-1]), ("FP64", [1])]}.items():
            with self.subTest(model=model):
                self.assertEqual(self.stated(model)[0], wanted)
        # Those of the results follow, where all that they are made of is known.
        for model, wanted in {
                "mlp": [("FP32", [-1])], "cast": [("FP32", [-1])], "scaled": [("FP32", [-1])], "either": [unknown],
                "both": [("FP32", [-1])], "one_image": [("FP32", [-1])],
                "net": [("FP32", [-1, 5])], "traced": [("FP32", [-1, 5])], "channels_last": [("FP32", [-1, 8, -1, -1])],
                "ids": [("FP32", [-1])], "norms": [("FP32", [-1]), ("FP32", [-1])], "plain": [unknown], "branches": [unknown] * 3,
                "replaced": [("FP32", [-1]), ("INT64", [-1])]}.items():
            with self.subTest(model=model):
                self.assertEqual(self.stated(model)[1], wanted)
        for model, names in {"norms": ["x", "y"], "replaced": ["x", "ids"]}.items():
            self.assertEqual([tensor["name"] for tensor in self.get(f"/v2/models/{model}")["outputs"]], names)

    def test_the_first_answer_teaches_the_rest(self):
        for model, ask, inputs, outputs in (
                ("mlp", [("x", "FP32", [2, 4])], [("FP32", [-1, 4])], [("FP32", [-1, -1])]),
                ("cast", [("x", "INT32", [1, 2, 4])], [("INT32", [-1, -1, 4])], [("FP32", [-1, -1, -1])]),
                ("one_image", [("x", "FP32", [3, 9, 9])], [("FP32", [3, -1, -1])], [("FP32", [-1])]),
                ("norms", [("x", "FP32", [2, 3]), ("y", "FP32", [7])], [("FP32", [-1, 3]), ("FP32", [7])],
                 [("FP32", [-1, -1]), ("FP32", [-1])])):
            with self.subTest(model=model):
                self.infer_zeros(model, *ask)
                self.assertEqual(self.stated(model), [inputs, outputs])
        # The learned shape stays, and does not restrict what is accepted.
        self.infer_zeros("cast", ("x", "UINT8", [4]))
        self.assertEqual(self.stated("cast")[0], [("INT32", [-1, -1, 4])])

    def test_what_is_stated_is_no_refusal(self):
        self.infer_zeros("ids", ("ids", "INT32", [1, 3]))
        self.assertEqual(self.stated("ids")[0][0], ("INT64", [-1, -1]))
        self.infer_zeros("net", ("x", "FP32", [1, 3, 8, 8]))
        for datatype in ("FP64", "UINT8", "INT64", "FP16"):
            self.infer_zeros("cast", ("x", datatype, [3, 4]))
        for datatype in ("UINT8", "INT64", "FP32"):
            self.infer_zeros("scaled", ("x", datatype, [3, 4]))


if __name__ == "__main__":
    unittest.main()
