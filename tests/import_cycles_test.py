"""Which imports tests/import_cycles.py follows."""

import unittest

from tests.import_cycles import cycles, imports


def found(sources: dict[str, str]) -> list:
    """The cycles among files of these names and sources."""
    files = {name + ".py": source for name, source in sources.items()}
    return [sorted(path) for path in cycles(imports(list(files), files))]


class ImportCycles(unittest.TestCase):
    def test_direct(self):
        self.assertEqual(found({"a": "import b", "b": "import c", "c": ""}), [])
        self.assertEqual(found({"a": "import b", "b": "import a"}), [["a.py", "b.py"]])

    def test_each_cycle_is_named_once(self):
        self.assertEqual(found({"a": "from b import x", "b": "import c as d", "c": "import a"}), [["a.py", "b.py", "c.py"]])

    def test_hidden(self):
        self.assertEqual(found({"a": "import b", "b": "def f():\n    import a"}), [["a.py", "b.py"]])
        self.assertEqual(found({"a": "import b", "b": "if TYPE_CHECKING:\n    from a import A"}), [["a.py", "b.py"]])
        self.assertEqual(found({"a": "import b", "b": "def f():\n    import a  # import cycle: why"}), [])

    def test_packages(self):
        self.assertEqual(found({"p/__init__": "from p import a, b", "p/a": "from p import b", "p/b": "import p"}), [])
        self.assertEqual(found({"p/a": "from . import b", "p/b": "from .a import x"}), [["p/a.py", "p/b.py"]])
        # Importing p.a loads p first.
        self.assertEqual(found({"p/__init__": "import q", "p/a": "", "q": "import p.a"}), [["p/__init__.py", "q.py"]])

    def test_roots(self):
        self.assertEqual(found({"python/src/t/a": "import t.b", "python/src/t/b": "import t.a"}), [["python/src/t/a.py", "python/src/t/b.py"]])
        self.assertEqual(found({"x/a": "import b", "x/b": "from a import c"}), [["x/a.py", "x/b.py"]])
        # In a package that is the module of the standard library.
        self.assertEqual(found({"python/src/t/types": "import t.b", "python/src/t/b": "import types"}), [])


if __name__ == "__main__":
    unittest.main()
