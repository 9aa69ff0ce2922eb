"""Starts the peers of one configuration and runs them in turns."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
import torch

from tests.bench.cpu_inference import files

OURS = "tensord"
PEERS = ["PyTorch", "ONNX Runtime", "OpenVINO"]


@dataclasses.dataclass
class Result:
    row: object
    threads: int
    batch: int
    bursts: dict  # name → the results of each burst, one a round
    error: dict  # name → largest absolute difference to eager PyTorch
    failures: dict  # name → first line of its error
    speed: dict  # of tensord: operations of a run, peak of the machine, time by call

    def rounds(self, name: str, clock: str) -> list:
        return [burst[clock]["median"] for burst in self.bursts[name]]

    def ms(self, name: str, clock: str, best: bool) -> float:
        """Median of the bursts' medians, or the fastest cycle of all."""
        if best:
            return min(burst[clock]["best"] for burst in self.bursts[name])
        return statistics.median(self.rounds(name, clock))

    def best_peer(self, clock: str, best: bool):
        peers = [name for name in PEERS if name in self.bursts]
        return min(peers, key=lambda name: self.ms(name, clock, best)) if peers and OURS in self.bursts else None

    def ratio(self, name: str, other: str, clock: str, best: bool) -> float:
        """The ratio of two times: the median over rounds, or of the fastest cycles."""
        if best:
            return self.ms(name, clock, True) / self.ms(other, clock, True)
        return statistics.median(a / b for a, b in zip(self.rounds(name, clock), self.rounds(other, clock)))

    def to_json(self) -> dict:
        return {"model": self.row.name, "threads": self.threads, "batch": self.batch,
                "aim": self.row.aim_at(self.batch), "bursts_ms": self.bursts, "error": self.error,
                "failures": self.failures, "speed": self.speed}

    def shortest_ms(self) -> float:
        """The time of the operations at the machine's peak."""
        return self.speed["flops"] / self.speed["peak_gflops"] / 1e6


class Failure(Exception):
    pass


def environment(threads: int) -> dict:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **{name: str(threads) for name in names}}


class Peer:
    def __init__(self, name: str, row, threads: int, folder: pathlib.Path):
        self.log = open(folder / f"{name}.log", "w+", encoding="utf-8")
        command = [sys.executable, "-m", "tests.bench.cpu_inference.worker", name, str(folder), str(threads),
                   ",".join(row.input_names)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, env=environment(threads))

    def ask(self, command: str) -> dict:
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.log.seek(0)
            raise Failure(last_line(self.log.read()))
        return json.loads(line)

    def answers(self, path: pathlib.Path, count: int) -> dict:
        self.ask(f"answers {path}")
        with numpy.load(path) as file:
            return {i: [file[name] for name in file.files if name.startswith(f"{i}.")]
                    for i in files.checked_requests(count)}

    def burst(self, seconds: float) -> dict:
        return self.ask(f"burst {seconds}")

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


class Ours:
    """A process for every burst: `tensord bench` loads, plans and warms up before it measures."""

    def __init__(self, binary: str, flags: list, threads: int, folder: pathlib.Path, requests: list):
        self.model = str(folder / "model.pt")
        self.binary, self.threads, self.requests = binary, threads, requests
        self.flags = ["--threads", str(threads), *flags]

    def call(self, *arguments) -> str:
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, env=environment(self.threads))
        if done.returncode != 0:
            raise Failure(last_line(done.stderr))
        return done.stdout

    def answers(self, path: pathlib.Path, count: int) -> dict:
        checked = files.checked_requests(count)
        calls = [f"--call=forward,{self.requests[i]},{path}.{i}" for i in checked]
        self.call("run", self.model, *self.flags, *calls)
        return {i: [x.numpy() for x in files.flat(torch.load(f"{path}.{i}"))] for i in checked}

    def bench(self, seconds: float, *more) -> dict:
        sets = [f"--args={path}" for path in self.requests]
        return json.loads(self.call("bench", self.model, *self.flags, *sets, "--seconds", str(seconds), "--json", *more))

    def speed(self, seconds: float) -> dict:
        report = self.bench(seconds)
        return {name: report[name] for name in ("flops", "peak_gflops", "ops", "arena_bytes", "packed_bytes")}

    def burst(self, seconds: float) -> dict:
        start = os.times()
        report = self.bench(seconds, "--latency-only")
        end = os.times()
        cpu = end.children_user + end.children_system - start.children_user - start.children_system
        return {"wall": {"median": report["cycle_ms"], "best": report["best_cycle_ms"]},
                "cpu": {"median": report["cycle_cpu_ms"], "best": report["best_cycle_cpu_ms"]}, "cpu_seconds": cpu}

    def stop(self) -> None:
        pass


def last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1][:200] if lines else "stopped without a word"


def busy_seconds() -> float:
    """CPU time used by all processes so far, and stolen by the host."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def largest_difference(answers: dict, expected: dict) -> float:
    out = 0.0
    for i, tensors in expected.items():
        if [x.shape for x in answers[i]] != [x.shape for x in tensors]:
            return float("inf")
        for got, want in zip(answers[i], tensors):
            difference = numpy.abs(got - want).max()
            out = max(out, float("inf") if numpy.isnan(difference) else float(difference))
    return out


def measured_burst(runner, seconds: float, quiet: float) -> dict:
    """Repeats a burst that other processes disturbed, up to five times."""
    for _ in range(5 if quiet else 1):
        start, busy = time.perf_counter(), busy_seconds()
        result = runner.burst(seconds)
        elapsed = (time.perf_counter() - start) * os.cpu_count()
        result["others"] = round(max(0.0, (busy_seconds() - busy - result["cpu_seconds"]) / elapsed), 3)
        if not quiet or result["others"] <= quiet:
            break
    return result


def measure(row, threads: int, batch: int, options, folder: pathlib.Path, written: dict) -> Result:
    result = Result(row, threads, batch, {}, {}, {}, {})
    runners = {name: Peer(name, row, threads, folder) for name in options.peers}
    runners[OURS] = Ours(options.binary, options.tensord_flags, threads, folder, written["requests"])
    for precision in options.also:
        runners[f"{OURS} {precision}"] = Ours(options.binary, [*options.tensord_flags, "--precision", precision], threads,
                                              folder, written["requests"])
    stopped = []
    for name in list(runners):
        try:
            answers = runners[name].answers(folder / f"{name}.npz", len(written["requests"]))
            result.error[name] = largest_difference(answers, written["expected"])
        except Failure as failure:
            result.failures[name] = str(failure)
            stopped.append(runners.pop(name))
    names = list(runners)
    for turn in range(options.rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            burst = measured_burst(runners[name], options.seconds, options.quiet)
            result.bursts.setdefault(name, []).append(burst)
    if OURS in runners:
        result.speed = runners[OURS].speed(options.seconds)
    for runner in [*runners.values(), *stopped]:
        runner.stop()
    return result
