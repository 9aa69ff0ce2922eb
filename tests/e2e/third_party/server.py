"""The daemon with the models of this folder, of which most have no config.pbtxt."""

import subprocess
import tempfile
import unittest

from tests.e2e.daemon_process import ROOT, DaemonProcess

TORCH_PYTHON = "/usr/bin/python3"


class ServerTest(unittest.TestCase):
    """Starts one daemon, gRPC and HTTP, for the tests of a class."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.repository = f"{cls.folder.name}/models"
        subprocess.run([TORCH_PYTHON, "-m", "tests.e2e.third_party.models", cls.repository], check=True, cwd=ROOT)
        cls.daemon = DaemonProcess(cls.repository, "--allow-http", "true", "--http-port", "0", *cls.flags)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.grpc, cls.http, cls.metrics = (cls.daemon.ready[name] for name in ("grpc", "http", "metrics"))
