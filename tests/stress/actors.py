"""The clients of the stress test. Each actor repeats `act`, which raises AssertionError when an answer
is one that the server may not give; its `Random` makes a run repeatable as far as threads are."""

import collections
import mmap
import os
import queue
import random
import signal
import struct
import subprocess
import sys
import threading
import time

import grpc

from tests.e2e.daemon import inference_pb2_grpc, pb, request
from tests.e2e.raw_tensors import int32, int64
from tests.stress import models

CODE = grpc.StatusCode
WAIT_S = 300
BUSY = {CODE.RESOURCE_EXHAUSTED, CODE.UNAVAILABLE}  # a server with bounded queues may return these


class Actor:
    def __init__(self, address, seed, folder):
        self.random = random.Random(seed)
        self.folder = folder
        self.address = address
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)])
        self.stub = inference_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        self.counts = {}  # outcome → count
        self.deadline = float("inf")  # of the stage
        self.sent = 0

    def close(self):
        self.channel.close()

    def count(self, outcome):
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    def allow(self, error, codes):
        assert error.code() in codes, f"{type(self).__name__}: {error.code()}: {error.details()}"
        self.count(error.code().name)

    def rest(self, shortest, longest=None):
        """Sleeps, at most until the deadline."""
        seconds = self.random.uniform(shortest, longest or shortest)
        time.sleep(max(0, min(seconds, self.deadline - time.monotonic())))

    def next_id(self):
        self.sent += 1
        return f"{id(self)}_{self.sent}"

    def add_sub(self, batch):
        a = [self.random.randrange(-1000, 1000) for _ in range(16 * batch)]
        b = [self.random.randrange(-1000, 1000) for _ in range(16 * batch)]
        message = request("simple", [(name, "INT32", [batch, 16], int32(*values))
                                     for name, values in (("INPUT0", a), ("INPUT1", b))], request_id=self.next_id())
        return a, b, message


class Calls(Actor):
    """Ordinary requests: every response is correct."""

    def act(self):
        a, b, message = self.add_sub(self.random.randrange(1, 9))
        is_ensemble = self.random.random() < 0.3
        message.model_name = "simple_ensemble" if is_ensemble else "simple"
        try:
            response = self.stub.ModelInfer(message, timeout=WAIT_S)
        except grpc.RpcError as error:
            return self.allow(error, BUSY)
        expected = [x + y for x, y in zip(a, b)], [x - y for x, y in zip(a, b)]
        if is_ensemble:
            expected = [2 * x for x in a], [2 * y for y in b]
        assert response.id == message.id
        assert list(response.raw_output_contents) == [int32(*values) for values in expected]
        self.count("OK")


class Cancellations(Actor):
    """Requests that clients cancel at any moment."""

    def act(self):
        if self.random.random() < 0.5:
            _, _, message = self.add_sub(1)
        else:
            message = request("sleepy", [("x", "INT64", [1], int64(0)),
                                         ("rounds", "INT64", [1], int64(self.random.randrange(1, 200000)))])
        futures = [self.stub.ModelInfer.future(message, timeout=WAIT_S) for _ in range(self.random.randrange(1, 6))]
        time.sleep(self.random.random() * 0.02)
        for future in futures:
            future.cancel()
        for future in futures:
            try:
                future.result(timeout=WAIT_S)
                self.count("OK")
            except grpc.FutureCancelledError:
                self.count("CANCELLED")
            except grpc.RpcError as error:
                self.allow(error, BUSY | {CODE.CANCELLED})


class Deadlines(Actor):
    """Requests with short deadlines."""

    def act(self):
        rounds = self.random.randrange(1, 50000)
        message = request("sleepy", [("x", "INT64", [1], int64(7)), ("rounds", "INT64", [1], int64(rounds))])
        if self.random.random() < 0.3:
            message.parameters["timeout"].int64_param = self.random.randrange(1, 20000)
        try:
            response = self.stub.ModelInfer(message, timeout=self.random.random() * 0.1)
            assert response.raw_output_contents[0] == int64(7 + rounds)
            self.count("OK")
        except grpc.RpcError as error:
            self.allow(error, BUSY | {CODE.DEADLINE_EXCEEDED, CODE.CANCELLED})


class Stream:
    """An open ModelStreamInfer call that an actor writes to."""

    def __init__(self, stub, timeout=WAIT_S):
        self.requests = queue.Queue()
        self.call = stub.ModelStreamInfer(iter(self.requests.get, None), timeout=timeout)

    def send(self, message):
        self.requests.put(message)

    def end(self):
        self.requests.put(None)


