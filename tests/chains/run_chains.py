"""Serves chains that make_chains wrote and compares every answer, bit by bit:

    TENSORD_BINARY=build/dev/server/tensord /usr/bin/python3 -m tests.chains.run_chains FOLDER
"""

import pathlib
import sys

import grpc
import torch

from tests.e2e.daemon import Daemon, pb, request


def message_of(call):
    inputs = [(name, "FP32", list(tensor.shape), tensor.numpy().tobytes()) for name, tensor in call["inputs"].items()]
    parameters = {}
    if call["sequence"]:
        number, is_start, is_end = call["sequence"]
        parameters = {"sequence_id": pb.InferParameter(int64_param=number),
                      "sequence_start": pb.InferParameter(bool_param=is_start),
                      "sequence_end": pb.InferParameter(bool_param=is_end)}
    return request(call["model"], inputs, parameters=parameters)


def tensors_of(response):
    return {output.name: torch.frombuffer(bytearray(raw), dtype=torch.float32).view(list(output.shape))
            for output, raw in zip(response.outputs, response.raw_output_contents)}


def ask(stub, call):
    """The responses to one request; several if the model is decoupled."""
    answers = []
    for response in stub.ModelStreamInfer(iter([message_of(call)]), timeout=300):
        if response.error_message:
            raise RuntimeError(response.error_message)
        if response.infer_response.outputs:
            answers.append(tensors_of(response.infer_response))
    return answers


def difference(call, answers):
    expected = call["answers"]
    if len(answers) != len(expected):
        return f"{len(answers)} answers, expected {len(expected)}"
    for number, (got, wanted) in enumerate(zip(answers, expected)):
        if sorted(got) != sorted(wanted):
            return f"answer {number} has {sorted(got)}, expected {sorted(wanted)}"
        for name, tensor in wanted.items():
            if not torch.equal(got[name], tensor):
                return f"answer {number}, {name}: {got[name].tolist()}, expected {tensor.tolist()}"
    return ""


def run(folder):
    """Failures, a line for each failed chain."""
    folder = pathlib.Path(folder)
    wrong = []
    with Daemon(str(folder / "repository"), "--strict-readiness", "false") as daemon:
        for name, calls in torch.load(folder / "calls.pt").items():
            for number, call in enumerate(calls):
                try:
                    found = difference(call, ask(daemon.stub, call))
                except (grpc.RpcError, RuntimeError) as error:
                    found = str(error)
                if found:
                    wrong.append(f"{name}, call {number} of {call['model']}: {found}")
                    break
    return wrong


def main():
    wrong = run(sys.argv[1])
    for line in wrong:
        print(line)
    print(f"{len(wrong)} chains are wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
