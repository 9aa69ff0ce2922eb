"""Runs commands of the pages for developers as they are written, in the root of the repository, with a folder of its own for /tmp.

TENSORD_BUILD is the build folder, which the pages call build/dev.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

from tests import needed_programs
from tests.docs.pages import ROOT, blocks, documents

MARK = "tests/docs/developer_commands_test.py"
LIMIT_S = 300


def own(code, folder):
    return code.replace("/tmp/", f"{folder}/").replace("build/dev/", f"{os.environ['TENSORD_BUILD']}/")


class DeveloperCommandsTest(unittest.TestCase):
    def test_each_block_runs(self):
        found = [(page, block) for page in documents() for block in blocks(page) if block.run_by == MARK]
        self.assertGreater(len(found), 5)
        for page, block in found:
            lacking = [name for name in needed_programs.PACKAGES if f"{name} " in block.code and not shutil.which(name)]
            with self.subTest(f"{page.relative_to(ROOT)}:{block.line}"), tempfile.TemporaryDirectory() as folder:
                if lacking:
                    self.skipTest(f"missing: {lacking}")
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", own(block.code, folder)], cwd=ROOT, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stdout[-4000:])


if __name__ == "__main__":
    unittest.main()
