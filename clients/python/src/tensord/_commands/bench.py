"""bench"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any, Dict, List

import numpy as np

from tensord._commands.connect import add_command, connect, print_json, print_table
from tensord._commands.infer import read_inputs
from tensord.client import Client
from tensord.errors import InvalidArgumentError, TensordError


def add_to(commands: Any) -> None:
    command = add_command(commands, "bench", bench, "Measure a served model from here: latency and requests a second")
    command.add_argument("model")
    command.add_argument("--input", action="append", default=[], metavar="[NAME=]VALUE",
                         help="as of infer; default: random values of the model's shapes; dynamic sizes become 1")
    command.add_argument("--version", dest="model_version", default="", help="a number, or a label")
    command.add_argument("--clients", default="1", help="requests at the same time; several numbers with commas (1)")
    command.add_argument("--seconds", type=float, default=3.0, help="time to measure, for each number (%(default)s)")
    command.add_argument("--warmup", type=int, default=10, help="requests before that (%(default)s)")


def bench(given: argparse.Namespace) -> int:
    try:
        counts = [int(part) for part in given.clients.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise InvalidArgumentError(f"--clients: numbers above 0 with commas between them, got '{given.clients}'")
    with connect(given) as client:
        inputs = read_inputs(given, client, random_rest=not given.input)
        for _ in range(given.warmup):
            client.infer(given.model, *inputs, version=given.model_version)
        rows = [measure(client, given, inputs, count) for count in counts]
    if given.json:
        for row in rows:
            print_json({"model": given.model, **row})
    else:
        print_table(["CLIENTS", "REQUESTS/S", "MEDIAN MS", "P99 MS"],
                    [[f"{row['clients']}", f"{row['requests_per_second']:.1f}", f"{row['median_ms']:.3f}",
                      f"{row['p99_ms']:.3f}"] for row in rows])
    return 0


def measure(client: Client, given: argparse.Namespace, inputs: Any, count: int) -> Dict[str, Any]:
    """Measures with `count` threads, each with one request at a time."""
    times_s: List[float] = []
    failures: List[TensordError] = []
    end = time.perf_counter() + given.seconds

    def ask() -> None:
        own = []
        try:
            while time.perf_counter() < end and not failures:
                start = time.perf_counter()
                client.infer(given.model, *inputs, version=given.model_version)
                own.append(time.perf_counter() - start)
        except TensordError as error:
            failures.append(error)
        times_s.extend(own)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - begin
    if failures:
        raise failures[0]
    return {"clients": count, "requests": len(times_s), "requests_per_second": len(times_s) / elapsed,
            "median_ms": float(np.median(times_s)) * 1e3, "p99_ms": float(np.quantile(times_s, 0.99)) * 1e3}
