"""Makes the wheel tensord-server of a binary: the daemon as the command `tensord`, and beside it, in libexec/tensord, the shared
libraries that a system may lack, with Gloo for jobs of several processes. Its tag names the C library that the binary and those libraries require.

Usage: python3 -m deploy.wheel.server_wheel BUILD_FOLDER OUT_FOLDER   (scripts/wheel calls it; needs binutils and patchelf)
"""

import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from deploy.wheel import elf

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "tensord_server"
DESCRIPTION = """\
# tensord-server

The daemon and the command line of tensord, which serves and trains TorchScript, `torch.export` and ONNX models over gRPC and HTTP:

    pip install tensord-server
    tensord serve --model-repository my-models

No compiler, no Python package and no PyTorch is needed. It takes from the system the C library ({libc} or newer), the C++ library
({cxx}) and OpenSSL 3, whose fixes therefore reach it without a new wheel. The client for Python is `tensord`; `tensord[server]` is both.
"""


def output_of(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"server_wheel: {' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def patchelf():
    own = ROOT / "build" / "engine_tools" / "bin" / "patchelf"
    found = shutil.which("patchelf") or (str(own) if own.exists() else None)
    if not found:
        raise SystemExit("server_wheel: there is no patchelf: scripts/setup wheel")
    return found


def version_of(binary):
    found = re.fullmatch(r"tensord (\d+(?:\.\d+)+)", output_of(binary, "--version").splitlines()[0])
    if not found:
        raise SystemExit(f"server_wheel: {binary} --version says no version")
    return found[1]


def lay_out(binary, libraries, folder):
    """The installed files, stripped, in a wheel's data folders: scripts/tensord and libexec/tensord/*."""
    program = folder / "scripts" / "tensord"
    program.parent.mkdir(parents=True)
    output_of("strip", "-o", program, binary)
    if libraries:
        beside = folder / "data" / "libexec" / "tensord"  # not lib, which `pip install --target` omits
        beside.mkdir(parents=True)
        for name, path in libraries.items():
            shutil.copyfile(path, beside / name)
            output_of(patchelf(), "--force-rpath", "--set-rpath", "$ORIGIN", beside / name)
        # DT_RPATH, which also holds for what libraries need, and goes before LD_LIBRARY_PATH.
        output_of(patchelf(), "--force-rpath", "--set-rpath", "$ORIGIN/../libexec/tensord", program)
    program.chmod(0o755)


def licenses(build, libraries, folder):
    """Debian's licenses of what is linked in and brought along, by package; none for a build of shared libraries."""
    output_of(ROOT / "deploy" / "docker" / "linked_packages", build / "build.ninja", folder / "linked")
    found = {path.parent.name: path.read_bytes() for path in (folder / "linked" / "usr" / "share" / "doc").glob("*/copyright")}
    for path in libraries.values():
        if path.is_relative_to(build):
            continue
        package = output_of("dpkg", "-S", f"*/{path.name}").split(":")[0]
        copyright = pathlib.Path("/usr/share/doc") / package / "copyright"
        if copyright.exists():
            found[package] = copyright.read_bytes()
    return found


def metadata(version, needs):
    head = [
        ("Metadata-Version", "2.1"), ("Name", NAME.replace("_", "-")), ("Version", version),
        ("Summary", "Serves and trains TorchScript and ONNX models over gRPC and HTTP, without PyTorch: the daemon of tensord"),
        ("Requires-Python", ">=3.9"), ("Keywords", "inference,TorchScript,ONNX,KServe,Triton,gRPC"),
        ("Classifier", "Environment :: No Input/Output (Daemon)"), ("Classifier", "Operating System :: POSIX :: Linux"),
        ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
        ("Description-Content-Type", "text/markdown"),
    ]
    cxx = "with " + elf.symbol_version("GLIBCXX", needs) if "GLIBCXX" in needs else "any"
    body = DESCRIPTION.format(libc=elf.symbol_version("GLIBC", needs).replace("_", " ").lower(), cxx=cxx)
    return "".join(f"{name}: {value}\n" for name, value in head) + "\n" + body


def write_wheel(out, version, needs, data, license_contents):
    """The wheel of the files in `data`; the same files give the same bytes."""
    tag = "py3-none-" + elf.platform_tag(needs, platform.machine())
    info = f"{NAME}-{version}.dist-info"
    files = {f"{NAME}-{version}.data/{path.relative_to(data)}": (path.read_bytes(), path.stat().st_mode & 0o777)
             for path in sorted(data.rglob("*")) if path.is_file()}
    files[f"{info}/METADATA"] = (metadata(version, needs).encode(), 0o644)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: tensord\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    for package, content in sorted(license_contents.items()):
        files[f"{info}/licenses/{package}"] = (content, 0o644)
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = pathlib.Path(out) / f"{NAME}-{version}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make(build, out):
    build = pathlib.Path(build).resolve()
    binary, gloo = build / "server" / "tensord", build / "lib" / "tensord" / "libtensord_gloo.so"
    if not gloo.exists():
        raise SystemExit(f"server_wheel: there is no {gloo}: scripts/setup build, and build again")
    libraries = elf.libraries_to_bring(binary) | elf.libraries_to_bring(gloo) | {gloo.name: gloo}
    needs = elf.highest(elf.symbol_versions(file) for file in (binary, *libraries.values()))
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        lay_out(binary, libraries, work / "data")
        return write_wheel(out, version_of(binary), needs, work / "data", licenses(build, libraries, work))


if __name__ == "__main__":
    made = make(sys.argv[1], sys.argv[2])
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")
