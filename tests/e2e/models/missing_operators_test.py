"""Each operator of PyTorch's registry is supported or listed with a reason in tests/ops/not_there.txt."""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ["TENSORD_BINARY"]


def base(name):
    return name.split("(")[0].split(".")[0]


def ours():
    lines = subprocess.run([BINARY, "ops", "--json"], check=True, capture_output=True, text=True).stdout.splitlines()
    names = {base(json.loads(line)["name"]) for line in lines}
    second = re.findall(r'ALIAS\("(aten::\w+)"', (ROOT / "kernels/composite/aliases.cpp").read_text())
    # Operators of exported programs that the reader replaces with others.
    exported = re.findall(r'\{"(aten::[\w.]+)"', (ROOT / "core/jit/importers/pt2/compositions.cpp").read_text())
    return names | set(second) | {name + "_" for name in second} | {base(name) for name in exported}


class MissingOperatorsTest(unittest.TestCase):
    def test_what_is_not_there_has_a_reason(self):
        lines = (ROOT / "tests/ops/not_there.txt").read_text().splitlines()
        patterns = [line for line in lines if line and not line.startswith("#")]
        theirs = {base(str(schema)) for schema in torch._C._jit_get_all_schemas()}
        theirs = {name.removeprefix("aten::") for name in theirs if name.startswith("aten::")}
        here = {name.removeprefix("aten::") for name in ours()}
        self.assertGreater(len(theirs), 1000)
        unexplained = [name for name in sorted(theirs - here) if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        self.assertEqual(unexplained, [])
        # A pattern without a star names one operator, which must be missing.
        self.assertEqual([pattern for pattern in patterns if pattern in here], [])
        self.assertEqual(len(patterns), len(set(patterns)))


if __name__ == "__main__":
    unittest.main()
