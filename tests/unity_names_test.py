"""tests/unity_names.py on small units."""

import pathlib
import tempfile
import unittest

from tests.unity_names import clashes_in, name_of, names_in

HEADER = """#pragma once
namespace tensord {
inline constexpr int kWidth = 64;
template <class T>
T largest(const T& a, const T& b);
class Tensor { int size(); };
}  // namespace tensord
"""


def source(body, namespace="tensord::ops", include='#include "values.h"\n'):
    return f"{include}namespace {namespace} {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}  // namespace {namespace}\n"


class UnityNamesTest(unittest.TestCase):
    def clashes(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "values.h").write_text(HEADER)
            for name, text in files.items():
                (root / f"{name}.cpp").write_text(text)
            return clashes_in([root / f"{name}.cpp" for name in files], root, {})

    def test_a_unit_without_common_names_is_well(self):
        self.assertEqual(self.clashes(a=source("int first(int x) { return x; }"), b=source("int second(int x) { return x; }")), [])

    def test_a_functions_name_in_two_files(self):
        found = self.clashes(a=source("int shared(int x) { return x; }"), b=source("double shared(double x) { return x; }"))
        self.assertEqual(found, ["b.cpp:5: shared is also in an unnamed namespace of a.cpp"])
        self.assertEqual(self.clashes(a=source("int shared(int x) { return x; }"), b=source("int shared(int x) { return x; }", "tensord::nn")), [])

    def test_static_counts_as_unnamed(self):
        plain = "namespace tensord::ops {\nstatic int shared(int x) { return x; }\n}  // namespace tensord::ops\n"
        self.assertEqual(len(self.clashes(a=plain, b=source("double shared(double x) { return x; }"))), 1)

    def test_a_name_of_an_inner_namespace_hides_the_outer_one(self):
        outer = source("int shared(long x) { return 0; }", "tensord") + source("int use() { return shared(1); }")
        found = self.clashes(a=source("int shared(int x) { return x; }"), b=outer)
        self.assertEqual(found, ["a.cpp:5: shared is also in an unnamed namespace of b.cpp"])

    def test_a_function_of_a_header(self):
        found = self.clashes(a=source("int largest(int a, int b) {\n  return a < b ? b : a;\n}"), b=source("int other;"))
        self.assertEqual(found, ["a.cpp:5: largest is also declared by values.h"])

    def test_a_constant_of_a_header(self):
        found = self.clashes(a=source("constexpr long kWidth = 32;"), b=source("int other;"))
        self.assertEqual(found, ["a.cpp:5: kWidth is also declared by values.h"])

    def test_a_header_that_only_another_file_includes(self):
        found = self.clashes(a=source("int largest(int a) { return a; }", include=""), b=source("int other;"))
        self.assertEqual(len(found), 1)

    def test_what_no_other_file_can_see_is_well(self):
        self.assertEqual(self.clashes(a=source("int largest(int a) { return a; }", "tensord::a"), b=source("int other;", "tensord::b")), [])

    def test_methods_and_texts_declare_nothing(self):
        body = 'struct Own { int size() { return 1; } };\nconst char* text = "int largest(int a) {";\n// int kWidth = 1;\nint Own::largest(int a) { return a; }'
        self.assertEqual(self.clashes(a=source(body), b=source("int other;")), [])

    def test_names_of_declarations(self):
        for text, name in {
            "template <class T, class F = std::function<void(int)>> requires Real<T> static std::vector<T> made(F&& fn) {": "made",
            "[[noreturn]] void stop();": "stop", "const char* const* names = table;": "names", "constexpr Row kRows[] = {1, 2};": "kRows",
            "thread_local std::map<int, Tensor> seen;": "seen", "Tensor& Owner::at(int i) {": "", "using Row = int;": "",
            "enum class Kind { kOne };": "", "namespace fs = std::filesystem;": "", "bool operator==(A a, B b) {": "", 'OP("aten::x").direct(x);': "", "Tensor x(1);": "x",
        }.items():
            self.assertEqual(name_of(text), name, text)

    def test_code_that_is_not_understood_ends_it(self):
        with self.assertRaises(SystemExit):
            names_in("namespace tensord {\nint x = 1;\n", "a.cpp")


if __name__ == "__main__":
    unittest.main()
