"""Writes TorchScript equivalents of Triton's example models, with the same names and shapes.

Usage: python3 -m examples.triton.make_models [FOLDER]    (default: the two repositories beside this file)
"""

import pathlib
import shutil
import sys
from typing import List, NamedTuple, Tuple

import torch
from torch import Tensor, nn

FOLDER = pathlib.Path(__file__).resolve().parent
LABELS = ["apple", "banana", "cherry", "date"]


class AddSub(nn.Module):
    """simple, simple_int8"""

    def forward(self, INPUT0: Tensor, INPUT1: Tensor) -> Tuple[Tensor, Tensor]:
        return INPUT0 + INPUT1, INPUT0 - INPUT1


class StringAddSub(nn.Module):
    """simple_string: numbers written as text."""

    def forward(self, INPUT0: List[List[str]], INPUT1: List[List[str]]) -> Tuple[List[List[str]], List[List[str]]]:
        sums: List[List[str]] = []
        differences: List[List[str]] = []
        for row0, row1 in zip(INPUT0, INPUT1):
            row_sums: List[str] = []
            row_differences: List[str] = []
            for text0, text1 in zip(row0, row1):
                row_sums.append(str(int(text0) + int(text1)))
                row_differences.append(str(int(text0) - int(text1)))
            sums.append(row_sums)
            differences.append(row_differences)
        return sums, differences


class StringIdentity(nn.Module):
    """simple_identity"""

    def forward(self, INPUT0: List[List[str]]) -> List[List[str]]:
        return INPUT0


class Sequence(nn.Module):
    """simple_sequence: the first request of a sequence gets 1 more."""

    def forward(self, INPUT: Tensor, START: Tensor, READY: Tensor) -> Tensor:
        return (INPUT + START) * READY


class DynaSequence(nn.Module):
    """simple_dyna_sequence: also adds the sequence's id to the last one."""

    def forward(self, INPUT: Tensor, START: Tensor, END: Tensor, READY: Tensor, CORRID: Tensor) -> Tensor:
        return ((INPUT + START + END * CORRID) * READY).to(torch.int32)


class Totals(NamedTuple):
    OUTPUT: Tensor
    SUM_OUT: Tensor


class StringDynaSequence(nn.Module):
    """simple_string_dyna_sequence: sums up, and adds the number in the sequence's id to the last sum."""

    def forward(self, INPUT: Tensor, START: Tensor, END: Tensor, READY: Tensor, CORRID: List[List[str]],
                SUM: Tensor) -> Totals:
        total = SUM * (1 - START) + INPUT
        ids = torch.zeros_like(INPUT)
        for i, row in enumerate(CORRID):
            if int(END[i, 0]) != 0:
                ids[i] = int(row[0])
        return Totals((total + ids) * READY, total)


class Identity(nn.Module):
    def forward(self, INPUT0: Tensor) -> Tensor:
        return INPUT0


class Repeat(nn.Module):
    """repeat_int32: a response for each element. A script cannot wait, so DELAY and WAIT have no effect."""

    def forward(self, IN: Tensor, DELAY: Tensor, WAIT: Tensor) -> List[Tuple[Tensor, Tensor]]:
        answers: List[Tuple[Tensor, Tensor]] = []
        for i in range(IN.size(0)):
            answers.append((IN[i:i + 1], torch.tensor([i], dtype=torch.int32)))
        return answers


class Square(nn.Module):
    """square_int32: the number n, n times."""

    def forward(self, IN: Tensor) -> List[Tensor]:
        answers: List[Tensor] = []
        for _ in range(int(IN[0])):
            answers.append(IN)
        return answers


def tensors(kind, *rows):
    items = ", ".join(f'{{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ]{more} }}'
                      for name, datatype, dims, more in ((*row, "")[:4] for row in rows))
    return f"{kind} [ {items} ]\n"


def add_sub_config(datatype):
    return ("max_batch_size: 8\n" + tensors("input", ("INPUT0", datatype, 16), ("INPUT1", datatype, 16)) +
            tensors("output", ("OUTPUT0", datatype, 16), ("OUTPUT1", datatype, 16)))


def flag(name, kind):
    return f'    {{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} int32_false_true: [ 0, 1 ] }} ] }}'


