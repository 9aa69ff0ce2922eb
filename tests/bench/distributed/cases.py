"""The training case of both sides: a folder with a model, its weights and a batch for each rank."""

import pathlib

import torch

from tests.bench.training import models


def save(row, workers, folder) -> int:
    """Returns the size of the gradients in bytes."""
    folder = pathlib.Path(folder)
    torch.manual_seed(0)
    model = row.model()
    torch.save(model.state_dict(), folder / "weights.pt")
    for rank in range(workers):
        torch.save(row.batch(), folder / f"batch-{rank}.pt")
    (folder / "row").write_text(row.name)
    models.scripted(model).save(str(folder / "model.pt"))
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
