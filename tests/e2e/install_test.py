"""The installed files: example programs build and run; man pages and completions agree with --help."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from PIL import Image

from tests.e2e.daemon_process import BINARY, ROOT, DaemonProcess

BUILD = os.environ["TENSORD_BUILD"]
CMAKE = os.environ["TENSORD_CMAKE"]
MODELS = os.path.join(ROOT, "examples", "models")
CLIENTS = os.path.join(ROOT, "build", "clients", "bin", "python")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}:\n{result.stdout[-5000:]}{result.stderr[-5000:]}")
    return result.stdout


class InstallTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def test_programs_of_others_find_the_libraries(self):
        run(CMAKE, "--install", BUILD, "--prefix", self.path("prefix"), "--component", "development")
        launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if (ccache := shutil.which("ccache")) else []
        run(CMAKE, "-S", os.path.join(ROOT, "examples", "cpp"), "-B", self.path("build"), "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.path('prefix')}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", *launcher)
        run(CMAKE, "--build", self.path("build"))
        self.assertEqual(run(self.path("build", "fit_line")), "y = 3.000x -1.000\n")
        self.assertEqual(run(self.path("build", "tensors")).splitlines(),
                         ["mean 3.75", "largest of row 2: 6.5 at 3", "sum 22.5, of the second column 0.0", "float32[4, 4]", "int64[2, 1, 4]", "refused"])
        self.assertEqual(run(self.path("build", "memory")), "of the program: 4\n0 1 4 9 are squares\n")
        self.assertEqual(run(self.path("build", "gradients")), "3x² is 3 12 27\nstepped to 0.7\n")
        self.assertEqual(run(self.path("build", "train_circle"), self.path("circles")),
                         "right: more than 95 %\nthe archive says the same: yes\n")
        with DaemonProcess(self.path("circles")) as daemon:
            self.assertEqual(run(self.path("build", "ask_circle"), daemon.ready["grpc"]), "inside\noutside\n")
        self.write_pictures()
        self.assertEqual(run(self.path("build", "train_images"), self.path("pictures")), "right: 32 of 32 images of 2 classes\n")
        self.assertEqual(sorted(run(BINARY, "launch", "--nproc", "2", self.path("build", "train_together")).splitlines()),
                         [f"[default{rank}]:rank {rank} of 2: y = 3.000x -1.000" for rank in range(2)])
        self.assertIn("a square", run(self.path("build", "run_shapes"), os.path.join(MODELS, "shapes", "1", "model.pt")))
        with DaemonProcess(MODELS) as daemon:
            answer = run(self.path("build", "ask_shapes"), daemon.ready["grpc"])
            self.assertRegex(answer, r"version 1 of shapes: a circle \(\d+%\)")

    def write_pictures(self):
        for name, color in (("day", (230, 200, 120)), ("night", (20, 30, 90))):
            os.makedirs(self.path("pictures", name))
            for i in range(16):
                image = Image.new("RGB", (40 + i, 36), tuple(min(255, part + i) for part in color))
                image.save(self.path("pictures", name, f"{i}.{'png' if i % 2 else 'jpg'}"))

    @unittest.skipUnless(os.path.exists(CLIENTS), "scripts/setup test makes build/clients")
    def test_the_python_client_is_made_without_protobufs_headers(self):
        """As on a client's machine: protobuf's own .proto files come with grpcio-tools, not with libprotobuf-dev."""
        hide = "mount -t tmpfs none /usr/include"
        if subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", hide], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespaces here")
        shutil.copytree(os.path.join(ROOT, "protos"), self.path("protos"))
        shutil.copytree(os.path.join(ROOT, "clients", "python"), self.path("clients", "python"), ignore=shutil.ignore_patterns("*_pb2.pyi", "*.binpb"))
        build = f"{CLIENTS} -m pip wheel --no-deps --no-build-isolation --disable-pip-version-check -w {self.path('wheels')} {self.path('clients', 'python')}"
        run("unshare", "--map-root-user", "--mount", "sh", "-c", f"{hide} && {build}")
        wheel, = glob.glob(self.path("wheels", "tensord-*.whl"))
        with zipfile.ZipFile(wheel) as made:
            self.assertIn("tensord/_protocol/descriptors.binpb", made.namelist())

    def test_pkg_config_finds_the_engine(self):
        run(CMAKE, "--install", BUILD, "--prefix", self.path("prefix"), "--component", "development")
        found, = glob.glob(self.path("prefix", "**", "tensord-engine.pc"), recursive=True)
        # The installation is relocatable.
        os.rename(self.path("prefix"), self.path("moved"))
        environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(found).replace(self.path("prefix"), self.path("moved"))}
        flags = run("pkg-config", "--cflags", "--libs", "tensord-engine", env=environment).split()
        library, = [flag[2:] for flag in flags if flag.startswith("-L")]
        run("c++", "-O1", "-Wall", "-Wextra", "-Werror", os.path.join(ROOT, "examples", "cpp", "tensors.cpp"), "-o", self.path("tensors"), *flags)
        self.assertIn("refused", run(self.path("tensors"), env={**os.environ, "LD_LIBRARY_PATH": library}))

    def test_pages_and_completions(self):
        run(sys.executable, os.path.join(ROOT, "scripts", "command_pages.py"), BINARY, self.folder)
        pages = os.listdir(self.path("man"))
        self.assertIn("tensord.1", pages)
        for page in pages:
            result = subprocess.run(["groff", "-man", "-ww", "-Tutf8", self.path("man", page)], capture_output=True,
                                    text=True, check=True)
            self.assertEqual(result.stderr, "", page)
            command = page[:-2].split("-")[1:]
            options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", run(BINARY, *command, "--help"), re.M)
            self.assertTrue(options)
            shown = re.sub(r"\x1b\[[\d;]*m|.\x08", "", result.stdout)
            for option in options:
                self.assertIn(option, shown, page)
            if command and command[0] in ("infer", "train", "bench"):
                self.assertRegex(shown, rf"EXAMPLES\n +tensord {command[0]} ")

    def complete(self, *words):
        """bash's completions for the last word."""
        script = (f"source {self.path('bash', 'tensord')}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                  "compopt() { :; }; _tensord; echo ${COMPREPLY[*]}")
        return run("bash", "-c", script, "bash", *words).split()

    def test_bash_completes(self):
        run(sys.executable, os.path.join(ROOT, "scripts", "command_pages.py"), BINARY, self.folder)
        self.assertEqual(self.complete("tensord", "se"), ["serve"])
        self.assertEqual(self.complete("tensord", "inf"), ["infer"])
        self.assertEqual(self.complete("tensord", "infer", "--cl"), ["--classes"])
        self.assertEqual(self.complete("tensord", "jobs", "ro"), ["rollback"])
        self.assertEqual(self.complete("tensord", "serve", "--model-control"), ["--model-control-mode"])
        self.assertEqual(self.complete("tensord", "serve", "--grpc-port", "1", "--model-control-mode", ""),
                         ["none", "poll", "explicit"])
        self.assertEqual(self.complete("tensord", "nothing-of-it"), [])

    def test_the_package_has_what_a_system_needs(self):
        run(os.path.join(os.path.dirname(CMAKE), "cpack"), "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B",
            self.folder, "-D", "CPACK_COMPONENTS_ALL=daemon", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        package, = glob.glob(self.path("tensord_*.deb"))
        fields = run("dpkg-deb", "--field", package)
        self.assertIn("Package: tensord\n", fields)
        self.assertRegex(fields, r"Depends: .*libc6 \(>=")
        run("dpkg-deb", "--raw-extract", package, self.path("root"))
        for wanted in ("usr/bin/tensord", "usr/lib/systemd/system/tensord.socket", "usr/lib/sysusers.d/tensord.conf",
                       "usr/share/man/man1/tensord.1", "usr/share/man/man1/tensord-serve.1",
                       "usr/share/bash-completion/completions/tensord", "usr/share/zsh/vendor-completions/_tensord",
                       "usr/share/fish/vendor_completions.d/tensord.fish", "usr/share/tensord/tensord.default"):
            self.assertTrue(os.path.isfile(self.path("root", wanted)), wanted)
        self.assertFalse(os.path.exists(self.path("root", "usr", "include")))
        for script in ("postinst", "prerm", "postrm"):
            run("sh", "-n", self.path("root", "DEBIAN", script))
            self.assertTrue(os.access(self.path("root", "DEBIAN", script), os.X_OK), script)
        with open(self.path("root", "usr", "lib", "systemd", "system", "tensord.service")) as unit:
            started = re.search(r"^ExecStart=/(\S+) serve (.*)$", unit.read(), re.M)
        self.assertTrue(os.path.isfile(self.path("root", started.group(1))))
        flags = run(BINARY, "serve", "--help")
        for flag in re.findall(r"--[\w-]+", started.group(2)):
            self.assertIn(flag, flags)


if __name__ == "__main__":
    unittest.main()
