"""Data files in every format that training reads, written by the usual libraries.

Usage: python3 make_data_files.py OUTPUT_FOLDER
"""

import json
import pathlib
import struct
import sys

import numpy as np
import torch


def columns():
    """The same numbers in every file: value i of a column is i, or whether i is odd."""
    floats = np.arange(24).reshape(4, 3, 2)
    return {
        "f16": floats.astype(np.float16), "f32": floats.astype(np.float32), "f64": floats.astype(np.float64),
        "i8": np.arange(4, dtype=np.int8), "i16": np.arange(4, dtype=np.int16), "i32": np.arange(4, dtype=np.int32),
        "i64": np.arange(4, dtype=np.int64), "u8": np.arange(4, dtype=np.uint8), "b": np.arange(4) % 2 == 1,
        "empty": np.zeros((4, 0), np.float32),
    }


CODES = {"float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32",
         "int64": "I64", "uint8": "U8", "bool": "BOOL"}


def write_safetensors(path, arrays, padding):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8 + padding)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)


def main(folder):
    folder = pathlib.Path(folder)
    arrays = columns()
    np.savez(folder / "stored.npz", **arrays)
    np.savez_compressed(folder / "deflated.npz", **arrays)
    np.savez(folder / "fortran.npz", **{name: np.asfortranarray(array) for name, array in arrays.items()})
    np.savez(folder / "big_endian.npz", x=np.arange(3, dtype=">f4"))
    np.savez(folder / "objects.npz", x=np.array([{}, {}], dtype=object))
    np.savez(folder / "structured.npz", x=np.zeros(3, dtype=[("a", "<f4")]))
    np.savez(folder / "unsigned.npz", x=np.zeros(3, np.uint32))
    np.savez(folder / "rows.npz", x=np.zeros(3), y=np.zeros(4))
    np.savez(folder / "scalar.npz", x=np.float32(1))
    np.savez(folder / "no_rows.npz", x=np.zeros((0, 3)))
    write_safetensors(folder / "aligned.safetensors", arrays, 0)
    write_safetensors(folder / "unaligned.safetensors", arrays, 3)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    torch.save(tensors, folder / "dict.pt")
    torch.save((tensors["f32"], tensors["i64"]), folder / "tuple.pt")
    torch.save([tensors["f32"].transpose(1, 2)], folder / "list.pt")
    torch.save({"x": "text"}, folder / "text.pt")


if __name__ == "__main__":
    main(sys.argv[1])
