"""One real network as TorchScript and as several ONNX files, which must agree: silero-vad of PyPI.

    build/pypi_torch/bin/python -m tests.formats.silero [build/dev/server/tensord]

Each file is run by tensord over a dozen pieces of sound, with its state from piece to piece, beside PyTorch and ONNX Runtime. Exit status 1:
tensord is farther than 1e-5 from the one that the file is for.
"""

import pathlib
import subprocess
import sys
import tempfile
import warnings
import zipfile

import onnxruntime
import torch

ONNX = ("silero_vad", "silero_vad_16k_op15", "silero_vad_op18_ifless", "silero_vad_half", "silero_vad_openvino_16k")
RATE, PIECE, BEFORE, PIECES = 16000, 512, 64, 12


def sound():
    t = torch.arange(PIECE * PIECES) / RATE
    wave = torch.sin(1131 * t) * (1 + torch.sin(25 * t)) * 0.3 + torch.sin(5655 * t) * 0.1
    return (wave + 0.02 * torch.randn(len(t), generator=torch.Generator().manual_seed(0))).view(PIECES, PIECE)


def run(tensord, file, calls):
    with tempfile.TemporaryDirectory() as folder:
        command = [tensord, "run", file]
        for number, arguments in enumerate(calls):
            torch.save(tuple(arguments), f"{folder}/{number}.in")
            command += ["--call", f"forward,{folder}/{number}.in,{folder}/{number}.out"]
        subprocess.run(command, check=True)
        return [torch.load(f"{folder}/{number}.out") for number in range(len(calls))]


def run_onnx(tensord, file, pieces):
    """The results of tensord and ONNX Runtime for each chunk; each continues from its own state. A chunk includes the
    end of the previous one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(file), options)
    names = [one.name for one in session.get_inputs()]
    states, said = {"tensord": torch.zeros(2, 1, 128), "peer": torch.zeros(2, 1, 128)}, {"tensord": [], "peer": []}
    before = torch.zeros(BEFORE)
    for piece in pieces:
        for who, state in states.items():
            given = {"input": torch.cat([before, piece])[None], "state": state, "sr": torch.tensor(RATE)}
            given = [given[name] for name in names]
            if who == "tensord":
                out, states[who] = run(tensord, file, [given])[0]
            else:
                out, states[who] = map(torch.from_numpy, session.run(None, {name: value.numpy() for name, value in zip(names, given)}))
            said[who].append(out.float().flatten())
        before = piece[-BEFORE:]
    return torch.cat(said["tensord"]), torch.cat(said["peer"])


def main():
    warnings.filterwarnings("ignore")
    tensord, worst, pieces = (sys.argv + ["build/dev/server/tensord"])[1], 0.0, sound()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "silero-vad"], check=True)
        zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))).extractall(folder)
        data = pathlib.Path(folder) / "silero_vad" / "data"
        model = torch.jit.load(data / "silero_vad.jit")
        with torch.no_grad():
            expected = torch.cat([model(piece[None], RATE).flatten() for piece in pieces])
        script = torch.cat([out.flatten() for out in run(tensord, data / "silero_vad.jit", [(piece[None], RATE) for piece in pieces])])
        worst = (script - expected).abs().max().item()
        print(f"TorchScript: {worst:.1e} from PyTorch")
        for name in ONNX:
            own, peer = run_onnx(tensord, data / f"{name}.onnx", pieces)
            far, of_script, of_peer = ((a - b).abs().max().item() for a, b in ((own, peer), (own, script), (peer, script)))
            print(f"{name}.onnx: {far:.1e} from ONNX Runtime, {of_script:.1e} from TorchScript (ONNX Runtime: {of_peer:.1e})")
            worst = max(worst, far)
    return worst > 1e-5


if __name__ == "__main__":
    sys.exit(main())