class Streams(Actor):
    """Streams that end in order, in the middle, or not at all."""

    def act(self):
        stream = Stream(self.stub)
        expected = []
        for _ in range(self.random.randrange(1, 20)):
            repeats = self.random.randrange(0, 6)
            expected.append((self.next_id(), repeats))
            stream.send(request("square_int32", [("IN", "INT32", [1], int32(repeats))], request_id=expected[-1][0]))
        ending = self.random.choice(("whole", "whole", "cut", "left"))
        if ending != "left":
            stream.end()
        wanted = sum(repeats for _, repeats in expected)
        stop_after = wanted if ending == "whole" else self.random.randrange(wanted + 1)
        answers = {}
        try:
            while sum(answers.values()) < stop_after:
                response = next(stream.call)
                if response.error_message:
                    self.count("stream error")
                    assert "queue" in response.error_message or "quota" in response.error_message, response.error_message
                    stream.call.cancel()
                    stream.end()
                    return
                name = response.infer_response.id
                answers[name] = answers.get(name, 0) + 1
            if ending == "whole":
                assert answers == {name: repeats for name, repeats in expected if repeats}
                assert next(stream.call, None) is None, "an answer too many"
        except grpc.RpcError as error:
            self.allow(error, BUSY)
        stream.call.cancel()
        stream.end()
        self.count(ending)


class Sequences(Actor):
    """Sequences that are complete, restarted, or never ended."""

    IDLE_S = 10  # the model's idle timeout; on a busy machine this process may have been stopped for that long

    def act(self):
        sequence = str(self.random.randrange(1, 1 << 30))  # the model adds it to the last sum
        values = [self.random.randrange(1000) for _ in range(self.random.randrange(1, 8))]
        is_left = self.random.random() < 0.2
        total, last = 0, time.monotonic()
        for i, value in enumerate(values):
            is_start = i == 0 or self.random.random() < 0.1
            is_end = i + 1 == len(values) and not is_left
            message = request("simple_string_dyna_sequence", [("INPUT", "INT32", [1, 1], int32(value))])
            message.parameters["sequence_id"].string_param = sequence
            message.parameters["sequence_start"].bool_param = is_start
            message.parameters["sequence_end"].bool_param = is_end
            before, last = last, time.monotonic()
            try:
                response = self.stub.ModelInfer(message, timeout=WAIT_S)
            except grpc.RpcError as error:
                is_idle = time.monotonic() - before > self.IDLE_S  # since the previous request was sent, at most
                return self.allow(error, BUSY | ({CODE.INVALID_ARGUMENT} if is_idle else set()))
            total = value if is_start else total + value
            expected = total + (int(sequence) if is_end else 0)
            assert response.raw_output_contents[0] == int32(expected), (values, i)
        self.count("left" if is_left else "whole")


class Operator(Actor):
    """Loads, unloads and replaces models, some of them broken. Only one of these runs."""

    mark = 0

    def may_refuse(self, error):
        """Whole models must not be refused."""
        return False

    def load(self, name):
        self.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=WAIT_S)

    def act(self):
        what = self.random.choice(("replace", "replace", "unload", "load", "break", "bring"))
        try:
            if what == "replace":
                Operator.mark += 1
                models.write_marked(self.folder, "replaced", Operator.mark)
                self.load("replaced")
            elif what == "unload":
                self.stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="coming"), timeout=WAIT_S)
            elif what == "load":
                self.load("coming")
            elif what == "break":
                models.write_corrupt(self.folder, "replaced", self.random)
                self.load("replaced")
            else:
                self.bring()
            self.count(what)
        except grpc.RpcError as error:
            assert what in ("break", "bring") or self.may_refuse(error), f"{what}: {error.code()}: {error.details()}"
            self.allow(error, {CODE.INVALID_ARGUMENT, CODE.FAILED_PRECONDITION, CODE.INTERNAL} |
                       ({error.code()} if self.may_refuse(error) else set()))
        if what == "break":
            models.write_marked(self.folder, "replaced", Operator.mark)

    def bring(self):
        """A load with files from the client, complete or truncated."""
        path = os.path.join(self.folder, "identity_fp32", "1", "model.pt")
        with open(path, "rb") as archive:
            data = archive.read()
        message = pb.RepositoryModelLoadRequest(model_name="brought")
        message.parameters["config"].string_param = "{}"
        size = len(data) if self.random.random() < 0.5 else self.random.randrange(len(data))
        message.parameters["file:1/model.pt"].bytes_param = data[:size]
        self.stub.RepositoryModelLoad(message, timeout=WAIT_S)


class Watcher(Actor):
    """Calls models that are replaced: one must always respond and never go back, one appears and disappears."""

    last = 0

    def act(self):
        message = request("replaced", [("x", "INT64", [1], int64(5))])
        try:
            response = self.stub.ModelInfer(message, timeout=WAIT_S)
            mark = struct.unpack("<q", response.raw_output_contents[0])[0]
            assert self.last <= mark <= Operator.mark, (self.last, mark, Operator.mark)
            self.last = mark
            self.count("OK")
        except grpc.RpcError as error:
            self.allow(error, {CODE.RESOURCE_EXHAUSTED})
        message.model_name = "coming"
        try:
            self.stub.ModelInfer(message, timeout=WAIT_S)
        except grpc.RpcError as error:
            self.allow(error, BUSY | {CODE.NOT_FOUND})
        self.stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=WAIT_S)
        self.stub.ModelStatistics(pb.ModelStatisticsRequest(), timeout=WAIT_S)


