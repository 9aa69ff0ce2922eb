"""The requirements of a binary: shared libraries and versions of their symbols, by `readelf` and `ldd`."""

import pathlib
import re
import subprocess

# Libraries that systems with this C library have; all others are bundled. OpenSSL is the system's, for its security
# fixes.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|ssl|crypto))\.so\.\d+")


class ElfError(SystemExit):
    """The message names the file."""


def readelf(file, *options):
    result = subprocess.run(["readelf", "-W", *options, str(file)], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    if result.returncode != 0 or not result.stdout.strip():
        raise ElfError(f"{file}: readelf says: {result.stderr.strip() or 'this is not an ELF file'}")
    return result.stdout


def needed(dynamic):
    """Names of libraries, from the output of `readelf -d`."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", dynamic)


def versions_in(listing, file=""):
    """Prefix → highest version that is wanted, as (2, 35), of what `readelf -d -V` prints. What has no number has no place in a
    package: GLIBC_PRIVATE is that of one build of the C library."""
    found = {}
    for name in re.findall(r"Name: (G[A-Z]+_\S+)", listing[listing.find("Version needs section"):] if "Version needs section" in listing else ""):
        prefix, _, number = name.partition("_")
        if name == "GLIBC_ABI_DT_RELR":
            number = "2.36"
        if not re.fullmatch(r"\d+(\.\d+)*", number):
            raise ElfError(f"{file}: it wants {name}, which other systems need not have")
        found[prefix] = max(found.get(prefix, ()), tuple(map(int, number.split("."))))
    # mold packs relocations without that mark.
    if "(RELR)" in listing:
        found["GLIBC"] = max(found.get("GLIBC", ()), (2, 36))
    return found


def symbol_versions(file):
    return versions_in(readelf(file, "-d", "-V"), file)


def highest(parts):
    """The union of the requirements of several files."""
    found = {}
    for part in parts:
        for prefix, number in part.items():
            found[prefix] = max(found.get(prefix, ()), number)
    return found


def symbol_version(prefix, needs):
    return f"{prefix}_{'.'.join(map(str, needs[prefix]))}"


def platform_tag(needs, machine):
    """PEP 600: the required C library."""
    if "GLIBC" not in needs:
        raise ElfError("the binary wants no version of glibc: its tag is not known")
    major, minor = needs["GLIBC"][:2]
    return f"manylinux_{major}_{minor}_{machine}"


def libraries_to_bring(binary):
    """Name → file of the libraries that the binary, or one of its libraries, needs, and that are not the system's."""
    said = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    places = dict(re.findall(r"^\s*(\S+) => (/\S+)", said, re.M))
    found, todo = {}, [binary]
    while todo:
        for name in needed(readelf(todo.pop(), "-d")):
            if OF_THE_SYSTEM.fullmatch(name) or name in found:
                continue
            if name not in places:
                raise ElfError(f"{binary}: {name} is not there")
            found[name] = pathlib.Path(places[name]).resolve()
            todo.append(found[name])
    return found
