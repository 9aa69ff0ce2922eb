"""PNG files made by hand, of kinds that Pillow does not write."""

import struct
import zlib


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, color, rows, interlaced=False, chunks=b""):
    """`rows` are bytes, each row with its filter in front; `chunks` go before them."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
