"""Runs the daemon and third-party tests against it, and records the results."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path(os.environ.get("COMPAT_WORK", "/tmp/tensord-compat"))
SOURCES = WORK / "src"
MODELS = WORK / "models"
PYTHON = WORK / "venv" / "bin" / "python"
BIN = os.environ["COMPAT_BIN"]
RESULTS = WORK / "results.jsonl"
QA = SOURCES / "server" / "qa"
CLIENT = SOURCES / "client"


def without_huge_pages():
    """Runs in a new process: without transparent huge pages, which would count untouched memory as used."""
    PR_SET_THP_DISABLE = 41
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


class Server:
    """tensord on Triton's ports."""

    def __init__(self, *repositories, flags=(), env=None, name="server", wait=60, expect_exit=False, before=None):
        self.repositories, self.flags, self.wait = repositories, [str(flag) for flag in flags], wait
        self.env, self.expect_exit = {**os.environ, **(env or {})}, expect_exit
        self.before = before  # called in the new process
        self.log_path = WORK / "logs" / f"{name}.server.log"

    def __enter__(self):
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        command = [BIN, "serve", "--id", "triton", "--grpc-port", "8001", "--metrics-port", "8002", "--allow-http", "true",
                   "--http-port", "8000"]
        if "--exit-timeout-secs" not in self.flags:
            command += ["--exit-timeout-secs", "5"]
        for repository in self.repositories:
            command += ["--model-repository", str(repository)]
        self.process = subprocess.Popen(command + self.flags, stdout=open(self.log_path, "w"), stderr=subprocess.STDOUT,
                                        env=self.env, preexec_fn=self.before)
        self.up = self.until_up()
        return self

    def until_up(self):
        end = time.monotonic() + self.wait
        while time.monotonic() < end and self.process.poll() is None:
            run = subprocess.run([BIN, "models", "--json", "--timeout", "2"], capture_output=True, text=True)
            if run.returncode == 0 and '"LOADING"' not in run.stdout and "models loaded" in self.log:
                return True
            time.sleep(0.2)
        return False

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def __exit__(self, *_):
        self.stop()


def metrics():
    with urllib.request.urlopen("http://127.0.0.1:8002/metrics", timeout=5) as answer:
        return answer.read().decode()


def record(suite, name, outcome, text="", seconds=0.0, kind="qa"):
    with open(RESULTS, "a") as out:
        out.write(json.dumps({"suite": suite, "name": name, "outcome": outcome, "text": text, "seconds": seconds, "kind": kind}) +
                  "\n")
    line = next((line for line in reversed(text.strip().splitlines()) if line.strip()), "")
    print(f"{outcome:5} {suite} {name}" + (f"   {line[:200]}" if outcome != "pass" else ""), flush=True)
    return outcome == "pass"


def check(suite, name, condition, text="", kind="own"):
    return record(suite, name, "pass" if condition else "fail", "" if condition else text, kind=kind)


