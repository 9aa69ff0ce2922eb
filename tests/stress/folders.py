"""A polled repository with careless writers. Complete versions are served soon, incomplete ones never, and a
served model continues with its last good version."""

import io
import os
import shutil
import struct
import threading
import time

import grpc
import torch
from torch import Tensor, nn

from tests.e2e import processes
from tests.e2e.daemon import pb, request
from tests.stress.actors import BUSY, CODE, WAIT_S, Actor, int64

POLL_S = 1
ROWS = 64
FLAGS = ("--model-control-mode", "poll", "--repository-poll-secs", str(POLL_S), "--workers", "2")
CONFIG = """platform: "pytorch_libtorch"
max_batch_size: 0
parameters { key: "plan_cache_size" value: { string_value: "4" } }
"""
GONE = {CODE.NOT_FOUND, CODE.UNAVAILABLE}


class Sealed(nn.Module):
    """Returns its mark three times, from two places: an archive of two halves would have two marks. No pass can know
    the row, so it is read from the mapped archive."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mark", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("weight", torch.zeros(ROWS, 1024, dtype=torch.int64))

    def forward(self, row: Tensor) -> Tensor:
        values = self.weight.index_select(0, row)
        return torch.cat([self.mark, values.min().reshape(1), values.max().reshape(1)])


sealed = torch.jit.script(Sealed())
sealed_lock = threading.Lock()


def archive(mark):
    data = io.BytesIO()
    with sealed_lock:
        sealed.mark.fill_(mark)
        sealed.weight.fill_(mark)
        torch.jit.save(sealed, data)
    return data.getvalue()


class Shelf:
    """A model's folder, as its writer and its readers see it."""

    def __init__(self, root, name):
        self.root = root
        self.name = name
        self.folder = os.path.join(root, name)
        self.version = 1
        self.mark = 0  # the largest that may be served
        self.is_gone = True

    def file(self):
        return os.path.join(self.folder, str(self.version), "model.pt")


def marks(actor, name):
    row = int64(actor.random.randrange(ROWS))
    response = actor.stub.ModelInfer(request(name, [("row", "INT64", [1], row)]), timeout=WAIT_S)
    return struct.unpack("<3q", response.raw_output_contents[0])


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


