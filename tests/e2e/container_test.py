"""The commands that containers run: the health check, and those in deploy/docker."""

import json
import os
import re
import subprocess
import sys
import unittest

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from tests.e2e.daemon_process import BINARY, ROOT, DaemonProcess  # noqa: E402

DOCKER = os.path.join(ROOT, "deploy", "docker")


def health(*arguments):
    return subprocess.run([BINARY, "health", *arguments], capture_output=True, text=True, timeout=300)


def help_of(*command):
    return subprocess.run([BINARY, *command, "--help"], capture_output=True, text=True, check=True).stdout


class Health(unittest.TestCase):
    def test_ready_live_and_not(self):
        with DaemonProcess(os.path.join(ROOT, "examples", "models")) as daemon:
            address = ("--address", daemon.ready["metrics"])
            for arguments in ((), ("--live",), ("--model", "shapes")):
                done = health(*address, *arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
            done = health(*address, "--model", "none")
            self.assertEqual(done.returncode, 1)
            self.assertIn("none is not ready", done.stderr)
        done = health(*address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no answer", done.stderr)


class Files(unittest.TestCase):
    """deploy/docker names only existing flags and files."""

    def check_command(self, command):
        help_output = help_of(command[0])
        for flag in command[1:]:
            self.assertRegex(help_output, rf"{re.escape(flag.split('=')[0])}\b", flag)

    def test_dockerfiles(self):
        for name in ("cpu", "cuda"):
            with open(os.path.join(DOCKER, f"{name}.Dockerfile")) as file:
                lines = file.read().splitlines()
            commands = [json.loads(line.split("CMD ", 1)[1]) for line in lines if "CMD [" in line]
            self.assertEqual([command[0] for command in commands], ["tensord", "serve"])
            self.check_command(commands[0][1:])
            self.check_command(commands[1])
            self.assertIn("USER 10001:10001", lines)

    def test_compose(self):
        with open(os.path.join(DOCKER, "compose.yaml")) as file:
            services = yaml.safe_load(file)["services"]
        self.check_command(services["tensord"]["command"])
        for service in services.values():
            for volume in service["volumes"]:
                source = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")[0]
                if source.startswith("."):
                    self.assertTrue(os.path.exists(os.path.join(DOCKER, source)), source)


if __name__ == "__main__":
    unittest.main(verbosity=2)