def sequence_config(controls, strategy="", more=""):
    return ("max_batch_size: 8\nsequence_batching {\n" + strategy + "  control_input [\n" + ",\n".join(controls) +
            "\n  ]\n" + more + "}\n" + tensors("input", ("INPUT", "INT32", 1)) + tensors("output", ("OUTPUT", "INT32", 1)))


OLDEST = """  max_sequence_idle_microseconds: 10000000
  oldest { max_candidate_sequences: 1024 max_queue_delay_microseconds: 10000 }
"""
FLAGS = [flag("START", "START"), flag("END", "END"), flag("READY", "READY")]


def correlation_id(datatype):
    return f'    {{ name: "CORRID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{datatype} }} ] }}'


SUM_STATE = """  state [ {
    input_name: "SUM" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true }
  } ]
"""

# The models of Triton's docs/examples/model_repository; a client that counts them finds eight.
MODELS = {
    "simple": (AddSub, add_sub_config("INT32")),
    "simple_int8": (AddSub, add_sub_config("INT8")),
    "simple_string": (StringAddSub, add_sub_config("STRING")),
    "simple_identity": (StringIdentity, "max_batch_size: 8\n" + tensors("input", ("INPUT0", "STRING", -1)) +
                        tensors("output", ("OUTPUT0", "STRING", -1))),
    "simple_sequence": (Sequence, sequence_config([flag("START", "START"), flag("READY", "READY")])),
    "simple_dyna_sequence": (DynaSequence, sequence_config(FLAGS + [correlation_id("UINT64")], OLDEST)),
    "simple_string_dyna_sequence": (StringDynaSequence,
                                    sequence_config(FLAGS + [correlation_id("STRING")], OLDEST, SUM_STATE)),
    "labelled_identity": (Identity, "max_batch_size: 8\ndynamic_batching { }\n" +
                          tensors("input", ("INPUT0", "FP32", len(LABELS))) +
                          tensors("output", ("OUTPUT0", "FP32", len(LABELS), ' label_filename: "labels.txt"'))),
}

ENSEMBLE = "max_batch_size: 8\n" + tensors("input", ("INPUT0", "INT32", 16), ("INPUT1", "INT32", 16)) + tensors(
    "output", ("OUTPUT0", "INT32", 16), ("OUTPUT1", "INT32", 16)) + """ensemble_scheduling {
  step [
    {
      model_name: "simple" model_version: -1
      input_map { key: "INPUT0" value: "INPUT0" }
      input_map { key: "INPUT1" value: "INPUT1" }
      output_map { key: "OUTPUT0" value: "sum" }
      output_map { key: "OUTPUT1" value: "difference" }
    },
    {
      model_name: "simple" model_version: -1
      input_map { key: "INPUT0" value: "sum" }
      input_map { key: "INPUT1" value: "difference" }
      output_map { key: "OUTPUT0" value: "OUTPUT0" }
      output_map { key: "OUTPUT1" value: "OUTPUT1" }
    }
  ]
}
"""

# Models of Triton's other documents: decoupled responses, ensembles, no batch dimension.
MORE_MODELS = {
    "repeat_int32": (Repeat, "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" +
                     tensors("input", ("IN", "INT32", -1), ("DELAY", "UINT32", -1), ("WAIT", "UINT32", 1)) +
                     tensors("output", ("OUT", "INT32", 1), ("IDX", "INT32", 1))),
    "square_int32": (Square, "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" +
                     tensors("input", ("IN", "INT32", 1)) + tensors("output", ("OUT", "INT32", 1))),
    "identity_fp32": (Identity, "max_batch_size: 0\n" + tensors("input", ("INPUT0", "FP32", "-1, -1")) +
                      tensors("output", ("OUTPUT0", "FP32", "-1, -1"))),
    "simple_ensemble": (None, ENSEMBLE),
}


def write(models, folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name, (module, config) in models.items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        platform = "pytorch_libtorch" if module else "ensemble"
        (folder / name / "config.pbtxt").write_text(f'name: "{name}"\nplatform: "{platform}"\n{config}')
        if module:
            torch.jit.script(module().eval()).save(version / "model.pt")
        else:
            (version / ".keep").touch()  # git does not store empty folders


def make_models(folder):
    write(MODELS, folder / "model_repository")
    write(MORE_MODELS, folder / "more_models")
    labels = folder / "model_repository" / "labelled_identity" / "labels.txt"
    labels.write_text("\n".join(LABELS) + "\n")


if __name__ == "__main__":
    make_models(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
