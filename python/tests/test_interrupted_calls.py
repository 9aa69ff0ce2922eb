"""Ctrl-C in one long call, in separate programs: the call ends, and the engine works afterwards."""

import signal
import subprocess
import sys
import time

import pytest

from tensord.engine import distributed as dist

BEGIN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from tensord import engine
from tensord.engine.nn import functional as F
engine.set_num_threads(int(sys.argv[1]))
def usable():
    x = engine.ones(1 << 16).exp().sum() + (engine.ones(40, 40) @ engine.ones(40, 40)).sum() + engine.ones(1 << 20).sort().values.sum()
    assert abs(x.item() - 178145.28 - 64000 - (1 << 20)) < 100, x
"""

# Calls that would take half a minute or more, made once the program has printed "go".
LONG = {
    "element-wise": ("x = engine.rand(1 << 20, 1, dtype=engine.float64) + 5", "engine.igamma(x, x.expand(1 << 20, 60) + 1.0)"),
    "integer matmul": ("x = engine.ones(5000, 5000, dtype=engine.int64)", "x @ x"),
    "float64 matmul": ("x = engine.ones(7500, 7500, dtype=engine.float64)", "x @ x"),
    "convolution": ("x, w = (engine.ones(*sizes, dtype=engine.float64) for sizes in ((16, 512, 64, 64), (512, 512, 5, 5)))", "F.conv2d(x, w)"),
    "sort": ("x = engine.rand(1 << 26)", "x.sort()"),
    "linear algebra": ("x = engine.rand(1, 60, 60).expand(40000, 60, 60)", "engine.linalg.eigvals(x)"),
    "jacobian": ("x = engine.ones(30000)", "engine.autograd.functional.jacobian(lambda v: (v * 2).cumsum(0), x)"),
}


def run(program: str, threads: int):
    """Sends SIGINT soon after the program prints "go"; returns its output and its errors."""
    process = subprocess.Popen([sys.executable, "-c", BEGIN + program, str(threads)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "go\n", process.stderr.read()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=300)
        return out, error[-2000:]
    finally:
        process.kill()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_long_calls(name, threads):
    setup, call = LONG[name]
    out, error = run(f"""
{setup}
print("go", flush=True)
start = time.process_time()
try:
    {call}
except KeyboardInterrupt:
    assert time.process_time() - start < 10  # of half a minute or more, however busy the machine is
    usable()
    print("stopped")
""", threads)
    assert out == "stopped\n", error


# What is over sooner: it has not written all of its target when it is stopped, whatever time it took. A timer simulates Ctrl-C.
# At -1.5 digamma takes a second; at its poles it would be done before the timer.
TIMED = """
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
for seconds in (0.02, 0.05, 0.1):
    target = engine.full((1 << 25,), -1.5)
    version = target._version
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        {call}
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    if target[-1].item() == -1.5:
        assert target._version > version
        break
else:
    raise AssertionError("it was not stopped")
usable()
print("stopped")
"""
WRITES = {
    "out": ("x = engine.rand(1 << 25) + 2", "engine.lgamma(x, out=target)"),
    "in place": ("", "target.digamma_()"),
    "scatter": ("x, i = engine.rand(1 << 25), engine.arange(1 << 25)", "target.scatter_add_(0, i, x)"),
    "put": ("x, i = engine.rand(1 << 25), engine.arange(1 << 25)", "target[i] = x"),
    "random": ("", "target.exponential_()"),
}


@pytest.mark.parametrize("name", WRITES)
def test_targets_are_half_written(name):
    setup, call = WRITES[name]
    made = subprocess.run([sys.executable, "-c", BEGIN + setup + TIMED.format(call=call), "1"], capture_output=True, text=True, timeout=300)
    assert made.stdout == "stopped\n", made.stderr[-2000:]


WAITS = {
    "init_process_group": 'distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=2)',
    "a file store": 'distributed.FileStore("/tmp/tensord_interrupted_" + str(os.getpid()), 2).get("never")',
    "a store of two": 'distributed.TCPStore("127.0.0.1", 0, 2, True)',
    "a store that is not there": 'distributed.TCPStore("127.0.0.1", 1, 2, False)',
}


@pytest.mark.parametrize("name", WAITS)
def test_waits(name):
    if name == "init_process_group" and not dist.is_gloo_available():
        pytest.skip("this build has no Gloo")
    out, error = run(f"""
import os
from tensord.engine import distributed
print("go", flush=True)
try:
    {WAITS[name]}
except KeyboardInterrupt:
    usable()
    print("stopped")
""", 1)
    assert out == "stopped\n", error


def test_a_handler_that_raises_nothing():
    """The call continues."""
    out, error = run("""
count = 0
def note(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, note)
x = engine.rand(1 << 22) + 2
want = x.lgamma()
print("go", flush=True)
while not count:
    assert bool((x.lgamma() == want).all())
print("went on", count)
""", 2)
    assert out == "went on 1\n", error
