"""Has clang prove that members marked TENSORD_GUARDED_BY are touched under their lock only (core/base/mutex.h):

    python3 tests/thread_safety.py build/dev [PART OF A PATH …]

Looks at the units with sources that take locks, or include a header that has guarded members; with parts of paths at each
such source alone. Exit status 1: clang found something.
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tests import compile_commands

CLANG = "clang++-19"
CCACHE = shutil.which("ccache")
ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCKS = re.compile(r"\b(Mutex|SharedMutex|MutexLock|ReaderLock|WriterLock|TENSORD_GUARDED_BY)\b")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
# Options of GCC's command that clang does not know, or that write files.
DROPPED = re.compile(r"-c|-MD|-O\d|-W.*|-fno-gnu-unique|-fconcepts-.*|--param=ggc-.*")
DROPPED_WITH_VALUE = {"-o", "-MF", "-MT", "-MQ"}


def has_locks(path, known={}):
    if path not in known:
        known[path] = path.exists() and path.name != "mutex.h" and bool(LOCKS.search(path.read_text()))
    return known[path]


def is_concerned(source):
    if has_locks(source):
        return True
    return any(has_locks(ROOT / name) for name in INCLUDE.findall(source.read_text()))


def command_for(entry):
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in DROPPED_WITH_VALUE:
            next(words)
        elif not DROPPED.fullmatch(word):
            kept.append(word)
    compiler = next(i for i, word in enumerate(kept) if re.search(r"(c\+\+|g\+\+)[-\d]*$", word))
    return [CLANG, *kept[compiler + 1:], "-Wno-everything", "-Wthread-safety", "-Werror"]


def check(entry):
    command = command_for(entry)
    if not CCACHE:
        return subprocess.run([*command, "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    # The compiler cache remembers which objects had no errors, but not plain checks.
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([CCACHE, *command, "-O0", "-c", "-o", f"{folder}/unit.o"], cwd=entry["directory"], capture_output=True,
                              text=True, env={**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"})


def is_ours(source):
    return source.endswith(".cpp") and source.startswith(f"{ROOT}/") and not source.startswith(f"{ROOT}/build/")


def main():
    build, parts = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if parts:
        units = [(entry, [entry["file"]]) for entry in compile_commands.sources(build) if any(part in entry["file"] for part in parts)]
    else:
        units = compile_commands.units(build)
    units = [entry for entry, sources in units if any(is_ours(source) and is_concerned(pathlib.Path(source)) for source in sources)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for done in pool.map(check, units):
            if done.returncode:
                failed += 1
                print(done.stderr, flush=True)
    print(f"{len(units)} units, {failed} with errors")
    return failed > 0 or not units


if __name__ == "__main__":
    sys.exit(main())
