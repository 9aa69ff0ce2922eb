"""The wheel tensord-server: its tag, from the requirements of its binaries, its metadata and its record. The
whole wheel is server_wheel_test's, which is long."""

import base64
import csv
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile

from deploy.wheel import elf, server_wheel

ROOT = pathlib.Path(__file__).resolve().parents[2]
DYNAMIC = """
Dynamic section at offset 0x2da7000 contains 40 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libgomp.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
{more}
Version symbols section '.gnu.version' contains 3 entries:
 Addr: 0x000000000001b1c0  Offset: 0x0001b1c0  Link: 5 (.dynsym)

Version definition section '.gnu.version_d' contains 1 entry:
  000000: Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: GLIBC_9.9

Version needs section '.gnu.version_r' contains 3 entries:
  000000: Version: 1  File: libc.so.6  Cnt: 3
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5
  0x0020:   Name: GLIBC_{glibc}  Flags: none  Version: 4
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 3
  0x0040: Version: 1  File: libstdc++.so.6  Cnt: 2
  0x0050:   Name: GLIBCXX_3.4.9  Flags: none  Version: 8
  0x0060:   Name: GLIBCXX_3.4.30  Flags: none  Version: 7
"""


def dynamic(glibc="2.34", more=""):
    return DYNAMIC.replace("{glibc}", glibc).replace("{more}", more)


class ElfTest(unittest.TestCase):
    def test_versions_are_numbers_and_not_strings(self):
        needs = elf.versions_in(dynamic())
        self.assertEqual(needs, {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30)})
        self.assertEqual(elf.platform_tag(needs, "x86_64"), "manylinux_2_34_x86_64")
        self.assertEqual(elf.symbol_version("GLIBCXX", needs), "GLIBCXX_3.4.30")

    def test_the_highest_of_several_files_counts(self):
        needs = elf.highest([elf.versions_in(dynamic()), elf.versions_in(dynamic("2.38")), {}])
        self.assertEqual(elf.platform_tag(needs, "aarch64"), "manylinux_2_38_aarch64")

    def test_packed_relocations_want_the_loader_that_reads_them(self):
        for listing in (dynamic(more=" 0x0000000000000024 (RELR)               0x1000"), dynamic("ABI_DT_RELR")):
            self.assertEqual(elf.versions_in(listing)["GLIBC"], (2, 36))

    def test_what_is_of_one_build_of_the_c_library_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "GLIBC_PRIVATE"):
            elf.versions_in(dynamic("PRIVATE"), "tensord")
        with self.assertRaisesRegex(SystemExit, "glibc"):
            elf.platform_tag({}, "x86_64")

    def test_libraries_of_the_system_stay_there(self):
        self.assertEqual(elf.needed(dynamic()), ["libgomp.so.1", "libc.so.6"])
        for name in ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libssl.so.3", "libcrypto.so.3"):
            self.assertTrue(elf.OF_THE_SYSTEM.fullmatch(name), name)
        for name in ("libgomp.so.1", "libcpp-httplib.so.0.11", "libcares.so.2", "libm4ri.so.1"):
            self.assertFalse(elf.OF_THE_SYSTEM.fullmatch(name), name)

    def test_a_real_program_and_what_is_none(self):
        self.assertIn("GLIBC", elf.symbol_versions("/bin/true"))
        self.assertEqual(elf.libraries_to_bring("/bin/true"), {})
        with self.assertRaisesRegex(SystemExit, "no ELF file|readelf"):
            elf.symbol_versions(__file__)


class WheelTest(unittest.TestCase):
    NEEDS = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, out="out"):
        data = self.folder / f"data-{out}"
        server_wheel.lay_out("/bin/true", {}, data)
        return server_wheel.write_wheel(self.folder / out, "1.2.3", self.NEEDS, data, {"libgrpc": b"Apache"})

    def test_names_record_and_metadata(self):
        wheel = self.make()
        self.assertRegex(wheel.name, r"^tensord_server-1\.2\.3-py3-none-manylinux_2_35_\w+\.whl$")
        archive = zipfile.ZipFile(wheel)
        read = {name: archive.read(name) for name in archive.namelist()}
        info = "tensord_server-1.2.3.dist-info/"
        self.assertEqual(set(read), {"tensord_server-1.2.3.data/scripts/tensord", *(info + name for name in
                         ("METADATA", "WHEEL", "RECORD", "licenses/libgrpc"))})
        for name, digest, size in csv.reader(read[info + "RECORD"].decode().splitlines()):
            if name == info + "RECORD":
                continue
            self.assertEqual((digest, int(size)), ("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(read[name]).digest()).decode().rstrip("="),
                                                   len(read[name])))
        self.assertIn(f"Tag: {wheel.stem.split('-', 2)[2]}\n", read[info + "WHEEL"].decode())
        metadata = read[info + "METADATA"].decode()
        for line in ("Name: tensord-server\n", "Version: 1.2.3\n", "glibc 2.35", "GLIBCXX_3.4.30"):
            self.assertIn(line, metadata)

    def test_the_same_files_give_the_same_bytes(self):
        self.assertEqual(self.make("one").read_bytes(), self.make("two").read_bytes())

    def test_pip_installs_the_command(self):
        wheel = self.make()
        subprocess.run([sys.executable, "-m", "venv", self.folder / "env"], check=True)
        pip = [self.folder / "env/bin/pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-index", wheel], check=True)
        self.assertEqual(subprocess.run([self.folder / "env/bin/tensord"]).returncode, 0)
        subprocess.run([*pip, "uninstall", "--yes", "tensord-server"], check=True)
        self.assertFalse((self.folder / "env/bin/tensord").exists())

    def test_a_build_that_links_no_archives_has_no_licenses_of_them(self):
        (self.folder / "build.ninja").write_text("build tensord: link main.o /usr/lib/x86_64-linux-gnu/libspdlog.so\n")
        self.assertEqual(server_wheel.licenses(self.folder, {}, self.folder), {})

    def test_other_wheels_ask_for_it(self):
        client = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
        engine = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
        self.assertEqual(client["optional-dependencies"]["server"], ["tensord-server"])
        self.assertEqual(engine["dependencies"], [f"tensord-server=={engine['version']}"])
        self.assertNotIn("scripts", client)  # the daemon provides `tensord`


if __name__ == "__main__":
    unittest.main()
