"""engine.data compared with torch.utils.data; workers that fail, die and are interrupted."""

import collections
import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
import torch

from support import same
from tensord import engine
from tensord.engine import data

Pair = collections.namedtuple("Pair", "a b")


class Squares(data.Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return {"x": engine.full((3,), float(index)), "n": index, "half": index / 2, "array": numpy.arange(2), "text": str(index), "pair": Pair(index, [index])}

    def __len__(self):
        return self.count


class TorchSquares(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        return {"x": torch.full((3,), float(index)), "n": index, "half": index / 2, "array": torch.arange(2), "text": str(index), "pair": Pair(index, [index])}

    def __len__(self):
        return self.count


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle,drop_last", [(False, False), (True, True), (True, False)])
def test_batches_are_pytorchs(workers, shuffle, drop_last):
    torch.manual_seed(5), engine.manual_seed(5)
    theirs = torch.utils.data.DataLoader(TorchSquares(11), 3, shuffle, drop_last=drop_last)
    ours = data.DataLoader(Squares(11), 3, shuffle, drop_last=drop_last, num_workers=workers)
    assert len(ours) == len(theirs)
    for _ in range(2):  # the second pass draws another order
        batches = list(ours)
        wanted = list(theirs)
        assert len(batches) == len(wanted)
        for got, want in zip(batches, wanted):
            for key in ("x", "n", "half", "array"):
                same(got[key], want[key])
            assert got["text"] == want["text"] and type(got["pair"]) is Pair
            same(got["pair"].b[0], want["pair"].b[0])


def test_samplers_draw_what_pytorchs_draw():
    torch.manual_seed(1), engine.manual_seed(1)
    source = range(70)
    assert list(data.RandomSampler(source, True, 45)) == list(torch.utils.data.RandomSampler(source, True, 45))
    assert list(data.RandomSampler(source, num_samples=100)) == list(torch.utils.data.RandomSampler(source, num_samples=100))
    assert list(data.SubsetRandomSampler([3, 1, 8])) == list(torch.utils.data.SubsetRandomSampler([3, 1, 8]))
    weights = [0.1, 3.0, 0.5, 2.0]
    assert list(data.WeightedRandomSampler(weights, 9)) == list(torch.utils.data.WeightedRandomSampler(weights, 9))
    ours = data.random_split(range(10), [0.5, 0.3, 0.2])
    theirs = torch.utils.data.random_split(range(10), [5, 3, 2])
    assert [list(part) for part in ours] == [list(part) for part in theirs]
    with pytest.raises(ValueError, match="sum"):
        data.random_split(range(10), [3, 3])


def test_datasets():
    both = data.TensorDataset(engine.arange(4), engine.arange(4) * 2) + data.TensorDataset(engine.arange(2), engine.arange(2))
    assert len(both) == 6 and [item.tolist() for item in both[4]] == [0, 0] and both[-1][0].item() == 1
    with pytest.raises(IndexError):
        both[6]
    with pytest.raises(ValueError, match="rows"):
        data.TensorDataset(engine.ones(2), engine.ones(3))
    assert [x.tolist() for x, _ in data.DataLoader(both, 4)] == [[0, 1, 2, 3], [0, 1]]


class Counting(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(start, 10, step))


@pytest.mark.parametrize("workers", [0, 3])
def test_iterable_datasets(workers):
    seen = [number for batch in data.DataLoader(Counting(), 2, num_workers=workers) for number in batch.tolist()]
    assert sorted(seen) == list(range(10))
    assert sorted(data.DataLoader(Counting(), None, num_workers=workers)) == list(range(10))


def test_batches_of_workers_are_shared_memory_that_can_be_written():
    for batch in data.DataLoader(data.TensorDataset(engine.rand(6, 1000)), 3, num_workers=1):
        (x,) = batch
        assert x.data_ptr() % 64 == 0
        x += 1
        assert x.min() >= 1
    kept = [batch[0] for batch in data.DataLoader(data.TensorDataset(engine.arange(4)), 2, num_workers=2)]
    assert [x.tolist() for x in kept] == [[0, 1], [2, 3]]  # after the workers have ended


class Failing(Squares):
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("sample five is broken")
        return index


def test_errors_of_workers_reach_the_caller():
    loader = data.DataLoader(Failing(8), 2, num_workers=2)
    seen = []
    with pytest.raises(KeyError, match="worker process [01].*sample five is broken") as caught:
        for batch in loader:
            seen.append(batch.tolist())
    assert seen == [[0, 1], [2, 3]] and "__getitem__" in str(caught.value)

    def broken_start(worker):
        raise ValueError("no start")

    with pytest.raises(ValueError, match="no start"):
        list(data.DataLoader(Squares(4), num_workers=1, worker_init_fn=broken_start))
    with pytest.raises((AttributeError, TypeError), match="worker process"):
        list(data.DataLoader(Squares(4), num_workers=1, collate_fn=lambda batch: lambda: batch))


class Dying(Squares):
    def __getitem__(self, index):
        if index == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Slow(Squares):
    def __getitem__(self, index):
        time.sleep(60)


def test_a_killed_worker_is_an_error_and_no_hang():
    with pytest.raises(RuntimeError, match=r"worker \(pid \d+\) was killed by signal 9"):
        list(data.DataLoader(Dying(40), 1, num_workers=2))
    with pytest.raises(RuntimeError, match="timed out"):
        list(data.DataLoader(Slow(4), 1, num_workers=1, timeout=0.2))


def test_an_abandoned_pass_and_persistent_workers():
    loader = data.DataLoader(Squares(100), 2, num_workers=2)
    for _ in loader:
        break
    first = next(iter(loader))
    assert first["n"].tolist() == [0, 1]

    class Pid(Squares):
        def __getitem__(self, index):
            return os.getpid()

    loader = data.DataLoader(Pid(8), 1, num_workers=2, persistent_workers=True)
    passes = [{int(pid) for pid in loader} for _ in range(2)]
    assert passes[0] == passes[1] and len(passes[0]) == 2


def test_workers_draw_different_numbers():
    class Random(Squares):
        def __getitem__(self, index):
            return engine.rand(1)

    first = engine.cat(list(data.DataLoader(Random(4), 1, num_workers=2)))
    assert len(set(first.flatten().tolist())) == 4


PROGRAM = """
import os, time
from tensord.engine import data
class Slow(data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, index):
        os.write(1, b"started\\n")
        time.sleep(600)
try:
    list(data.DataLoader(Slow(), num_workers=2))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_ends_the_workers(number):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "started\n"
    assert process.stdout.readline() == "started\n"
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
        assert "interrupted" in process.communicate(timeout=60)[0]
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    else:
        process.kill()
        process.wait()
        os.killpg(process.pid, signal.SIGKILL)  # sleeping workers: a computing one ends when nobody receives its results


def test_a_signal_that_another_thread_takes_is_seen():
    program = "import signal, threading\n" + PROGRAM.replace("try:\n", """
def interrupt():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the waiting thread's poll goes on
threading.Thread(target=interrupt).start()
try:
""")
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60)
    assert "interrupted" in process.stdout


def test_wrong_settings_are_refused():
    for wrong in ({"num_workers": -1}, {"timeout": 1}, {"batch_size": 0}, {"prefetch_factor": 2}, {"batch_size": None, "drop_last": True},
                  {"shuffle": True, "sampler": [1]}, {"batch_sampler": [[1]], "batch_size": 2}):
        with pytest.raises(ValueError):
            data.DataLoader(Squares(3), **wrong)
    with pytest.raises(ValueError, match="order"):
        data.DataLoader(Counting(), shuffle=True)
