"""Mixed load with every kind of client fault. The server must not crash, hang, leak, or lose or
double an answer.

Usage: python3 -m tests.stress.run [--seconds 1800] [--seed N] [--delays NAME=US,…]
TENSORD_BINARY is the server, which may be built with sanitizers.
"""

import argparse
import os
import sys
import tempfile
import time

from tests.e2e import processes
from tests.e2e.daemon import Daemon, pb, request
from tests.stress import actors, folders
from tests.stress.models import make_repository

SETTLE_S = 60
# Maximum delays in microseconds, at the code's delay points.
DELAYS = ("scheduler.submit=500,scheduler.run=3000,scheduler.release=500,batch.answer=2000,memory.copy=5000,"
          "sequence.submit=500,sequence.run=3000,sequence.answer=1000,generation.step=2000,generation.respond=1000,"
          "infer.answer=1000,infer.done=1000,stream.deliver=1000,stream.done=1000,"
          "repository.commit=50000,repository.retire=50000,repository.end=50000")


def wait_until(condition, what):
    processes.wait_until(condition, what, SETTLE_S, interval=0.2)


def load_everything(daemon, folder):
    for name in sorted(os.listdir(folder)):
        daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=60)


def unload_everything(daemon):
    for model in daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models:
        daemon.stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name=model.name), timeout=60)


def check_after(daemon, memory_before):
    """Nothing of the finished load is left over."""
    wait_until(lambda: daemon.metric("tensord_pending_requests") == 0, "requests still wait")
    wait_until(lambda: daemon.metric("tensord_in_flight_requests") == 0, "requests are still under way")
    answer = daemon.stub.ModelInfer(request("replaced", [("x", "INT64", [1], actors.int64(0))]), timeout=60)
    assert answer.model_name == "replaced"
    unload_everything(daemon)
    wait_until(lambda: daemon.metric("tensord_memory_bytes") <= memory_before, "tensors are still owned by somebody")


def check_after_polls(daemon, root, memory_before):
    """Once the folders are removed, nothing of their models is left."""
    for name in os.listdir(root):
        folders.remove(os.path.join(root, name))
    wait_until(lambda: not daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models, "models are still there")
    wait_until(lambda: daemon.metric("tensord_memory_bytes") <= memory_before, "tensors are still owned by somebody")
    wait_until(lambda: not folders.files_held(daemon), f"copies of archives are left: {folders.files_held(daemon)}")


def check_log(log_content):
    for sign in ("Sanitizer", "internal error", "runtime error:", "terminate called"):
        assert sign not in log_content, log_content[max(0, log_content.index(sign) - 1000):][:8000]


def check_alive(daemon):
    log = daemon.log_text()
    check_log(log)
    assert daemon.process.poll() is None, f"the server ended with {daemon.process.returncode}\n{log[-8000:]}"


def check_end(daemon):
    code = daemon.stop(timeout=120)
    check_log(daemon.log_text())
    assert code == 0, f"exit code {code}"


def run(seconds, seed, delays):
    environment = {"TENSORD_DELAYS": delays} if delays else {}
    with tempfile.TemporaryDirectory(prefix="tensord_stress_") as folder, \
            tempfile.TemporaryDirectory(prefix="tensord_stress_polled_") as polled:
        make_repository(folder)
        with Daemon(folder, "--model-control-mode", "explicit", "--workers", "2", "--allow-client-shm", "true",
                    environment=environment) as daemon, \
                Daemon(polled, *folders.FLAGS, environment=environment) as poller:
            memory_before = daemon.metric("tensord_memory_bytes"), poller.metric("tensord_memory_bytes")
            load_everything(daemon, folder)
            stage = actors.Stage(actors.make_actors(daemon.ready["grpc"], seed, folder) +
                                 folders.make_actors(poller, seed, polled))
            counts = stage.run(seconds)
            for name, count in counts.items():
                print(f"{name}: {dict(sorted(count.items()))}")
            check_alive(daemon)
            check_alive(poller)
            logs = daemon.log_text()[-3000:] + poller.log_text()[-3000:]
            assert not stage.failures, "\n".join(f"{name}: {error!r}" for name, error in stage.failures) + logs
            check_after(daemon, memory_before[0])
            check_after_polls(poller, polled, memory_before[1])
            check_end(daemon)
            check_end(poller)
    quiet = [name for name, count in counts.items() if not count]
    assert not quiet, f"nothing came of {quiet}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("TENSORD_STRESS_SECONDS", "1800")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--delays", default=DELAYS, help="of the second half; the first has none")
    options = parser.parse_args()
    print(f"{options.seconds} s, seed {options.seed}", flush=True)
    for half, delays in enumerate(("", options.delays)):
        print(f"with delays {delays}" if delays else "without delays", flush=True)
        run(options.seconds / 2, options.seed + half, delays)
    print("nothing was lost")


if __name__ == "__main__":
    sys.exit(main())
