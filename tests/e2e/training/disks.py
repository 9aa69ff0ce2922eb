"""Small disks for daemons (needs root), which tests can fill."""

import os
import subprocess

FILLER = "filler"


def missing(folder):
    """Why disks cannot be created here; empty if they can."""
    if os.geteuid() != 0:
        return "needs root: mounts a tmpfs"
    found = mount(folder, 1 << 20)
    if not found:
        unmount(folder)
    return found


def mount(folder, size_bytes):
    """Returns the error."""
    found = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder], capture_output=True, text=True, check=False)
    return found.stderr.strip() or f"mount: exit code {found.returncode}" if found.returncode else ""


def unmount(folder):
    subprocess.run(["umount", folder], capture_output=True, check=False)


def fill(folder):
    """Makes writes to the folder fail until empty()."""
    with open(os.path.join(folder, FILLER), "wb", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            try:
                while filler.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


def empty(folder):
    os.remove(os.path.join(folder, FILLER))
