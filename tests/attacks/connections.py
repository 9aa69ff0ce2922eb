"""Connections that are opened and stay nearly silent."""

import socket
import time

from tests.attacks.registry import attack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@attack("half_sent_prefaces", short=True)
def half_sent_prefaces(context):
    """Five hundred connections that stop within the HTTP/2 preface."""
    with context.daemon() as daemon:
        with context.watched(daemon, memory_mb=150) as figures:
            open_ones = []
            for index in range(500):
                connection = socket.create_connection(("127.0.0.1", daemon.grpc_port))
                connection.sendall(PREFACE[:index % len(PREFACE)])
                open_ones.append(connection)
            time.sleep(2)
            for connection in open_ones:
                connection.close()
    return figures
