"""A network link with delay: forwards packets between two network interfaces, each after a time (root; the kernel may have no netem).

Usage: python3 -m tests.e2e.training.delaying_wire ONE OTHER SECONDS        until it is killed; prints a line once it
forwards packets
       python3 -m tests.e2e.training.delaying_wire --checksums INTERFACE    makes the interface's packets carry checksums, which the link needs
"""

import array
import collections
import fcntl
import select
import socket
import struct
import sys
import time

ALL_PROTOCOLS, OWN_PACKET = 3, 4  # ETH_P_ALL, PACKET_OUTGOING
SIOCETHTOOL, SET_CHECKSUMS = 0x8946, 0x17


def write_checksums(interface):
    """A virtual device omits checksums, since its other end does not verify them."""
    value = array.array("I", [SET_CHECKSUMS, 0])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def open_interface(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    opened.bind((name, 0))
    return opened


def pass_on(one, other, seconds):
    others = {one: other, other: one}
    waiting = collections.deque()
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for ready in select.select([one, other], [], [], left)[0]:
            packet, address = ready.recvfrom(1 << 17)
            if address[2] != OWN_PACKET:
                waiting.append((time.monotonic() + seconds, others[ready], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, packet = waiting.popleft()
            try:
                to.send(packet)
            except OSError:
                pass  # like a cable, drops packets that the other end does not accept


def main():
    if sys.argv[1] == "--checksums":
        write_checksums(sys.argv[2])
        return
    one, other = open_interface(sys.argv[1]), open_interface(sys.argv[2])
    print("ready", flush=True)
    pass_on(one, other, float(sys.argv[3]))


if __name__ == "__main__":
    main()
