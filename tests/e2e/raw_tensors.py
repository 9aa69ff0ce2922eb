"""Values as the bytes of raw_input_contents and raw_output_contents, and back."""

import struct


def fp32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def int32(*values):
    return struct.pack(f"<{len(values)}i", *values)


def int64(*values):
    return struct.pack(f"<{len(values)}q", *values)


def byte_strings(*values):
    """A BYTES tensor."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def read_fp32(raw):
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def read_int64(raw):
    return list(struct.unpack(f"<{len(raw) // 8}q", raw))


def read_strings(raw):
    """The strings of a BYTES tensor."""
    out = []
    while raw:
        size = struct.unpack_from("<I", raw)[0]
        out.append(raw[4:4 + size].decode())
        raw = raw[4 + size:]
    return out
