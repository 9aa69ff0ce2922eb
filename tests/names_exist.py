#!/usr/bin/env python3
"""Reports files, functions and flags that comments, READMEs and docs name but that do not exist. Exit status 1: there are some.

    python3 tests/names_exist.py

A file may be named by the end of its path, with or without its ending in a README's table. A function, class, parameter or
flag in backticks of a README of a source folder must be a word of some source. Names that were replaced, and British spellings, do
not come back.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = re.compile(r"(?<![\w./<*{}\[\]-])((?:\w[\w-]*/)*\w[\w-]*\.(?:h|cpp|cu|def|py|md|cmake))(?![\w*/(-])")
COMMENT = re.compile(r"//(.*)")
IN_BACKTICKS = re.compile(r"`(--[a-z][a-z-]+|[A-Za-z]\w*(?:::\w+)*(?:\(\))?)`")
# Names in backticks that are not ours: of other libraries, of Python, of user code.
SOURCES = (".h", ".cpp", ".cu", ".def", ".py", ".txt", ".cmake", ".proto", ".json", ".html", ".sh", "")
# Files that examples make, or that belong to models and other projects.
ELSEWHERE = {"model.py", "train.py", "client.py", "export.py", "setup.py", "client.cpp", "main.cpp", "app.py", "serve.py", "__torch__.py", "cuda.h", "nvml.h", "foreach_target.h", "x.cpp", "x_cpu.cpp", "x_cuda.cu", "my_pass.cpp", "file.cpp", "base.py", "optim.py"}
RENAMED = re.compile(r"\b_?(InferTicket|InferWatch|RequestPath|ShortRuns|AnswerOrder|LoadTickets|MemoryKeeper|RankTeam|RankLink|HostJoiner|"
                     r"HostOutbox|RestingHosts|StreamFeeder|FileFacts|KeepsSamples|keeps_samples|JoinsAs|LaneCall|find_lane|sample_split|"
                     r"kMeetingNs|begin_way|end_way|late_device|wide_unsigned|whole_config|may_pass|first_not_finite|lookout|obstacle|"
                     r"stand_ins|EngineFactory)_?\b")

BRITISH = re.compile(r"\b\w*?(colour|behaviour|neighbour|honour|favour|centre[ds]?\b|licence|analyse[sd]?\b|labelled(?!_identity)|"
                     r"(?:normal|optim|recogn|initial|serial|quant|synchron|vector|special|general|minim|maxim|summar|parallel|token|random)"
                     r"is(?:e[sdr]?|ing|ation)\b)", re.IGNORECASE)


def tracked() -> list[str]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def main() -> int:
    files = tracked()
    made = [name.removesuffix(".in") for name in files if name.endswith(".in")]  # by CMake
    ends = {"/".join(parts[i:]) for name in files + made for parts in [name.split("/")] for i in range(len(parts))}
    # What scripts/operators.py makes.
    ends |= {f"ops/{name.split('/')[1]}.h" for name in files if name.endswith(".ops")} | {"tensord/ops.h", "tensord/methods.h", "tensord/method_list.h", "method_list.h"}
    sources = {}
    for name in files:
        if pathlib.Path(name).suffix in (*SOURCES, ".md") and "/data/" not in name:
            try:
                sources[name] = (ROOT / name).read_text()
            except UnicodeDecodeError:
                continue
    words = {word for name, source in sources.items() if not name.endswith(".md") for word in re.findall(r"[A-Za-z_]\w*", source)}
    flags = {flag for name, source in sources.items() if not name.endswith(".md") for flag in re.findall(r"--[a-z][a-z-]+", source)}
    # A README's table may leave out a file's ending, or the suffix of its device.
    words |= {re.sub(r"_(cpu|cuda|test)$", "", pathlib.Path(name).name.split(".")[0]) for name in files}
    words |= {pathlib.Path(name).name.split(".")[0] for name in files} | {"e2e_chains_test"}
    problems = []
    for name, source in sources.items():
        if name == "tests/names_exist.py" or name == "CHANGELOG.md":
            continue
        is_page = name.endswith(".md")
        for number, line in enumerate(source.split("\n"), 1):
            if name.endswith((".txt", ".cmake")):
                problems += [f"{name}:{number}: no file {file}" for file in FILE.findall(line)
                             if file.startswith(("core/", "kernels/", "server/", "clients/", "python/")) and file not in ends]
            said = line if is_page else " ".join(COMMENT.findall(line)) if name.endswith((".h", ".cpp", ".cu", ".def")) else ""
            for file in FILE.findall(said):
                is_elsewhere = file.split("/")[-1] in ELSEWHERE or file.startswith(("torch/", "code/")) or "NAME" in file or file[0] == "_"
                if file not in ends and not is_elsewhere and ("/" in file or not name.startswith(("docs/", "examples/"))):
                    problems.append(f"{name}:{number}: no file {file}")
            if is_page and not name.startswith(("docs/", "examples/", "README", "CONTRIBUTING")):
                for quoted in IN_BACKTICKS.findall(line):
                    known = quoted in flags if quoted.startswith("--") else quoted.rstrip("()").split("::")[-1] in words
                    if not known and "_" in quoted:
                        problems.append(f"{name}:{number}: nothing is called {quoted}")
            for word in BRITISH.findall(line) if "examples/triton" not in name else ():
                problems.append(f"{name}:{number}: {word} is not the American spelling")
            for word in RENAMED.findall(line):
                problems.append(f"{name}:{number}: {word} has another name now")
    print("\n".join(problems) or f"{len(sources)} files: all that they name exists")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