class Writer(Actor):
    """Damages a model's folder, checks the effect, and repairs it."""

    def __init__(self, address, seed, shelf, read_log):
        super().__init__(address, seed, shelf.root)
        self.shelf = shelf
        self.read_log = read_log
        self.left = []
        os.mkdir(shelf.folder)

    def act(self):
        if self.shelf.mark == 0:
            self.mend()
        # Each kind once before any is repeated.
        if not self.left:
            self.left = self.random.sample(self.KINDS, len(self.KINDS))
        kind = self.left.pop()
        complaints = self.complaints()
        is_noticed = kind(self)
        if is_noticed:
            self.wait_until(lambda: self.complaints() > complaints, f"the log tells of {kind.__name__}")
        else:
            time.sleep(self.random.random() * 2 * POLL_S)
        self.mend()
        self.count(kind.__name__)

    def wait_until(self, condition, what):
        processes.wait_until(condition, f"{self.shelf.name}: {what}", WAIT_S / 2, interval=0.05)

    def complaints(self):
        return self.read_log().count(f"model cannot be served model={self.shelf.name} ")

    def is_served(self):
        try:
            return marks(self, self.shelf.name) == (self.shelf.mark,) * 3
        except grpc.RpcError as error:
            assert self.shelf.is_gone or error.code() in BUSY, f"{error.code()}: {error.details()}"
            return False

    def next_archive(self):
        self.shelf.mark += 1
        return archive(self.shelf.mark)

    def mend(self):
        """Removes everything but a whole archive, and waits until that is served."""
        shelf = self.shelf
        for name in os.listdir(shelf.folder) if os.path.isdir(shelf.folder) else ():
            if name != str(shelf.version):
                remove(os.path.join(shelf.folder, name))
        data = self.next_archive()
        if not os.path.isfile(shelf.file()) or os.path.islink(shelf.file()):
            remove(shelf.file())
        os.makedirs(os.path.dirname(shelf.file()), exist_ok=True)
        if self.random.random() < 0.5:
            self.put(data)
        else:
            self.write_slowly(shelf.file(), data)
        self.wait_until(self.is_served, f"mark {shelf.mark} is served")
        shelf.is_gone = False

    def put(self, data):
        aside = os.path.join(self.shelf.root, f".aside_{self.shelf.name}")
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, self.shelf.file())

    def write_slowly(self, path, data):
        """In place, in pieces: like a copy over a slow network, over the old file or from nothing."""
        mode = "r+b" if os.path.isfile(path) and self.random.random() < 0.5 else "wb"
        cuts = sorted(self.random.randrange(len(data)) for _ in range(self.random.randrange(5)))
        with open(path, mode, buffering=0) as file:
            for begin, end in zip([0, *cuts], [*cuts, len(data)]):
                file.write(data[begin:end])
                time.sleep(self.random.random() * POLL_S)
            file.truncate(len(data))

    # Ways to damage a folder. True: the log must report it.
    def nothing(self):
        pass

    def cut_off(self):
        os.truncate(self.shelf.file(), self.random.randrange(os.path.getsize(self.shelf.file())))
        return True

    def cut_off_new(self):
        data = self.next_archive()
        self.put(data[:self.random.randrange(len(data))])
        return True

    def noise(self):
        self.put(self.random.randbytes(self.random.randrange(1, 100000)))
        return True

    def flipped_bits(self):
        # Most are in the weights; those between the entries are harmless.
        data = bytearray(self.next_archive())
        for _ in range(self.random.randrange(1, 20)):
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        self.put(data)

    def damaged_directory(self):
        data = bytearray(self.next_archive())
        for _ in range(self.random.randrange(1, 50)):
            data[-self.random.randrange(1, 3000)] ^= 1 << self.random.randrange(8)
        self.put(data)

    def two_halves(self):
        """The first part of one archive, the rest of another of the same size."""
        one, other = archive(self.shelf.mark), self.next_archive()
        assert len(one) == len(other)
        cut = self.random.randrange(len(one))
        self.put(one[:cut] + other[cut:])

    def no_archive(self):
        file = self.shelf.file()
        os.unlink(file)
        kind = self.random.randrange(5)
        if kind == 0:
            os.mkdir(file)
        elif kind == 1:
            os.mkfifo(file)
        elif kind == 2:
            os.symlink("/etc/hostname", file)
        elif kind == 3:
            os.symlink("model.pt", file)
        return True

    def config(self):
        kind = self.random.randrange(3)
        broken_config = CONFIG[:self.random.randrange(20, len(CONFIG) - 3)] if kind == 0 else CONFIG + 'name: "another"\n'
        data = self.random.randbytes(1000) if kind == 1 else broken_config.encode()
        path = os.path.join(self.shelf.folder, "config.pbtxt")
        with open(path, "wb") as file:
            file.write(data)
        return kind != 0  # a file that ends between two fields is also a valid configuration

    def next_version(self):
        """A new version: its folder, then half of its archive, then removed again."""
        folder = os.path.join(self.shelf.folder, str(self.shelf.version + 1))
        os.mkdir(folder)
        time.sleep(self.random.random() * POLL_S)
        with open(os.path.join(folder, "model.pt"), "wb") as file:
            data = self.next_archive()
            file.write(data[:self.random.randrange(len(data))])
        return True

    def new_version(self):
        """A complete version replaces the last."""
        last = os.path.dirname(self.shelf.file())
        self.shelf.version += 1
        os.mkdir(os.path.dirname(self.shelf.file()))
        self.write_slowly(self.shelf.file(), self.next_archive())
        self.wait_until(self.is_served, "the new version is served")
        shutil.rmtree(last)

    def junk(self):
        """Names that are not models or versions."""
        for name in (".hidden", "line\nbreak", "0", "007", "-1", "1.5", "99999999999999999999", "\u00e4\u00f6", "deep"):
            path = os.path.join(self.shelf.folder, name, *("x",) * self.random.randrange(12))
            os.makedirs(path)
            with open(os.path.join(path, "model.pt"), "wb") as file:
                file.write(b"junk")

    def gone(self):
        """Removes the model, and restores it piece by piece."""
        shelf = self.shelf
        shelf.is_gone = True
        shutil.rmtree(shelf.folder)
        self.wait_until(self.is_unknown, "the model is not there any more")
        for step in (lambda: os.mkdir(shelf.folder), lambda: os.mkdir(os.path.dirname(shelf.file()))):
            step()
            time.sleep(self.random.random() * 2 * POLL_S)

    def is_unknown(self):
        try:
            marks(self, self.shelf.name)
        except grpc.RpcError as error:
            assert error.code() in BUSY | GONE, f"{error.code()}: {error.details()}"
            return error.code() == CODE.NOT_FOUND
        return False

    KINDS = (nothing, cut_off, cut_off_new, noise, flipped_bits, damaged_directory, two_halves, no_archive, config,
             next_version, new_version, junk, gone)


class Reader(Actor):
    """Calls all models all the time. Marks never go back, and none belongs to an incomplete archive."""

    def __init__(self, address, seed, shelves):
        super().__init__(address, seed, None)
        self.shelves = shelves
        self.last = {shelf.name: 0 for shelf in shelves}

    def act(self):
        for shelf in self.shelves:
            could_be_gone = shelf.is_gone
            try:
                answer = marks(self, shelf.name)
                assert self.last[shelf.name] <= answer[0] <= shelf.mark and len(set(answer)) == 1, (shelf.name, answer)
                self.last[shelf.name] = answer[0]
                self.count("OK")
            except grpc.RpcError as error:
                assert could_be_gone or shelf.is_gone or error.code() == CODE.RESOURCE_EXHAUSTED, \
                    f"{shelf.name}: {error.code()}: {error.details()}"
                self.allow(error, GONE | {CODE.RESOURCE_EXHAUSTED})
        assert self.stub.ServerReady(pb.ServerReadyRequest(), timeout=WAIT_S).ready
        time.sleep(0.005)


def make_actors(daemon, seed, root, writers=4):
    """`root` is the daemon's repository, and empty."""
    address = daemon.ready["grpc"]
    shelves = [Shelf(root, f"shelf_{i}") for i in range(writers)]
    kept = [Writer(address, seed * 1000 + i, shelf, daemon.log_text) for i, shelf in enumerate(shelves)]
    return kept + [Reader(address, seed, shelves)]


def files_held(daemon):
    """Unnamed files that the daemon has open or mapped: its copies of archives."""
    process = f"/proc/{daemon.process.pid}"
    held = [os.readlink(f"{process}/fd/{fd}") for fd in os.listdir(f"{process}/fd")
            if os.path.lexists(f"{process}/fd/{fd}")]
    with open(f"{process}/maps") as maps:
        held += maps.read().splitlines()
    others = ("OMP", "/tsan.")  # of OpenMP and the thread sanitizer
    return [line for line in held if line.endswith("(deleted)") and not any(name in line for name in others)]
