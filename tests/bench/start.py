"""Process start to the first resnet50 answer, and resident memory after it: the daemon against a PyTorch process.

Usage: /usr/bin/python3 -m tests.bench.start TENSORD_BINARY STUBS_FOLDER [--rounds 5]

STUBS_FOLDER has the Python stubs of protos/inference.proto (scripts/demo makes build/python). The two are started in turn.
The daemon answers over gRPC; the PyTorch process imports torch, loads the archive and runs it, with no server around it.
The daemon without models is started as well: what it takes by itself. Memory is read shortly after the answer, when the
daemon has given back the file's pages that it packed copies of.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PEER = """
import resource, sys, torch
model = torch.jit.load(sys.argv[1])
with torch.inference_mode():
    model(torch.zeros(1, 3, 224, 224))
print(int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize())
"""


def resident_bytes(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def start_tensord(binary: str, repository: str, folder: pathlib.Path, stubs=None) -> tuple:
    """Seconds to the first answer, or to being ready where there are no stubs to ask with, and bytes."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    begin = time.perf_counter()
    server = subprocess.Popen([binary, "serve", "--model-repository", repository, "--grpc-port", "0", "--metrics-port", "0",
                               "--ready-file", str(ready)], stderr=subprocess.DEVNULL)
    try:
        while not ready.exists():
            if server.poll() is not None:
                raise SystemExit("the daemon stopped")
            time.sleep(0.001)
        if stubs is None:
            return time.perf_counter() - begin, resident_bytes(server.pid)
        import grpc
        pb2, rpc = stubs
        channel = grpc.insecure_channel(json.loads(ready.read_text())["grpc"])
        request = pb2.ModelInferRequest(model_name="resnet50")
        request.inputs.add(name="x", datatype="FP32", shape=[1, 3, 224, 224])
        request.raw_input_contents.append(bytes(4 * 3 * 224 * 224))
        rpc.GRPCInferenceServiceStub(channel).ModelInfer(request)
        seconds = time.perf_counter() - begin
        time.sleep(0.2)
        return seconds, resident_bytes(server.pid)
    finally:
        server.terminate()
        server.wait()


def start_pytorch(archive: str) -> tuple:
    begin = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", PEER, archive], check=True, capture_output=True, text=True)
    return time.perf_counter() - begin, int(result.stdout)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("stubs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sys.path.insert(0, options.stubs)
    import inference_pb2
    import inference_pb2_grpc
    import torch
    import torchvision

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        archive = folder / "models" / "resnet50" / "1" / "model.pt"
        archive.parent.mkdir(parents=True)
        torch.jit.script(torchvision.models.resnet50(weights=None).eval()).save(str(archive))
        (folder / "none").mkdir()
        weights = archive.stat().st_size
        rounds = []
        for _ in range(options.rounds):
            rounds.append((*start_tensord(os.path.abspath(options.binary), str(folder / "models"), folder,
                                          (inference_pb2, inference_pb2_grpc)), *start_pytorch(str(archive)),
                           *start_tensord(os.path.abspath(options.binary), str(folder / "none"), folder)))
    seconds, memory, peer_seconds, peer_memory, bare_seconds, bare_memory = (statistics.median(column) for column in zip(*rounds))
    print("| resnet50 | tensord | PyTorch process | ratio |")
    print("|---|---:|---:|---:|")
    print(f"| start to first answer, s | {seconds:.2f} | {peer_seconds:.2f} | {seconds / peer_seconds:.2f} |")
    print(f"| resident memory, MB | {memory / 1e6:.0f} | {peer_memory / 1e6:.0f} | {memory / peer_memory:.2f} |")
    print()
    print(f"The daemon alone: {bare_seconds:.2f} s and {bare_memory / 1e6:.0f} MB. Beyond that, {memory / 1e6:.0f} MB are "
          f"{(memory - bare_memory) / weights:.2f} of the weights' {weights / 1e6:.0f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
