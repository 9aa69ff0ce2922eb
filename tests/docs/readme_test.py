"""Runs the commands and the Python of README.md's Serve, Ask and Train as they are written, with a network that stands for resnet50.

TENSORD_BINARY is `tensord` of the page, PYTHONPATH has the Python client. The page's ports must be free.
"""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import torch

from tests.docs.pages import ROOT, blocks
from tests.docs.run_page import prepare, wait_for_ports

PAGE = ROOT / "README.md"
MARK = "tests/docs/readme_test.py"
LIMIT_S = 200


class Pictures(torch.nn.Module):
    """The inputs and outputs of resnet50."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 1000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tensord_readme_")
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.environment = prepare(self.work)
        self.commands = [block for block in blocks(PAGE) if block.run_by == MARK]

    def run_script(self, script):
        wait_for_ports()
        with open(self.work / "output", "w+") as output:
            process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(LIMIT_S)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # the server
                except ProcessLookupError:
                    pass
            output.seek(0)
            printed = output.read()
        self.assertEqual(code, 0, printed[-4000:])
        return printed

    def test_serve_and_ask(self):
        version = self.work / "my-models" / "resnet50" / "1"
        version.mkdir(parents=True)
        torch.manual_seed(0)
        torch.jit.script(Pictures().eval()).save(str(version / "model.pt"))
        serve, ask = self.commands[:2]
        self.assertEqual((serve.language, ask.language), ("bash", "python"))
        (self.work / "ask.py").write_text(ask.code)
        printed = self.run_script(
            "tensord check my-models/resnet50/1/model.pt\ntensord config my-models/resnet50/1/model.pt --example 1,3,224,224\n"
            f"{serve.code.rstrip()} &\nuntil tensord health; do sleep 0.2; done\npython3 ask.py\n")
        self.assertRegex(printed, r"class \d+ score ")

    def test_train(self):
        train, = self.commands[2:]
        printed = self.run_script(f"{train.code}\ntensord models --ready\n")
        self.assertRegex(printed, r"digits +2")


if __name__ == "__main__":
    unittest.main()
