"""Runs a program that can open sockets of some address families only, as systemd's RestrictAddressFamilies does.

Usage: python3 address_families.py FAMILY… -- PROGRAM [ARGUMENT…]      (AF_INET …; x86-64)
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

SOCKET_CALL = 41
NUMBER, FIRST_ARGUMENT = 0, 16  # in the kernel's struct seccomp_data
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of the kernel's filters
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EAFNOSUPPORT
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE = 22, 38, 2


def filter_of(families):
    """Calls of socket with another family fail; the last two instructions are the verdicts."""
    steps = [(LOAD, 0, 0, NUMBER), (JUMP_IF_EQUAL, 0, len(families) + 2, SOCKET_CALL), (LOAD, 0, 0, FIRST_ARGUMENT)]
    steps += [(JUMP_IF_EQUAL, len(families) - i, 0, family) for i, family in enumerate(families)]
    steps += [(RETURN, 0, 0, FAIL), (RETURN, 0, 0, ALLOW)]
    return steps


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def restrict(families):
    assert platform.machine() == "x86_64"
    steps = filter_of(families)
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({arguments[0]})")


if __name__ == "__main__":
    end = sys.argv.index("--")
    restrict([getattr(socket, name) for name in sys.argv[1:end]])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1:])
