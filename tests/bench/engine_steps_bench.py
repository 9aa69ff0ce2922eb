"""Training steps of the engine in Python, compared with PyTorch: eager, planned (exact, fused) and with torch.compile, in one process and thread.

Usage: PYTHONPATH=build/dev/python build/pypi_torch/bin/python -m tests.bench.engine_steps_bench [--rounds N] [--no-compile]   (scripts/setup pypi_torch)
Prints a table in milliseconds per step (loss, gradients, SGD with momentum): the best of many rounds, in which all alternate.
"""

import argparse
import sys
import time

from tests.bench.machine import describe


def mlp(nn):
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)), (64, 256)


def resnet18(nn):
    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU()
            is_same = stride == 1 and inputs == outputs
            self.shortcut = nn.Identity() if is_same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if outputs == 64 else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)), (8, 3, 64, 64)


def encoder(nn):
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(32 * 128, 10)), (8, 32, 128)


def step_of(library, nn, optim, model, shape, wrap):
    """One whole training step; `wrap` makes the function of loss and gradients."""
    library.manual_seed(0)
    x, y = library.randn(*shape), library.randint(0, 10, (shape[0],))
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    gradients = wrap(lambda a, b: nn.functional.cross_entropy(model(a), b))

    def step():
        optimizer.zero_grad()
        loss = gradients(x, y)
        optimizer.step()
        return loss

    return step


def with_backward(loss):
    def run(x, y):
        result = loss(x, y)
        result.backward()
        return result.detach()
    return run


def best_in_turns(steps, rounds):
    for step in steps.values():
        for _ in range(6):
            step()
    times = {name: float("inf") for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            times[name] = min(times[name], time.perf_counter() - begin)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()
    import torch

    from tensord import engine
    from tensord.engine import nn, optim

    torch.set_num_threads(1)
    engine.set_num_threads(1)
    names = ["engine", "planned, exact", "planned, fused", "PyTorch"] + ([] if arguments.no_compile else ["torch.compile"])
    print(f"{describe()}, one thread; PyTorch {torch.__version__}, Python {sys.version.split()[0]}\n")
    print(f"| a step of | {' | '.join(names)} | eager / PyTorch | fused / PyTorch |\n|{'---|' * (len(names) + 3)}")
    for label, make in (("MLP 256-512-512-10, 64 rows", mlp), ("resnet18, 8 of 64×64", resnet18), ("encoder, 2 layers of 128, 8 of 32", encoder)):
        steps = {}
        for name in names:
            is_ours = name not in ("PyTorch", "torch.compile")
            library, module, optimizers = (engine, nn, optim) if is_ours else (torch, torch.nn, torch.optim)
            library.manual_seed(0)
            model, shape = make(module)
            wrap = with_backward
            if name.startswith("planned"):
                mode = name.split()[-1]
                wrap = lambda loss, model=model, mode=mode: engine.plan_step(loss, model, mode=mode)  # noqa: E731
            if name == "torch.compile":
                model = torch.compile(model)
            steps[name] = step_of(library, module, optimizers, model, shape, wrap)
        times = best_in_turns(steps, arguments.rounds)
        cells = [f"{times[name] * 1e3:.2f} ms" for name in names]
        ratios = [f"{times[name] / times['PyTorch']:.2f}" for name in ("engine", "planned, fused")]
        print(f"| {label} | {' | '.join(cells + ratios)} |", flush=True)


if __name__ == "__main__":
    main()
