"""PyTorch's side, over gloo: the commands and output of ddp_bench.cpp."""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist


def times_of(seconds, step):
    for _ in range(3):
        step()
    start = time.perf_counter()
    step()
    count = torch.tensor(min(2000, max(3, int(seconds / (time.perf_counter() - start)))))
    dist.broadcast(count, 0)
    times = []
    for _ in range(int(count)):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def all_reduce(seconds, sizes):
    out = {}
    for size in sizes:
        tensor = torch.zeros(int(size) // 4)
        out[size] = statistics.median(times_of(seconds, lambda tensor=tensor: dist.all_reduce(tensor)))
    return out


def steps(seconds, folder):
    from tests.bench.training import models

    row = next(row for row in models.ROWS if row.name == open(f"{folder}/row").read())
    model = row.model().train()
    model.load_state_dict(torch.load(f"{folder}/weights.pt"))
    batch = torch.load(f"{folder}/batch-{dist.get_rank()}.pt")

    class Step(torch.nn.Module):
        """DDP requires that its own forward is called."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return self.model.training_step(*inputs)

    ddp = torch.nn.parallel.DistributedDataParallel(Step(), broadcast_buffers=False)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.001, momentum=0.9)
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = ddp(*batch)
        loss.backward()
        optimizer.step()
        if len(losses) < 4:
            losses.append(loss.item())

    return {"median_ms": statistics.median(times_of(seconds, step)), "losses": losses}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    command, seconds, *rest = sys.argv[1:]
    result = all_reduce(float(seconds), rest) if command == "all_reduce" else steps(float(seconds), rest[0])
    if os.environ["RANK"] == "0":
        print(json.dumps(result), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
