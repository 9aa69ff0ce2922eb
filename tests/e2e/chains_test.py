"""Random chains of models that share memory: the fixed set of tests/chains."""

import pathlib
import tempfile
import unittest
import zipfile

from tests.chains.run_chains import run

DATA = pathlib.Path(__file__).parent.parent / "chains" / "data.zip"


class ChainsTest(unittest.TestCase):
    def test_no_model_sees_what_another_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(DATA) as data:
                data.extractall(folder)
            self.assertEqual(run(folder), [])


if __name__ == "__main__":
    unittest.main()
