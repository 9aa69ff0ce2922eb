"""Saves the results of PyTorch's DistributedDataParallel on small models; ranks are processes over Gloo.

Usage: python3 -m tests.nn.make_ddp_cases OUTPUT_FILE
"""

import contextlib
import datetime
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

STEPS = 8


class Net(nn.Module):
    """The same module as in ddp_test.cpp."""

    def __init__(self, has_norm):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4) if has_norm else nn.Identity()
        self.head = nn.Linear(64, 3)
        self.side = nn.Linear(64, 3)

    def forward(self, x, uses_side: bool):
        h = torch.relu(self.norm(self.conv(x))).flatten(1)
        return self.head(h) + self.side(h) if uses_side else self.head(h)


# Options of a case, and their defaults.
DEFAULTS = {"world": 2, "norm": False, "unused": False, "no_sync": 1, "join": "", "view": False, "hook": "", "keeps": False,
            "static": False}
CASES = {
    "plain": {},
    "plain_of_three": {"world": 3},
    "norm": {"norm": True},
    "unused": {"unused": True, "world": 3},
    "unused_views": {"unused": True, "view": True},
    "no_sync": {"no_sync": 3},
    "no_sync_views": {"no_sync": 2, "view": True},
    "views": {"view": True, "world": 3},
    "views_kept": {"view": True, "keeps": True},
    "join": {"join": "all", "world": 3, "norm": True},
    "join_active": {"join": "active", "world": 3},
    "join_views": {"join": "all", "view": True},
    "fp16": {"hook": "fp16", "world": 3},
    # Uncompressed for two steps, then compressed; with one column, and with three.
    "powersgd": {"hook": "powersgd1"},
    "powersgd_3": {"hook": "powersgd3", "world": 3},
    "static": {"static": True, "world": 3},
    "static_views": {"static": True, "view": True},
}


def uses_side(case, step, rank):
    """Used by no rank in some steps, by one rank in others."""
    return not case["unused"] or (step + rank) % 4 == 1


def steps_of(case, rank):
    return STEPS - 2 * rank if case["join"] else STEPS


def train(rank, case, model, x, y):
    torch.manual_seed(rank)
    ddp = DistributedDataParallel(model, find_unused_parameters=case["unused"], gradient_as_bucket_view=case["view"],
                                  static_graph=case["static"])
    if case["hook"].startswith("powersgd"):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=int(case["hook"][-1]), start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    if case["hook"] == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = []
    join = contextlib.nullcontext()
    if case["join"]:
        join = ddp.join(divide_by_initial_world_size=case["join"] == "all")
    with join:
        for step in range(steps_of(case, rank)):
            syncs = step % case["no_sync"] == case["no_sync"] - 1
            with contextlib.nullcontext() if syncs else ddp.no_sync():
                loss = nn.functional.mse_loss(ddp(x[step], uses_side(case, step, rank)), y[step])
                loss.backward()
            losses.append(loss.item())
            if syncs:
                optimizer.step()
                optimizer.zero_grad(set_to_none=not case["keeps"])
    return losses, [t.detach().clone() for t in model.state_dict().values()]


def make_inputs(name, case):
    generator = torch.Generator().manual_seed(len(name))
    torch.manual_seed(3)
    start = Net(case["norm"]).state_dict()
    x = torch.randn([STEPS, case["world"], 4, 2, 4, 4], generator=generator)
    y = torch.randn([STEPS, case["world"], 4, 3], generator=generator)
    return start, x, y


def run_rank(rank, world, cases, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{world}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    for name, case in cases.items():
        start, x, y = make_inputs(name, case)
        model = Net(case["norm"])
        if rank == 0:  # the others receive it
            model.load_state_dict(start)
        torch.save(train(rank, case, model, x[:, rank], y[:, rank]), f"{folder}/{name}.{rank}")
    dist.barrier()
    dist.destroy_process_group()


def make_cases(world, folder):
    cases = {name: {**DEFAULTS, **options} for name, options in CASES.items()}
    cases = {name: case for name, case in cases.items() if case["world"] == world}
    torch.multiprocessing.spawn(run_rank, (world, cases, folder), world)
    out = []
    for name, case in cases.items():
        start, x, y = make_inputs(name, case)
        ranks = [torch.load(f"{folder}/{name}.{rank}") for rank in range(world)]
        out.append({**case, "name": name, "start": list(start.values()), "x": x, "y": y,
                    "losses": [losses for losses, _ in ranks], "end": [end for _, end in ranks]})
    return out


def make_sampler_cases():
    cases = []
    for size, world, seed in ((10, 4, 7), (12, 3, 0), (3, 4, 1), (7, 2, 5), (5, 1, 2)):
        for shuffle in (False, True):
            for drop_last in (False, True):
                for epoch in (0, 1, 5):
                    orders = []
                    for rank in range(world):
                        sampler = torch.utils.data.DistributedSampler(
                            range(size), world, rank, shuffle=shuffle, seed=seed, drop_last=drop_last)
                        sampler.set_epoch(epoch)
                        orders.append([int(i) for i in sampler])
                    cases.append({"size": size, "world": world, "seed": seed, "shuffle": shuffle,
                                  "drop_last": drop_last, "epoch": epoch, "orders": orders})
    return cases


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = make_cases(2, folder) + make_cases(3, folder)
    torch.save({"ddp": cases, "samplers": make_sampler_cases()}, sys.argv[1])


if __name__ == "__main__":
    main()