class SharedMemory(Actor):
    """Regions that shrink, disappear or are unregistered during requests."""

    SIZE = 1 << 20

    def act(self):
        key = f"/tensord_stress_{os.getpid()}_{self.next_id()}"
        path = "/dev/shm" + key
        with open(path, "wb") as file:
            file.truncate(self.SIZE)
        try:
            self.use(key, path)
        finally:
            if os.path.exists(path):
                os.unlink(path)
            self.stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest(name=key[1:]), timeout=WAIT_S)

    def message(self, name):
        half = self.SIZE // 2
        message = request("identity_fp32", [("INPUT0", "FP32", [1, half // 4], None)], outputs=["OUTPUT0"])
        for item, offset in ((message.inputs[0], 0), (message.outputs[0], half)):
            item.parameters["shared_memory_region"].string_param = name
            item.parameters["shared_memory_byte_size"].int64_param = half
            item.parameters["shared_memory_offset"].int64_param = offset
        return message

    def use(self, key, path):
        name, half = key[1:], self.SIZE // 2
        self.stub.SystemSharedMemoryRegister(
            pb.SystemSharedMemoryRegisterRequest(name=name, key=key, byte_size=self.SIZE), timeout=WAIT_S)
        data = struct.pack("<f", self.random.random()) * (half // 4)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), self.SIZE) as view:
            view[:half] = data
            self.stub.ModelInfer(self.message(name), timeout=WAIT_S)
            assert view[half:] == data
        futures = [self.stub.ModelInfer.future(self.message(name), timeout=WAIT_S) for _ in range(4)]
        if self.random.random() < 0.7:
            os.truncate(path, self.random.choice((0, 4096, half, half + 4096)))
        if self.random.random() < 0.5:
            os.unlink(path)
        for future in futures:
            try:
                future.result()
                self.count("OK")
            except grpc.RpcError as error:
                self.allow(error, BUSY | {CODE.INVALID_ARGUMENT, CODE.NOT_FOUND, CODE.FAILED_PRECONDITION,
                                          CODE.DATA_LOSS, CODE.INTERNAL})


class Garbage(Actor):
    """Sends nearly valid messages to every call."""

    METHODS = [method.name for method in pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods
               if not method.client_streaming and "egister" not in method.name]  # they would unregister regions

    def act(self):
        method = self.random.choice(self.METHODS + ["ModelInfer"] * 20)
        _, _, message = self.add_sub(1)
        data = bytearray(message.SerializeToString() if method == "ModelInfer" else self.random.randbytes(20))
        for _ in range(self.random.randrange(1, 6)):
            data[self.random.randrange(len(data))] = self.random.randrange(256)
        if self.random.random() < 0.2:
            data = data[:self.random.randrange(len(data))]
        call = self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        try:
            call(bytes(data), timeout=WAIT_S)
            self.count("OK")
        except grpc.RpcError as error:
            assert error.code() not in (CODE.DEADLINE_EXCEEDED, CODE.CANCELLED, CODE.UNKNOWN), f"{method}: {error}"
            self.count(error.code().name)


class KilledClients(Actor):
    """Processes that are killed with requests and streams in progress."""

    def act(self):
        code = ("import sys; sys.path[:0] = sys.argv[2:]; from tests.stress import victim; victim.run(sys.argv[1])")
        victim = subprocess.Popen([sys.executable, "-c", code, self.address, *sys.path], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        victim.stdout.readline()  # it has started
        time.sleep(self.random.random())
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
        self.count("killed")


# How many of each.
CAST = ((Calls, 3), (Cancellations, 2), (Deadlines, 1), (Streams, 2), (Sequences, 2), (Operator, 1), (Watcher, 1),
        (SharedMemory, 1), (Garbage, 1), (KilledClients, 1))


def make_actors(address, seed, folder):
    kinds = (kind for kind, count in CAST for _ in range(count))
    return [kind(address, seed * 1000 + i, folder) for i, kind in enumerate(kinds)]


class Stage:
    """Runs the actors until the deadline or until one of them has failed."""

    def __init__(self, actors):
        self.actors = actors
        self.failures = []
        self.is_over = threading.Event()

    def play(self, actor, deadline):
        actor.deadline = deadline
        try:
            while time.monotonic() < deadline and not self.is_over.is_set():
                actor.act()
        except BaseException as error:
            self.failures.append((type(actor).__name__, error))
            self.is_over.set()

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        threads = [threading.Thread(target=self.play, args=(actor, deadline), daemon=True) for actor in self.actors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0) + 2 * WAIT_S)
            if thread.is_alive():
                self.failures.append(("Stage", AssertionError("an actor still waits for an answer")))
        counts = {}
        for actor in self.actors:
            actor.close()
            counts.setdefault(type(actor).__name__, collections.Counter()).update(actor.counts)
        return counts
