import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from tensord import engine


@pytest.mark.parametrize("call,kind,start", [
    (lambda: engine.ones(2) + engine.ones(3), ValueError, "add"), (lambda: engine.ones(2) @ engine.ones(3), ValueError, "matmul"),
    (lambda: engine.ones(2, 3).view(5), ValueError, "view"), (lambda: engine.ones(2).select(0, 5), IndexError, "select"),
    (lambda: engine.cat([]), ValueError, "cat"), (lambda: engine.zeros(-1), ValueError, ""),
    (lambda: engine.zeros(2**50), MemoryError, ""),
])
def test_kinds(call, kind, start):
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, engine.Error) and isinstance(caught.value, RuntimeError)
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize("call,words", [
    (lambda: engine.add(1), r"add\(\)"), (lambda: engine.relu(engine.ones(1), 5), r"relu\(\): takes 1 positional argument.* 2 were given"),
    (lambda: engine.relu("x"), r"relu\(\): argument 'self' must be Tensor, not str"),
    (lambda: engine.relu(engine.ones(1), wrong=1), r"relu\(\): got an unexpected keyword argument 'wrong'"),
    (lambda: engine.relu(), r"relu\(\): missing argument 'self'"), (lambda: engine.ones(1).sum("x", y=2), r"sum\(\): no form takes \(.*Tensor, str, y=int\); there are:\n  sum\("),
    (lambda: engine.relu(engine.ones(1), self=engine.ones(1)), r"two values for argument 'self'"),
])
def test_wrong_arguments_are_type_errors(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_missing_files():
    with pytest.raises(FileNotFoundError):
        engine.load("/nowhere/model.pt")
    with pytest.raises(IsADirectoryError):
        engine.load("/tmp")


def run(program: str, **kwargs):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, **kwargs)


def test_threads_run_side_by_side():
    """Python runs while the engine computes, because the GIL is released."""
    x = engine.rand(1500, 1500)
    stop, ticks = threading.Event(), []

    def count():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    for _ in range(4):
        x @ x
    end = time.perf_counter()
    stop.set()
    thread.join()
    within = [tick for tick in ticks if begin < tick < end]
    gaps = [b - a for a, b in zip(within, within[1:])]
    assert len(within) > 5 and max(gaps) < (end - begin) / 2


def test_fork_after_use():
    """A forked process continues with one thread and does not wait for threads that it lacks."""
    x = engine.rand(600, 600)
    (x @ x).sum()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            (x @ x).sum().item()
            engine.rand(200000).exp()
            try:
                engine.set_num_threads(4)
            except RuntimeError:
                status = 0 if engine.get_num_threads() == 1 else 2
        finally:
            os._exit(status)
    deadline = time.time() + 60
    while time.time() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the forked process hangs")
    assert os.waitstatus_to_exitcode(status) == 0


def test_exit_with_tensors_alive():
    done = run("""
        from tensord import engine
        x = engine.ones(3, requires_grad=True)
        x.register_hook(lambda g: g)
        y = (x * 2).sum()
        import numpy
        keep = engine.from_numpy(numpy.ones(3)), engine.ones(3).__dlpack__(), engine.add
    """)
    assert done.returncode == 0 and done.stderr == ""


def test_import_is_short():
    """The import takes at most half of PyTorch's time in the same run, and does not import NumPy;
    tests/bench/engine_bench.py has figures."""
    program = "import time; a = time.perf_counter(); import {}; print(time.perf_counter() - a); import sys; print('numpy' in sys.modules)"
    seconds = {}
    for name in ("tensord.engine", "torch"):
        done = run(program.format(name))
        assert done.returncode == 0, done.stderr
        seconds[name], has_numpy = float(done.stdout.split()[0]), done.stdout.split()[1]
        assert name == "torch" or has_numpy == "False"
    assert seconds["tensord.engine"] < 0.5 * seconds["torch"]
