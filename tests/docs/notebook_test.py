"""Runs the cells of examples/tour.ipynb in order, as a notebook's kernel would. TENSORD_BINARY is its `tensord`; its ports must be free."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

from tests.docs.run_page import wait_for_ports

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class NotebookTest(unittest.TestCase):
    def test_every_cell_runs(self) -> None:
        notebook = json.loads((ROOT / "examples/tour.ipynb").read_text())
        cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 5)
        wait_for_ports()
        sys.modules["matplotlib"] = None  # a window would wait for its user
        names: dict = {}
        printed = io.StringIO()
        with tempfile.TemporaryDirectory(prefix="tensord_notebook_") as folder:
            (pathlib.Path(folder) / "tensord").symlink_to(os.environ["TENSORD_BINARY"])
            os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
            os.chdir(ROOT)
            try:
                with contextlib.redirect_stdout(printed):
                    for i, source in enumerate(cells):
                        with self.subTest(cell=i):
                            exec(compile(source, f"cell {i}", "exec"), names)  # pylint: disable=exec-used
            finally:
                if "server" in names:
                    names["server"].kill()
        self.assertIn("exit code 0", printed.getvalue())
        self.assertIn('tensord_requests_total{model="digits"', printed.getvalue())


if __name__ == "__main__":
    unittest.main()
