"""Daemons that join a coordinator for training: each side sends the other false messages, one kind at a time."""

import hashlib
import os
import queue
import random
import threading
import time

import grpc
import torch

from tests.attacks.ranks import norms_job, result_of, write_norms
from tests.attacks.registry import Figure, attack
from tests.attacks.robust import training_flags
from tests.e2e.daemon import training
from tests.e2e.processes import wait_until
from tests.e2e.training.host_protocol_test import INSTANCE, START, Fake, Host

import hosts_pb2 as pb

NUMBERS = (0, 1, -1, 2, 7, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))
SMALL = [number for number in NUMBERS if abs(number) < 1 << 31]
REALS = (0.0, 1.5, -1e300, float("inf"), float("nan"))
TEXTS = ("", "a", "..", "../../x", "/etc/passwd", START, INSTANCE, "a" * 70000, "\u202e\u2028", "x\ny", "%s%n", "0" * 64, "f" * 64)
LINES = (b"", b"{}", b"\xff\xfe", b"[" * 5000, b'{"step": 1e400}', b'{"progress": {"step": -1}}', b"x" * 100000, b'{"what": "progress"}\n{')


def fill(message, chance, starts, depth=0):
    """Sets each field to a plausible or an impossible value."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.2 or depth > 5:
            continue
        if field.name == "start" and field.type == field.TYPE_STRING and chance.random() < 0.8:
            message.start = chance.choice(starts)
        elif field.message_type and field.message_type.GetOptions().map_entry:
            entries = getattr(message, field.name)
            if field.message_type.fields_by_name["value"].message_type:
                fill(entries[chance.choice(TEXTS)], chance, starts, depth + 1)
        elif field.type == field.TYPE_MESSAGE:
            values = [getattr(message, field.name)] if field.label != field.LABEL_REPEATED else [
                getattr(message, field.name).add() for _ in range(chance.randrange(4))]
            for value in values:
                value.SetInParent()
                fill(value, chance, starts, depth + 1)
        else:
            kind = {field.TYPE_STRING: TEXTS, field.TYPE_BYTES: LINES, field.TYPE_BOOL: (False, True), field.TYPE_ENUM: (0, 1, 2, 5, 77),
                    field.TYPE_INT32: SMALL, field.TYPE_UINT32: [n for n in SMALL if n >= 0],
                    field.TYPE_UINT64: [n for n in NUMBERS if n >= 0], field.TYPE_DOUBLE: REALS, field.TYPE_FLOAT: REALS}
            value = chance.choice(kind.get(field.type, NUMBERS))
            if field.label == field.LABEL_REPEATED:
                getattr(message, field.name).extend([value] * chance.randrange(5))
            else:
                setattr(message, field.name, value)
    return message


def lie(kind, names, chance, starts):
    """The bytes of a message with one of these fields, sometimes damaged."""
    name = chance.choice(names)
    message = kind()
    getattr(message, name).SetInParent()
    fill(getattr(message, name), chance, starts)
    data = bytearray(message.SerializeToString())
    if chance.random() < 0.3:
        for _ in range(chance.randrange(1, 5)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


class Liar:
    """A Join stream whose reports are raw bytes."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.reports = queue.Queue()
        call = self.channel.stream_stream("/tensord.hosts.v1.HostService/Join", response_deserializer=pb.HostOrder.FromString)
        self.orders = call(iter(self.reports.get, None), timeout=60)

    def close(self):
        self.orders.cancel()
        self.reports.put(None)
        self.channel.close()


def version_of(address):
    return Host(address, version="0").refused().details().split("this daemon ")[1].split(":")[0]


def tell_lies(address, hello, chance, count):
    """A host that joins, takes part, and then sends false reports. Returns how many it sent before it was
    disconnected."""
    liar, starts, told = Liar(address), [START], 0
    liar.reports.put(pb.HostReport(hello=hello).SerializeToString())

    def read():
        try:
            for order in liar.orders:
                if order.WhichOneof("order") == "prepare":
                    starts.append(order.prepare.start)
                    liar.reports.put(pb.HostReport(prepared=pb.Prepared(start=order.prepare.start)).SerializeToString())
        except grpc.RpcError:
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while told < count and reader.is_alive():
        liar.reports.put(lie(pb.HostReport, ("prepared", "started", "line", "ended", "failed", "hello"), chance, starts[-2:]))
        told += 1
        time.sleep(0.002)
    liar.close()
    return told


@attack("hosts_that_lie", short=True)
def hosts_that_lie(context):
    """Hosts join, take part in a job, and send false reports. Their jobs fail; the daemon and an unrelated job
    survive."""
    flags = training_flags(context)
    write_norms(context)
    chance = random.Random(11)
    with context.daemon(*flags, "--training-jobs", "2", "--host-name", "honest", repository=context.path("models")) as daemon:
        address, told = daemon.ready["grpc"], 0
        version = version_of(address)
        _, whole = result_of(context, daemon, norms_job(daemon, 200))
        with context.watched(daemon, memory_mb=300) as figures:
            beside = norms_job(daemon, 200)
            with_liars = norms_job(daemon, 200, processes_per_host=1, hosts=["liar"], join_timeout_seconds=5)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                hello = pb.Hello(name="liar", instance=INSTANCE, version=version, processes=4)
                if chance.random() < 0.3:
                    fill(hello, chance, [START])
                told += tell_lies(address, hello, chance, 40)
            daemon.training.DeleteJob(training.DeleteJobRequest(id=with_liars), timeout=60)
            _, weights = result_of(context, daemon, beside)
        different = [name for name, weight in whole.items() if not torch.equal(weight, weights[name])]
        wait_until(lambda: not daemon.training.ListHosts(training.ListHostsRequest(), timeout=60).hosts, timeout=60)
        return [*figures, Figure("different weights", len(different), 0), Figure("lies", told, 100, at_least=True)]


@attack("daemon_that_is_joined_lies", short=True)
def daemon_that_is_joined_lies(context):
    """A daemon joins a malicious coordinator that sends impossible orders. It survives, rejoins, writes nothing outside
    its folder, and keeps serving."""
    os.makedirs(context.path("jobs"))
    fake, chance, told = Fake(), random.Random(12), 0
    fake.served = b"wanted"
    outside = set(os.listdir(context.folder))
    try:
        with context.daemon("--training-dir", context.path("jobs"), "--join", f"127.0.0.1:{fake.port}", "--host-name", "w", "--join-cache",
                            "1MB") as daemon:
            with context.watched(daemon, memory_mb=300) as figures:
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    orders = fake.orders
                    if orders is None:
                        time.sleep(0.01)
                        continue
                    order = pb.HostOrder()
                    name = chance.choice(("prepare", "start", "stop", "welcome"))
                    getattr(order, name).SetInParent()
                    fill(getattr(order, name), chance, [START])
                    if name == "prepare" and chance.random() < 0.5:
                        del order.prepare.files[:]
                        order.prepare.files.add(path="base.pt", size_bytes=6, sha256=hashlib.sha256(b"wanted").hexdigest())
                    orders.put(order)
                    told += 1
                    time.sleep(0.01)
            joined = daemon.log_text().count("joined address=")
    finally:
        fake.server.stop(None)
    left = set(os.listdir(context.folder)) - outside
    if left:
        raise RuntimeError(f"it wrote {left}")
    return [*figures, Figure("orders", told, 10, at_least=True), Figure("joined", joined, 1, at_least=True)]
