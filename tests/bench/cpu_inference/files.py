"""Writes the files that the workers read: archive, ONNX file, requests, and PyTorch's results."""

import pathlib

import numpy
import torch


def flat(result) -> list:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def checked_requests(count: int) -> list:
    """The requests whose results are compared."""
    return sorted({0, count // 2, count - 1})


def write(row, batch: int, folder: pathlib.Path) -> dict:
    """Writes model.pt, model.onnx, N.pt for each request, requests.npz; returns paths and expected results."""
    torch.manual_seed(0)
    model = row.model().eval()
    requests = row.inputs(batch)
    torch.jit.script(model).save(str(folder / "model.pt"))
    export(row, model, requests[0], folder / "model.onnx")
    arrays = {}
    for i, request in enumerate(requests):
        torch.save(request, folder / f"{i}.pt")
        arrays.update({f"{i}.{name}": tensor.numpy() for name, tensor in zip(row.input_names, request)})
    numpy.savez(folder / "requests.npz", **arrays)
    with torch.inference_mode():
        expected = {i: [x.numpy() for x in flat(model(*requests[i]))] for i in checked_requests(len(requests))}
    return {"requests": [str(folder / f"{i}.pt") for i in range(len(requests))], "expected": expected}


def export(row, model, request: tuple, path: pathlib.Path) -> None:
    # With gradients enabled, PyTorch's attention is exported as basic operators instead of its fused one.
    exported = row.exported(model) if row.exported else model
    axes = None if row.dynamic_axis is None else {name: {row.dynamic_axis: "n"} for name in row.input_names}
    torch.onnx.export(exported, request, str(path), opset_version=17, input_names=list(row.input_names),
                      dynamic_axes=axes)


def load_requests(path: str, names: list) -> list:
    with numpy.load(path) as file:
        count = len(file.files) // len(names)
        return [{name: file[f"{i}.{name}"] for name in names} for i in range(count)]
