"""A few faults of each kind of tests.e2e.training.rank_faults and tests.e2e.training.host_faults, which run a
hundred."""

import subprocess
import sys
import unittest

from tests.e2e import namespaces

# The silence timeout in seconds: on a busy machine a live rank may be silent for some.
PATIENCE = "10"


def run(module, *arguments):
    found = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
    if found.returncode:
        raise AssertionError(found.stdout[-3000:] + found.stderr[-5000:])
    return found.stdout


class HostFaultsTest(unittest.TestCase):
    def test_ranks(self):
        self.assertIn("different: []", run("tests.e2e.training.rank_faults", "--faults", "3", "--silent-after", PATIENCE))

    def test_hosts(self):
        if why := namespaces.missing():
            self.skipTest(why)
        out = run("tests.e2e.training.host_faults", "--faults", "4", "--hosts", "2", "--steps", "600", "--silent-after", PATIENCE)
        self.assertIn("different: []; left running: []", out)


if __name__ == "__main__":
    unittest.main()
