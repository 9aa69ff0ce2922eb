"""Ctrl-C in long work, in separate programs."""

import signal
import subprocess
import sys
import time

import pytest

PROGRAMS = {
    "one backward pass": """
x = engine.randn(300, 300, requires_grad=True)
y = x
for _ in range(400):
    y = (y @ x).tanh()
print("go", flush=True)
for _ in range(1000):
    y.sum().backward(retain_graph=True)
""",
    "gradients": """
x = engine.randn(200, 200, requires_grad=True)
y = x
for _ in range(3000):
    y = (y * 1.0).tanh()
print("go", flush=True)
while True:
    engine.autograd.grad(y.sum(), x, retain_graph=True)
""",
    "many operators": """
x = engine.randn(700, 700)
print("go", flush=True)
while True:
    x @ x.T
""",
    "a planned step": """
net = engine.nn.Linear(500, 500)
step = engine.plan_step(lambda v: net(v).sum())
x = engine.randn(500, 500)
print("go", flush=True)
while True:
    step(x)
""",
    "a store": """
from tensord.engine import distributed
store = distributed.TCPStore("127.0.0.1", 0, 1, True)
print("go", flush=True)
store.wait(["never"])
""",
    "a key of a store": """
from tensord.engine import distributed
store = distributed.HashStore()
print("go", flush=True)
store.get("never")
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c(name):
    begin = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nfrom tensord import engine\nengine.set_num_threads(1)\n"
    program = begin + PROGRAMS[name]
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "go\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT and error.strip().endswith("KeyboardInterrupt"), error


def test_signals_do_not_harm():
    """A signal during a product does not corrupt memory: its frame is on a separate stack."""
    program = """
import signal
from tensord import engine
engine.set_num_threads(1)
count = 0
def tick(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
x = engine.randn(300, 300, requires_grad=True)
for _ in range(30):
    ((x @ x) @ x.T).sum().backward()
signal.setitimer(signal.ITIMER_REAL, 0)
assert count > 5 and bool(x.grad.isfinite().all())
print("fine")
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert made.stdout == "fine\n", made.stderr[-2000:]


def test_waits_still_end():
    from tensord import engine
    from tensord.engine import distributed

    store = distributed.HashStore()
    with pytest.raises(engine.DeadlineExceededError, match="wait timeout after 300ms, keys: a, b"):
        store.wait(["a", "b"], 0.3)
    store.set("a", b"1")
    store.wait(["a"])
    assert store.get("a") == b"1"
