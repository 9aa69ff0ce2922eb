"""A process that floods: KIND PORT CONNECTIONS SECONDS ack|silent CERTIFICATE. Each connection has its own source address
(127.0.1.N), discards what it reads, and is reopened when it is cut. Prints how often it was cut."""

import socket
import sys
import threading
import time

from tests.attacks import h2

ATTEMPT_PAUSE_S = 0.02


def drain(connection):
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass


def flood(kind, port, number, end, acknowledge, certificate, cuts):
    pieces_of = h2.floods()[kind]
    while time.monotonic() < end:
        try:
            with h2.connect(port, source=f"127.0.1.{number + 1}", certificate=certificate) as connection:
                h2.begin(connection, acknowledge)
                reader = threading.Thread(target=drain, args=(connection,), daemon=True)
                if not certificate:  # Python's TLS sessions may be used by one thread at a time
                    reader.start()
                for piece in pieces_of():
                    connection.sendall(piece)
                    if time.monotonic() > end:
                        return
        except (OSError, socket.timeout):
            cuts[number] += 1
            time.sleep(ATTEMPT_PAUSE_S)


def main():
    kind, port, connections, seconds, acknowledges, certificate = sys.argv[1:7]
    end = time.monotonic() + float(seconds)
    cuts = [0] * int(connections)
    threads = [threading.Thread(target=flood, args=(kind, int(port), number, end, acknowledges == "ack",
                                                    certificate or None, cuts)) for number in range(int(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(cuts))


if __name__ == "__main__":
    main()
