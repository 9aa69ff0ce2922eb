"""Seeds of the fuzzers: small files from other tests, or a few bytes of each format."""

import glob
import io
import json
import os
import struct
import sys
import zipfile
import zlib

from tests.vision.png import chunk, png

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAX_BYTES = 64 << 10


def files(*patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, "tests", pattern), recursive=True)):
            if os.path.getsize(path) <= MAX_BYTES:
                with open(path, "rb") as file:
                    yield file.read()


def members(archives, *endings):
    for archive in archives:
        try:
            with zipfile.ZipFile(io.BytesIO(archive)) as opened:
                for name in opened.namelist():
                    if name.endswith(endings) and opened.getinfo(name).file_size <= MAX_BYTES:
                        yield opened.read(name)
        except zipfile.BadZipFile:
            continue


def npy(descr, shape, data, fortran=False):
    head = str({"descr": descr, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def npz(compression):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("x.npy", npy("<f4", (2, 2), bytes(16)))
        archive.writestr("y.npy", npy("|b1", (3,), b"\0\1\1", True))
    return out.getvalue()


def safetensors():
    header = json.dumps({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                         "b": {"dtype": "BOOL", "shape": [], "data_offsets": [16, 17]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(17)


def small_png(color, depth, row):
    palette = chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\1\2") if color == 3 else b""
    return png(2, 2, depth, color, (b"\0" + bytes(row)) * 2, chunks=palette)


def jpegs():
    try:
        from PIL import Image
    except ImportError:
        return
    for mode in ("L", "RGB", "CMYK"):
        for progressive in (False, True):
            out = io.BytesIO()
            Image.new(mode, (9, 7), 77 if mode == "L" else tuple(range(9, 9 + len(mode)))).save(out, "JPEG", progressive=progressive)
            yield out.getvalue()


def field(number, kind, data):
    return bytes([number << 3 | kind]) + (bytes([len(data)]) + data if kind == 2 else data)


def infer_messages():
    tensor = field(1, 2, b"x") + field(2, 2, b"FP32") + field(3, 2, b"\1\4")
    parameter = field(1, 2, b"k") + field(2, 2, field(3, 2, b"text"))
    yield (field(1, 2, b"model") + field(2, 2, b"1") + field(3, 2, b"id") + field(4, 2, parameter) + field(5, 2, tensor) +
           field(6, 2, field(1, 2, b"y")) + field(7, 2, bytes(16)))
    yield field(1, 2, b"m") + field(5, 2, tensor + field(5, 2, field(6, 2, bytes(8))))


def store_messages():
    def message(command, *parts):
        body = bytes([command]) + b"".join(struct.pack("<I", len(part)) + part if isinstance(part, bytes) else struct.pack("<q", part)
                                           for part in parts)
        return struct.pack("<I", len(body)) + body
    every = [message(1, b"a", b"1"), message(5, b"a", 2), message(2, 5, 1, b"a"), message(3, 0, 1, b"b"), message(4, 2, b"a", b"b"),
             message(6, b"a", b"3", b"4"), message(7, b"a", b"x"), message(8, b"a"), message(9), message(10), message(11, b"q", b"v"),
             message(12, 0, 1, b"q"), message(13, b"q")]
    yield b"".join(every)
    yield from every


def captures():
    def record(head, data):
        head = json.dumps(head).encode()
        return struct.pack("<IQ", len(head), len(data)) + head + data
    tensors = [{"name": "x", "datatype": "FP32", "shape": [2, 2], "bytes": 16}, {"name": "s", "datatype": "BYTES", "shape": [2], "bytes": 10},
               {"name": "u", "datatype": "UINT64", "shape": [1], "bytes": 8}]
    head = {"model": "m", "version": "1", "id": "a", "time_unix_us": 5, "inputs": tensors, "outputs": tensors[:1]}
    data = bytes(16) + b"\1\0\0\0a\1\0\0\0b" + bytes(8) + bytes(16)
    yield b"TNSDREQ1" + record(head, data)
    yield b"TNSDREQ1" + record({**head, "inputs": [], "outputs": []}, b"") + record(head, data)


def host_messages():
    start = field(1, 2, b"0" * 32)
    yield field(1, 2, field(1, 2, b"name") + field(2, 2, b"0123456789abcdef") + field(3, 2, b"0.1.0") + field(4, 0, b"\4"))
    yield from (field(2, 2, start), field(3, 2, start + field(2, 0, b"\1") + field(3, 0, b"\7")),
                field(4, 2, start + field(2, 0, b"\1") + field(3, 0, b"\1") + field(4, 2, b"{}")), field(5, 2, start + field(3, 2, b"signal 9")),
                field(6, 2, start + field(2, 0, b"\3") + field(3, 2, b"no room") + field(4, 0, b"\1")))
    file = field(1, 2, b"base.pt") + field(2, 0, b"\1") + field(3, 0, b"\6") + field(4, 2, b"0" * 64)
    yield field(2, 2, start + field(2, 2, file) + field(3, 0, b"\x1e"))
    yield field(3, 2, start + field(2, 2, b"\0\1") + field(3, 2, b"{}"))


def seeds():
    archives = list(files("**/*.pt", "**/*.pt2"))
    onnx = list(members(files("onnx/data/*.zip"), ".onnx")) + list(files("**/*.onnx"))
    yield "zip", archives[:40] + [npz(zipfile.ZIP_DEFLATED)]
    yield "torch_file", [archive for archive in archives if b"data.pkl" in archive and b"code/" not in archive]
    yield "pickle", members(archives, ".pkl")
    yield "source", list(members(archives, ".py")) + list(files("**/language/**/*.py"))[:40]
    yield "pt2_json", members(archives, ".json")
    with zipfile.ZipFile(os.path.join(ROOT, "tests", "onnx", "data", "runtime_cases.zip")) as cases:
        onnx += [cases.read(name) for name in cases.namelist() if name.endswith(".onnx") and cases.getinfo(name).file_size < 4096][:60]
    yield "onnx", onnx
    yield "safetensors", [safetensors(), struct.pack("<Q", 2) + b"{}"]
    yield "npz", [npz(zipfile.ZIP_STORED), npz(zipfile.ZIP_DEFLATED)]
    yield "csv", [b"x.0,x.1,y\n1,2,3\n1.5,\"2\",3\n", b"\xef\xbb\xbf\"a\"\"b\",c\r\n1e5,-inf\r\n\r\n"]
    idx = b"\0\0\x08\x02" + struct.pack(">II", 2, 2) + bytes(4)
    yield "idx", [idx, zlib.compress(idx, wbits=31), b"\0\0\x0d\x01" + struct.pack(">I", 1) + bytes(4)]
    listing = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>%s</ListBucketResult>"
    contents = "<Contents><Key>m/%s&amp;</Key><ETag>&quot;a&quot;</ETag><Size>3</Size></Contents>"
    yield "fetch", [(listing % (contents % "1" + contents % "../2")).encode(), b"../x/./y?q=1", b"//host/x", b"https://[::1]:8/x", b"/x#y"]
    yield "image", [*(small_png(*kind) for kind in ((0, 8, 2), (2, 8, 6), (3, 8, 2), (4, 8, 4), (6, 16, 16), (0, 1, 1))), *jpegs()]
    yield "store", store_messages()
    yield "capture", captures()
    yield "host_messages", host_messages()
    head = b"POST /v2/models/m/infer?x=%41 HTTP/1.1\r\nHost: a\r\n"
    yield "http", [head + b"Content-Length: 2\r\n\r\n{}", head + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
                   b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n"]
    yield "json", [b'{"inputs":[{"name":"x\\u00e9","datatype":"FP32","shape":[1,2],"data":[[1.5e3,-2]]}],"id":null,"a":true}', b"[NaN,-Infinity]"]
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    frames = b"\0\0\0\4\0\0\0\0\0" + b"\0\0\4\3\0\0\0\0\1\0\0\0\2" + b"\0\0\2\0\1\0\0\0\1ab"
    yield "frames", [preface + frames, preface + frames + b"\0", frames]
    yield "infer_message", infer_messages()
    yield "pbtxt", [*files("**/config.pbtxt"), b'name: "m" max_batch_size: 4 input [{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }] '
                    b'parameters { key: "seed" value: { string_value: "1" } } dynamic_batching { preferred_batch_size: [ 4 ] }',
                    b'{"name":"m","input":[{"name":"x","dataType":"TYPE_FP32","dims":["4"]}],"instanceGroup":[{"count":2}]}']


def main():
    target = sys.argv[1]
    for name, contents in seeds():
        folder = os.path.join(target, name)
        os.makedirs(folder, exist_ok=True)
        for number, content in enumerate(contents):
            with open(os.path.join(folder, f"{number:04}"), "wb") as out:
                out.write(content)


if __name__ == "__main__":
    main()
