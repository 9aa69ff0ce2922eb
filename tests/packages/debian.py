"""A clean Debian in a folder, created by debootstrap. Needs root and a mirror."""

import json
import os
import pathlib
import random
import shlex
import shutil
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def write_pictures(path):
    """Random training data for examples/models/shapes, as safetensors, for train_in_two_processes."""
    rows, drawn = 16, random.Random(0)
    parts = {"image": ("F32", [rows, 1, 32, 32], struct.pack(f"<{rows * 1024}f", *(drawn.random() for _ in range(rows * 1024)))),
             "labels": ("I64", [rows], struct.pack(f"<{rows}q", *(row % 4 for row in range(rows))))}
    header, body = {}, b""
    for name, (dtype, shape, data) in parts.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(head)) + head + body)


# For a daemon that serves shapes and has the file of write_pictures in its --training-data.
TWO_PROCESSES = ("train", "shapes", "--data", "pictures.safetensors", "--label", "labels", "--loss", "cross_entropy", "--steps", "2", "--batch-size", "8",
                 "--world-size", "2")


def base_of(suite, packages):
    """Kept in build/: the next test starts from it."""
    base = ROOT / "build" / "-".join(["debian", suite, *packages])
    if not base.exists():
        print(f"making a clean Debian ({base.name})", flush=True)
        shutil.rmtree(f"{base}.part", ignore_errors=True)
        run(ROOT / "scripts" / "base_image", f"{base}.part", suite, ",".join(packages))
        # Slim images exclude documentation.
        os.remove(f"{base}.part/etc/dpkg/dpkg.cfg.d/slim")
        os.rename(f"{base}.part", base)
    return base


class Debian:
    """A Debian in a folder; use as a context manager."""

    def __init__(self, suite="bookworm", packages=()):
        base = base_of(suite, packages)
        self.folder = tempfile.mkdtemp(prefix="tensord_debian_")
        run("cp", "-a", f"{base}/.", self.folder)
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))
        pathlib.Path(self.path("/usr/sbin/policy-rc.d")).write_text("#!/bin/sh\nexit 101\n")
        os.chmod(self.path("/usr/sbin/policy-rc.d"), 0o755)

    def __enter__(self):
        for kind in ("proc", "sysfs"):
            run("mount", "-t", kind, kind, self.path("/proc" if kind == "proc" else "/sys"))
        return self

    def __exit__(self, *_):
        for folder in ("/proc", "/sys"):
            run("umount", "-l", self.path(folder))
        shutil.rmtree(self.folder)

    def path(self, name):
        return self.folder + name

    def command(self, *command):
        """A command that runs there, without this machine's environment variables."""
        return ["chroot", self.folder, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command]

    def run(self, *command):
        return run(*self.command(*command))

    def install(self, package):
        shutil.copy(package, self.path("/root/"))
        self.run("apt-get", "update", "-qq")
        self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", f"/root/{os.path.basename(package)}")
