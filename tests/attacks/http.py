"""Slow or silent clients on the HTTP ports, while probes check that health is answered."""

import multiprocessing
import resource
import selectors
import socket
import time

from tests.attacks.registry import Figure, attack

HALF = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nX-Long: "
PROBE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LIMIT_S = 5


def may_open(files):
    """Raises this process's limit of open files; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def ask_live(port):
    """The response time on a new connection, like kubelet's."""
    begin = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
            connection.settimeout(LIMIT_S)
            connection.sendall(PROBE)
            answer = b""
            while part := connection.recv(4096):
                answer += part
    except OSError:
        return LIMIT_S
    return time.monotonic() - begin if answer.startswith(b"HTTP/1.1 200") else LIMIT_S


def probe(ports, is_over, worst):
    while not is_over.value:
        for index, port in enumerate(ports):
            worst[index] = max(worst[index], ask_live(port))
        time.sleep(0.05)


class Probes:
    """Probes the health of the ports all the time, from a process of its own; afterwards it has the worst time of
    each."""

    def __init__(self, ports):
        self.worst = multiprocessing.Array("d", len(ports))
        self.is_over = multiprocessing.Value("b", 0)
        self.process = multiprocessing.Process(target=probe, args=(ports, self.is_over, self.worst))

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.is_over.value = 1
        self.process.join()

    def figures(self, bound_s):
        return [Figure(f"probe of {name}", worst, bound_s, "s")
                for name, worst in zip(("HTTP", "metrics"), self.worst)]


def ports_of(daemon):
    return [int(daemon.ready["http"].rsplit(":", 1)[1]), daemon.metrics_port]


def connect(port, first):
    connection = socket.socket()
    connection.settimeout(LIMIT_S)
    connection.connect(("127.0.0.1", port))
    connection.sendall(first)
    connection.setblocking(False)
    return connection


def wait_until_cut(slow, silent):
    """Slow clients send a byte every two seconds. Returns when the last connection was cut; 60 s if some never were."""
    selector = selectors.DefaultSelector()
    for connection in slow + silent:
        selector.register(connection, selectors.EVENT_READ)
    begin, next_byte, last = time.monotonic(), time.monotonic() + 2, 0
    while selector.get_map() and time.monotonic() - begin < 60:
        for key, _ in selector.select(0.2):
            selector.unregister(key.fileobj)
            key.fileobj.close()
            last = time.monotonic()
        if time.monotonic() > next_byte:
            next_byte += 2
            for connection in slow:
                try:
                    connection.send(b"x")
                except OSError:
                    pass  # it was cut
    return Figure("the last one was cut after", 60 if selector.get_map() else last - begin, 11, "s")


def play_slow_clients(context, slow_count, silent_count, probe_s):
    """`slow_count` clients send a byte every 2 s, and `silent_count` stop within their headers."""
    count = min(silent_count, may_open(slow_count + silent_count + 200) - slow_count - 200)
    flags = ["--allow-http", "true", "--http-port", "0", "--http-max-connections", "20000",
             "--http-max-address-connections", "0", "--http-max-address-heads", "0"]
    with context.daemon(*flags) as daemon:
        ports = ports_of(daemon)
        ask_live(ports[0])
        before = daemon.rss_mb()
        daemon.reset_peak()
        with Probes(ports) as probes:
            # The metrics port allows fewer connections.
            slow = [connect(ports[i % 2], HALF) for i in range(slow_count)]
            silent = [connect(ports[0], HALF) for _ in range(count)]
            cut = wait_until_cut(slow, silent)
        return [Figure("memory", daemon.peak_mb() - before, 40, "MB"), cut, *probes.figures(probe_s)]


@attack("http_slow_clients", short=True)
def http_slow_clients(context):
    return play_slow_clients(context, 500, 1500, probe_s=1.0)


@attack("http_many_slow_clients")
def http_many_slow_clients(context):
    return play_slow_clients(context, 500, 10_000, probe_s=0.1)


@attack("http_one_address", short=True)
def http_one_address(context):
    """One address has as many silent connections as it may: it still gets responses."""
    may_open(4096)
    with context.daemon("--allow-http", "true", "--http-port", "0") as daemon:
        ports = ports_of(daemon)
        with Probes(ports) as probes:
            held = [connect(ports[index % 2], HALF if index % 4 < 2 else b"") for index in range(1200)]
            time.sleep(1)
            for connection in held:
                connection.close()
        return probes.figures(1.0)


@attack("http_slow_bodies")
def http_slow_bodies(context):
    """Bodies that are announced and arrive very slowly."""
    head = b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
    with context.daemon("--allow-http", "true", "--http-port", "0") as daemon:
        ports = ports_of(daemon)
        with Probes(ports) as probes:
            cut = wait_until_cut([connect(ports[i % 2], head) for i in range(200)], [])
        return [cut, *probes.figures(1.0)]
