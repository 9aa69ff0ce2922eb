"""What scripts/operators.py makes of the lines of kernels/*/*.ops, and what it refuses."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))

import operators


def declarations(*lines, family="f"):
    kept, _ = operators.read_operators([(family, "f.ops", line) for line in lines])
    structs = operators.Structs()
    return [operator.declaration(structs) for operator in kept]


def read(text: str) -> list:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernels/f/f.ops")
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return operators.read_lines(pathlib.Path(folder))


class Operators(unittest.TestCase):
    def test_forms(self):
        self.assertEqual(list(operators.schemas_of("aten::f.Tensor(Tensor self, *, int n=1) -> Tensor; inplace, out")),
                         ["aten::f.Tensor(Tensor self, *, int n=1) -> Tensor", "aten::f_.Tensor(Tensor(a!) self, *, int n=1) -> Tensor(a!)",
                          "aten::f.out(Tensor self, *, int n=1, Tensor(a!) out) -> Tensor(a!)"])
        self.assertEqual(list(operators.schemas_of("aten::f.dim(Tensor self) -> Tensor; out"))[1], "aten::f.dim_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")

    def test_declarations(self):
        self.assertEqual(declarations("aten::f(Tensor self, Tensor? w=None, *, Scalar alpha=1, Generator? generator=None) -> (Tensor, Tensor)"),
                         ["std::tuple<Tensor, Tensor> f(const Tensor& self, const std::optional<Tensor>& w = std::nullopt, "
                          "const keyword::FAlphaArgs& keywords = {});  // f"])
        self.assertEqual(declarations("tensord::f(Tensor?[] all) -> ()"), ["void tensord_f(tensord::OptionalTensorList all);  // tensord::f"])
        self.assertEqual(declarations("aten::f(int a) -> int"), [])

    def test_later_overloads_lose_defaults(self):
        one, two = declarations("aten::f(Tensor self) -> Tensor", "aten::f.dim(Tensor self, int dim=0) -> Tensor")
        self.assertEqual((one, two), ("Tensor f(const Tensor& self);  // f", "Tensor f(const Tensor& self, Int dim);  // f.dim"))

    def test_refused(self):
        self.assertEqual(len(read("# words\naten::f(Tensor self) -> Tensor; inplace\n")), 1)
        self.assertEqual(len(read("aten::f(Tensor self) -> Tensor; inplace, autocast lower\naten::g() -> int; autocast cpu f32, autocast cuda promote\n")), 2)
        for text in ("aten::f(Tensor self)", "aten::f(Tensor self) -> Tensor; twice", "aten::f() -> int; autocast f16", "aten::f", "aten::f() -> int\naten::f() -> int"):
            with self.assertRaises(SystemExit) as error:
                read(text)
            self.assertIn("kernels/f/f.ops:", str(error.exception))


if __name__ == "__main__":
    unittest.main()