def methods(path, env=None):
    """Class.method of all tests in a unittest file."""
    path = pathlib.Path(path)
    full = environment(env)
    full["PYTHONPATH"] += f":{path.parent}:{path.parent.parent / 'common'}"
    run = subprocess.run([PYTHON, HERE / "drive.py", path], cwd=path.parent, env=full, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if line.startswith("COMPAT {"):
            return json.loads(line[7:])["names"]
    raise RuntimeError(f"{path}: {run.stderr[-2000:]}")


def folder(name):
    path = WORK / "run" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def edit(path, *pairs):
    """Replaces patterns in a file; each must be there."""
    source = path.read_text()
    for pattern, replacement in pairs:
        source, count = re.subn(pattern, replacement, source)
        assert count, (path, pattern)
    path.write_text(source)


def prepared(test, cwd, patches=()):
    """A copy of a test of qa/ beside its common/ in cwd; patches: (file, pattern, replacement, count)."""
    target = cwd / pathlib.Path(test).parent.name
    if not target.exists():
        shutil.copytree(QA / pathlib.Path(test).parent, target, ignore=shutil.ignore_patterns("*.jpeg", "images"))
        shutil.copytree(QA / "common", cwd / "common")
    for name, pattern, replacement in patches:
        path = cwd / name
        text, changes = re.subn(pattern, replacement, path.read_text())
        assert changes, f"{name}: nothing to patch: {pattern}"
        path.write_text(text)
    return target / pathlib.Path(test).name


def environment(extra=None):
    return {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1", "TRITON_SERVER_CPU_ONLY": "1", "NO_PROXY": "*",
            "no_proxy": "*", **(extra or {})}


def run_methods(suite, path, names=None, env=None, timeout=120, label="", kind="qa", between=None, leave_out=()):
    """Runs methods of a test file against whatever is up; returns {name: outcome}.

    between: called before each method, each in a process of its own then. leave_out: {name: reason} are recorded as skipped.
    """
    path = pathlib.Path(path)
    for name, reason in dict(leave_out).items():
        record(suite, name + label, "skip", reason, kind=kind)
    left = list(names if names is not None else methods(path, env))
    left = [name for name in left if name not in dict(leave_out)]
    how = dict(env=env, timeout=timeout, label=label, kind=kind)
    outcomes = {}
    if between is not None:
        for name in left:
            between()
            outcomes.update(run_left(suite, path, [name], **how))
    else:
        outcomes = run_left(suite, path, left, **how)
    return outcomes


def run_left(suite, path, left, env, timeout, label, kind):
    """Runs them in one process; if a test crashes it or hangs, the others run in another."""
    outcomes = {}
    full = environment(env)
    full["PYTHONPATH"] += f":{path.parent}:{path.parent.parent / 'common'}"
    log = WORK / "logs" / f"{suite}{label}.{path.stem}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    while left:
        began = time.monotonic()
        offset = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as out:
            process = subprocess.Popen([PYTHON, HERE / "drive.py", path, *left], cwd=path.parent, env=full, stdout=out,
                                       stderr=subprocess.STDOUT)

        def ended(what):
            if what["name"] in left:
                left.remove(what["name"])
            outcomes[what["name"]] = what["outcome"]
            record(suite, what["name"] + label, what["outcome"], what["text"], what["seconds"], kind)

        current, late = watch(process, log, offset, timeout, left[0], ended)
        if current is None and not left:
            break
        name = current or left[0]
        if name in left:
            left.remove(name)
            how = "took too long" if late else f"the process ended with {process.returncode}"
            outcomes[name] = "fail"
            record(suite, name + label, "fail", tail(log) + f"\n{how}", time.monotonic() - began, kind)
    return outcomes


def watch(process, log, offset, timeout, current, ended):
    """Parses the output of drive.py; returns the method in progress at the end (None: none), and whether it was killed
    for exceeding the timeout."""
    with open(log, "rb") as written:
        written.seek(offset)
        last, rest = time.monotonic(), b""
        while True:
            is_over = process.poll() is not None
            chunk = written.read()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not line.startswith(b"COMPAT {"):
                    continue
                what, last = json.loads(line[7:]), time.monotonic()
                if "start" in what:
                    current = what["start"]
                elif "name" in what:
                    ended(what)
                    current = None
            if is_over:
                return current, False
            if time.monotonic() - last > timeout:
                process.kill()
                process.wait()
                return current, True
            if not chunk:
                time.sleep(0.05)


def tail(path, size=2500):
    return pathlib.Path(path).read_text(errors="replace")[-size:]


def run_script(suite, name, command, timeout=120, env=None, cwd=None, want=None, kind="example"):
    """A program that reports success by its exit code (and by a word in its output)."""
    try:
        run = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                             env=environment(env), errors="replace")
        text, good = run.stdout + run.stderr, run.returncode == 0
        if want is not None and good:
            good = re.search(want, text) is not None
        text += f"\n(exit code {run.returncode})"
    except subprocess.TimeoutExpired as error:
        text, good = f"{error.stdout or ''}\ntook too long", False
    (WORK / "logs").mkdir(parents=True, exist_ok=True)
    with open(WORK / "logs" / f"{suite}.scripts.log", "a") as out:
        out.write(f"==== {name}\n{text}\n")
    record(suite, name, "pass" if good else "fail", "" if good else text[-3000:], kind=kind)
    return good, text


def skip(suite, name, reason, kind="qa"):
    record(suite, name, "skip", reason, kind=kind)


def copy_models(source, target, *names, rename=None):
    target = pathlib.Path(target)
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copytree(pathlib.Path(source) / name, target / name, dirs_exist_ok=True)
    return target


def clean_shared_memory():
    """Unregisters all regions and empties /dev/shm (which is private to this run, see run.sh)."""
    subprocess.run([PYTHON, "-c", "import tritonclient.grpc as g\n"
                    "c = g.InferenceServerClient('127.0.0.1:8001')\nc.unregister_system_shared_memory()"], capture_output=True)
    for path in pathlib.Path("/dev/shm").iterdir():
        if path.is_file():
            path.unlink()
