"""Calls the two example models over gRPC and shows results, latency and the metrics that changed.

Usage: python3 -m examples.demo GRPC_ADDRESS METRICS_ADDRESS   (scripts/demo calls it)
"""

import re
import statistics
import sys
import time
import urllib.request

import grpc
import numpy as np

import inference_pb2
import inference_pb2_grpc
from examples.sentences import LANGUAGES, encode
from examples.shapes import SHAPES, draw

DATATYPES = {"float32": "FP32", "int64": "INT64"}


def infer(stub, model: str, inputs: dict) -> np.ndarray:
    """One ModelInfer call with raw contents; returns the first output."""
    request = inference_pb2.ModelInferRequest(model_name=model)
    for name, array in inputs.items():
        request.inputs.add(name=name, datatype=DATATYPES[str(array.dtype)], shape=array.shape)
        request.raw_input_contents.append(array.tobytes())
    response = stub.ModelInfer(request)
    return np.frombuffer(response.raw_output_contents[0], np.float32).reshape(response.outputs[0].shape)


def ascii_art(image: np.ndarray) -> str:
    """Every second row and column of an image as characters."""
    return "\n".join("    " + "".join(" .:*#"[min(4, int(v * 5))] * 2 for v in row[::2]) for row in image[::2])


def latency(stub, model: str, inputs: dict, calls: int = 200) -> str:
    times_ms = []
    for _ in range(calls):
        start = time.perf_counter()
        infer(stub, model, inputs)
        times_ms.append((time.perf_counter() - start) * 1e3)
    times_ms.sort()
    return f"{calls} calls: median {statistics.median(times_ms):.2f} ms, p99 {times_ms[int(calls * 0.99)]:.2f} ms"


def metrics(address: str) -> dict:
    exposition = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    samples = re.findall(r"^([a-zA-Z_:][^ ]*) ([0-9.eE+-]+)$", exposition, re.M)
    return {name: float(value) for name, value in samples if "_bucket{" not in name}


def show(title: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}")


def main() -> int:
    grpc_address, metrics_address = sys.argv[1:3]
    stub = inference_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(grpc_address))
    before, wrong = metrics(metrics_address), 0

    show("Vision: which shape is in the image? (model \"shapes\")")
    for number, shape in enumerate(SHAPES):
        image = np.array(draw(shape, seed=number), np.float32)
        scores = infer(stub, "shapes", {"image": image[None, None]})[0]
        if number == 0:
            print(ascii_art(image))
        wrong += SHAPES[scores.argmax()] != shape
        print(f"  drawn: {shape:9} answer: {SHAPES[scores.argmax()]:9} ({scores.max():.0%})")
    print("  " + latency(stub, "shapes", {"image": image[None, None]}))

    show("Text: which language is it? (model \"language\")")
    sentences = {"English": "where is the nearest station", "French": "où est la maison de mes amis",
             "German": "das Haus am Fluss war sehr schön", "Spanish": "los niños están en la calle"}
    for language, sentence in sentences.items():
        ids, mask = encode(sentence, 48)
        inputs = {"ids": np.array([ids], np.int64), "mask": np.array([mask], np.int64)}
        scores = infer(stub, "language", inputs)[0]
        wrong += LANGUAGES[scores.argmax()] != language
        print(f"  {sentence!r:38} answer: {LANGUAGES[scores.argmax()]} ({scores.max():.0%})")
    print("  " + latency(stub, "language", inputs))

    show("Metrics that moved")
    for name, value in metrics(metrics_address).items():
        if value != before.get(name, 0.0) and name.startswith("tensord_"):
            print(f"  {name}  {before.get(name, 0.0):g} -> {value:g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
