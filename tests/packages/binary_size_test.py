"""scripts/binary_size.py on a small linker map: every byte of the file is in one row."""

import collections
import unittest

from scripts import binary_size

MAP = """\
               VMA       Size Align Out     In      Symbol
                 0         64     8 EHDR
             0x100        100     8 .eh_frame
             0x200         90    16 .text
             0x200         30    16         kernels/CMakeFiles/tensord_kernels.dir/norm/rows.cpp.o:(.text)
             0x200         30     0                 tensord::rows()
             0x220         50    16         core/libtensord_base.a(error.cpp.o):(.text._ZN7tensord4failEv)
             0x300         20     4 .gcc_except_table
             0x300         20     1         core/libtensord_base.a(error.cpp.o):(.gcc_except_table._ZN7tensord4failEv)
             0x400       7000     8 .bss
             0x400       7000     8         core/libtensord_base.a(error.cpp.o):(.bss)
             0x900         40     1 .rodata.str
"""


class BinarySizeTest(unittest.TestCase):
    def test_sizes_by_object_and_what_the_map_does_not_divide(self):
        found = {name: dict(kinds) for name, kinds in binary_size.sizes(MAP, lambda name: name).items()}
        self.assertEqual(found, {
            "kernels/CMakeFiles/tensord_kernels.dir/norm/rows.cpp.o": {"code": 30},
            "core/libtensord_base.a(error.cpp.o)": {"code": 50, "exceptions": 20},
            "(.eh_frame)": {"exceptions": 100}, "(.text)": {"code": 10}, "(.rodata.str)": {"data": 40},
        })

    def test_small_rows_become_one(self):
        counts = {"core/jit/ir": collections.Counter(code=5), "core/jit/passes": collections.Counter(code=6), "protos": collections.Counter(data=1)}
        self.assertEqual(binary_size.shortened(counts, 2, 2), {"core/jit": {"code": 11}, "(all smaller ones)": {"data": 1}})


if __name__ == "__main__":
    unittest.main()
