"""What the kernels of libtensord_cuda.so take of a chip: python3 -m tests.cuda.kernel_limits LIBRARY EMULATED > TABLE

A line a kernel: registers of a thread, bytes of static shared memory, its name in EMULATED, the library of the emulated
devices, which refuse launches by it. A kernel that EMULATED does not have is an error."""

import pathlib
import re
import struct
import subprocess
import sys

MAGIC, EM_CUDA = b"\x7fELF\x02\x01\x01", 190
WITH_VALUE, REGISTERS = 4, 0x2F  # a format and an attribute of .nv.info


class Cubin:
    """The code for one chip: an ELF file within the library."""

    def __init__(self, data):
        self.data = data
        start, size, count, names = (struct.unpack_from(f, data, at)[0] for f, at in (("<Q", 0x28), ("<H", 0x3A), ("<H", 0x3C), ("<H", 0x3E)))
        rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
        self.by_number = rows
        self.sections = {self.text(rows[names], row[0]): row for row in rows}

    def text(self, table, offset):
        at = table[4] + offset
        return self.data[at : self.data.index(b"\0", at)].decode()

    def content(self, section):
        return self.data[section[4] : section[4] + section[5]]

    def symbol(self, number):
        symbols = self.sections[".symtab"]
        return self.text(self.by_number[symbols[6]], struct.unpack_from("<I", self.content(symbols), 24 * number)[0])

    def registers(self):
        out, at, info = {}, 0, self.content(self.sections[".nv.info"])
        while at < len(info):
            form, attribute, size = struct.unpack_from("<BBH", info, at)
            if form == WITH_VALUE and attribute == REGISTERS:
                number, count = struct.unpack_from("<II", info, at + 4)
                out[self.symbol(number)] = count
            at += 4 + (size if form == WITH_VALUE else 0)
        return out

    def kernels(self):
        for name, count in self.registers().items():
            if ".text." + name in self.sections:
                shared = self.sections.get(".nv.shared." + name)
                yield name, count, shared[5] if shared else 0


def kernels_of(library):
    data, at = pathlib.Path(library).read_bytes(), 0
    while (at := data.find(MAGIC, at + 1)) >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == EM_CUDA:
            yield from Cubin(data[at:]).kernels()


def run(*command, text=""):
    return subprocess.run(command, input=text, text=True, check=True, capture_output=True).stdout.splitlines()


def main():
    kernels = list(kernels_of(sys.argv[1]))
    names = run("c++filt", text="\n".join(name for name, _, _ in kernels))
    names = [re.sub(r"cuda::std::__\w+::", "std::", name) for name in names]  # the library of nvcc
    there = {line.split(" ", 2)[2] for line in run("nm", "--demangle", "--defined-only", sys.argv[2])}
    if missing := sorted(set(names) - there):
        sys.exit(f"{sys.argv[2]} has no kernel {missing[0]}, and {len(missing) - 1} more")
    if not names:
        sys.exit(f"{sys.argv[1]} has no kernel")
    for (_, registers, shared), name in zip(kernels, names):
        print(registers, shared, name)


if __name__ == "__main__":
    main()
