// Invalid scripts: each error with the shortest function that causes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/jit/frontend/frontend_fixture.h"

namespace tensord::jit::frontend_errors_test {
namespace {

using ::testing::HasSubstr;

// A function of a tensor, a number, a flag, a list and a pair, with this body.
std::string with(const std::string& body) {
  return "def f(x: Tensor, n: int, c: bool, l: List[int], t: Tuple[int, Tensor]) -> Tensor:\n" + body + "  return x\n";
}

TEST(FrontendErrors, Expressions) {
  const std::pair<const char*, const char*> wrong[] = {
      {"  y = ...\n", "'...' can only be used inside of a subscript"},
      {"  y = x if c else n\n", "the two values have different types: Tensor and int"},
      {"  y = n if c else x\n", "the two values have different types: int and Tensor"},
      {"  y = (t)[n]\n", "a tuple of different types needs a constant index"},
      {"  y = [n, x]\n", "list items have different types: int and Tensor"},
      {"  y = {\"a\": n, \"b\": x}\n", "dict items have different types: int and Tensor"},
      {"  y = {\"a\": n, 1: n}\n", "dict items have different types: str and int"},
      {"  y = (l)[0:1, 0:1]\n", "a value of type List[int] has one dimension"},
      {"  y = x[0:1, x]\n", "only slices and numbers can stand side by side"},
      {"  y = torch.add(x, other=x, other=x)\n", "argument 'other' is given twice"},
      {"  y = \"\\xg0\"\n", "bad escape in a string"},
      {"  y = \"\\x0\"\n", "bad escape in a string"},
      {"  y = \"\\u00e\"\n", "bad escape in a string"},
  };
  for (const auto& [body, message] : wrong) EXPECT_THAT(error_of(with(body)), HasSubstr(message)) << body;
  for (const char* body : {"  y = n if c else 1\n", "  y = [n, 1]\n", "  y = {\"a\": n, \"b\": 1}\n",
                           "  y = (l)[0:1]\n", "  y = x[0:1, n]\n", "  y = \"\\x41\\u00e9\\U0001F600\"\n"}) {
    EXPECT_EQ(error_of(with(body)), "") << body;
  }
}

TEST(FrontendErrors, Statements) {
  const std::pair<const char*, const char*> wrong[] = {
      {"  for i in range():\n    pass\n", "range takes 1 to 3 arguments"},
      {"  for i in range(n, n, n, n):\n    pass\n", "range takes 1 to 3 arguments"},
      {"  x.name = n\n", "a value of type Tensor has no attributes to set"},
      {"  a = b = n\n", "chained assignments are not supported"},
      {"  y = x.tolist()\n", "tolist needs an annotation"},
      {"  y = annotate(List[str], x.tolist())\n", "tolist cannot give a value of type List[str]"},
  };
  for (const auto& [body, message] : wrong) EXPECT_THAT(error_of(with(body)), HasSubstr(message)) << body;
  for (const char* bounds : {"n", "n, n", "n, n, n"}) {
    EXPECT_EQ(error_of(with(concat("  for i in range(", bounds, "):\n    pass\n"))), "") << bounds;
  }
  EXPECT_THAT(error_of("def f(x: Tensor, c: bool):\n  if c:\n    return x\n  else:\n    return 1\n"),
              HasSubstr("the branches return different types: Tensor and int"));
}

TEST(FrontendErrors, CallsAndAttributes) {
  const std::string classes =
      "class E(Enum):\n  one = 1\n"
      "class P(NamedTuple):\n  a : int\n  b : Tensor\n"
      "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  w : Tensor\n"
      "  def forward(self: __torch__.m.M, x: Tensor) -> Tensor:\n    return x\n"
      "  def alone() -> int:\n    return 1\n"
      "def g(x: Tensor) -> Tensor:\n  return x\n";
  const auto with_classes = [&](const std::string& body) {
    return error_of(classes + "def f(x: Tensor, m: __torch__.m.M, e: __torch__.m.E, n: int) -> Tensor:\n" + body +
                    "  return x\n");
  };
  const std::pair<const char*, const char*> wrong[] = {
      {"  y = __torch__.m.g(x, x)\n", "__torch__.m.g: "},
      {"  y = __torch__.m.none(x)\n", "is not defined"},
      {"  y = (m).forward(x, x)\n", "__torch__.m.M.forward: "},
      {"  y = (m).none(x)\n", "has no method 'none'"},
      {"  y = (m).alone()\n", "method 'alone' takes no self"},
      {"  m.v = x\n", "class __torch__.m.M has no attribute 'v'"},
      {"  y = __torch__.m.P(n)\n", "__torch__.m.P: "},
      {"  y = __torch__.m.E(n)\n", "class '__torch__.m.E' cannot be called"},
      {"  y = (e).other\n", "an enum has no attribute 'other'"},
      {"  a, b = n\n", "a value of type int cannot be unpacked"},
  };
  for (const auto& [body, message] : wrong) EXPECT_THAT(with_classes(body), HasSubstr(message)) << body;
  for (const char* body : {"  y = __torch__.m.g(x)\n", "  y = (m).forward(x)\n", "  m.w = x\n",
                           "  y = __torch__.m.P(n, x)\n", "  y = (e).value\n", "  a, b = x\n"}) {
    EXPECT_EQ(with_classes(body), "") << body;
  }
  for (const auto& [name, is_there] : {std::pair{"w", "True"}, std::pair{"v", "False"}}) {
    const std::string asks = concat("def h(m: __torch__.m.M) -> bool:\n  return hasattr(m, \"", name, "\")\n");
    EXPECT_THAT(graph_of(classes + asks, "h"), HasSubstr(concat("prim::Constant[value=", is_there, "]"))) << name;
  }
  for (const char* error : {"ValueError()", "ValueError(\"wrong\")"})
    EXPECT_EQ(error_of(with(concat("  if c:\n    raise ", error, "\n"))), "") << error;
}

// Tuple indices may be negative.
TEST(FrontendErrors, ItemsOfTuples) {
  for (const char* body : {"  y = (t)[0]\n", "  y = (t)[1]\n", "  y = (t)[-1]\n", "  y = (t)[-2]\n"})
    EXPECT_EQ(error_of(with(body)), "") << body;
  for (const char* body : {"  y = (t)[2]\n", "  y = (t)[-3]\n"})
    EXPECT_THAT(error_of(with(body)), HasSubstr("is out of range for")) << body;
}

TEST(FrontendErrors, WhatIsNotSupportedSaysSo) {
  const std::pair<const char*, const char*> missing[] = {
      {"  for i in range(n):\n    break\n", "break and continue are not supported"},
      {"  for i in range(n):\n    continue\n", "break and continue are not supported"},
      {"  x[0] = x\n", "assignment to a tensor's elements by subscript is not supported"},
      {"  y = [i for i in l]\n", "list comprehensions are not supported"},
      {"  y = b\"a\"\n", "bytes are not supported"},
      {"  y = f\"a\"\n", "f-strings are not supported"},
      {"  if c:\n    if n > 1:\n      return x\n  else:\n    pass\n",
       "a return inside of nested branches that also go on is not supported"},
      {"  for i in range(n):\n    return x\n", "a return inside of a loop or with block is not supported"},
  };
  for (const auto& [body, message] : missing) {
    ErrorCode code{};
    EXPECT_THAT(error_of(with(body), &code), HasSubstr(message)) << body;
    EXPECT_EQ(code, ErrorCode::kUnimplemented) << body;
  }
}

// Syntax errors, by the position where the input becomes invalid.
TEST(FrontendErrors, Grammar) {
  const std::pair<const char*, const char*> wrong[] = {
      {"x = 1\n", "expected a class or a function"},
      {"def f(x y):\n  return x\n", "expected ')'"},
      {"def (x):\n  return x\n", "expected the name of a function"},
      {"def f(1):\n  return x\n", "expected the name of a parameter"},
      {"def f(x, x):\n  return x\n", "parameter 'x' appears twice"},
      {"def f(x)\n  return x\n", "expected ':'"},
      {"def f(x):\nreturn x\n", "expected an indented block"},
      {"def f(x): return x x\n", "expected the end of the line"},
      {"class 1:\n  pass\n", "expected the name of a class"},
      {"class C(1):\n  pass\n", "expected the name of a class"},
      {"class C(a.1):\n  pass\n", "expected"},
      {"class C\n  pass\n", "expected ':'"},
      {"class C:\npass\n", "expected an indented block"},
      {"class C: x\n", "expected 'pass'"},
      {"class C:\n  a\n", "expected ':' or '='"},
      {"class C:\n  1\n", "expected a field or a method"},
      {"class C:\n  __annotations__[a] = int\n", "expected the name of an attribute in quotes"},
      {"class C:\n  __annotations__[\"a\"] int\n", "expected '='"},
      {"class C:\n  a : int b\n", "expected the end of the line"},
      {"def f(x):\n  return x.\n", "expected a name after '.'"},
      {"def f(x):\n  return x.1\n", "expected"},
      {"def f(x):\n  return +\n", "expected an expression"},
      {"def f(x):\n  return if\n", "expected an expression but got 'if'"},
      {"def f(x):\n  return g(*x)\n", "starred arguments are not supported"},
      {"def f(x):\n  return g(**x)\n", "starred arguments are not supported"},
      {"def f(x):\n  return g(a=x, x)\n", "a positional argument after a keyword argument"},
      {"def f(x):\n  return g(x y)\n", "expected ')'"},
      {"def f(x):\n  return x[0 1]\n", "expected ']'"},
      {"def f(x):\n  return 9223372036854775808\n", "the number does not fit 64 bits"},
      {"def f(x):\n  return 0x8000000000000000\n", "the number does not fit 64 bits"},
      {"def f(x: Tensor):\n  1 = x\n", "this cannot be assigned to"},
      {"def f(x: Tensor):\n  f(x) = x\n", "this cannot be assigned to"},
  };
  for (const auto& [text, message] : wrong) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
  for (const char* fine :
       {"import a\nfrom a import b\n\"text\"\ndef f(x: Tensor):\n  return x\n",
        "@a\n@b(c)\ndef f(x: Tensor): return x\n", "def f(x: Tensor, *, n: int): return x;\n",
        "class C(a.b, c): pass\ndef f(x: Tensor): return x", "class C:\n  pass\ndef f(x: int): return x\n",
        "def f():\n  return 9223372036854775807\n", "def f():\n  return 0x7fffffffffffffff\n"}) {
    EXPECT_EQ(error_of(fine), "") << fine;
  }
}

TEST(FrontendErrors, BoundsOfTheGrammar) {
  const auto parameters = [](int count) {
    std::string text = "def f(";
    for (int i = 0; i < count; ++i) text += concat("p", i, ": int, ");
    return text + "):\n  return p0\n";
  };
  EXPECT_EQ(error_of(parameters(1000)), "");
  EXPECT_THAT(error_of(parameters(1001)), HasSubstr("too many parameters"));
  const auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  const auto returns = [](const std::string& expression) {
    return "def f(x: Tensor, l: List[int]) -> Tensor:\n  y = " + expression + "\n  return x\n";
  };
  struct Bound {
    int max;
    std::function<std::string(int)> text;
    const char* message;
  };
  const Bound bounds[] = {
      {200, [&](int n) { return returns(repeat("(", n) + "1" + repeat(")", n)); }, "nested too deep"},
      {217, [&](int n) { return returns(repeat("-", n) + "1"); }, "nested too deep"},
      {249, [&](int n) { return returns("1" + repeat(" + 1", n)); }, "nested too deep"},
      {124, [&](int n) { return returns("x" + repeat(".t()", n)); }, "nested too deep"},
      {248, [&](int n) { return returns("(l)" + repeat("[0:1]", n)); }, "nested too deep"},
      {217, [&](int n) { return returns("1" + repeat(" if True else 1", n)); }, "nested too deep"},
      {98,
       [&](int n) {
         std::string text = "def f(x: Tensor, c: bool) -> Tensor:\n";
         for (int i = 1; i <= n; ++i) text += std::string(static_cast<size_t>(i), ' ') + "if c:\n";
         return text + std::string(static_cast<size_t>(n) + 1, ' ') + "pass\n return x\n";
       },
       "nested too deep"}};
  for (const Bound& bound : bounds) {
    int max = 1;
    while (error_of(bound.text(max + 1)).empty() && max < 1000) ++max;
    EXPECT_EQ(max, bound.max) << bound.text(2);
    EXPECT_THAT(error_of(bound.text(max + 1)), HasSubstr(bound.message)) << bound.text(2);
  }
}

// Numbers in other bases, with and without separators.
TEST(FrontendErrors, IntegersAreWhatTheySay) {
  for (const auto& [written, value] :
       {std::pair{"0x1F", "31"}, {"0X1f", "31"}, {"1_000", "1000"}, {"0", "0"}, {"10", "10"}}) {
    EXPECT_THAT(graph_of(concat("def f():\n  return ", written, "\n"), "f"), HasSubstr(concat("[value=", value, "]")))
        << written;
  }
}

// Functions without a return annotation are compiled where they are called, up to fifty deep.
TEST(FrontendErrors, ReturnTypesThatHangOnOthers) {
  const auto chain = [](int count) {
    std::string text = "def f(x: Tensor):\n  return __torch__.m.f1(x)\n";
    for (int i = 1; i < count; ++i) {
      const std::string body = i + 1 < count ? concat("__torch__.m.f", i + 1, "(x)") : "x";
      text += concat("def f", i, "(x: Tensor):\n  return ", body, "\n");
    }
    return text;
  };
  EXPECT_EQ(error_of(chain(50)), "");
  EXPECT_THAT(error_of(chain(51)), HasSubstr("the return type of '__torch__.m.f50' depends on itself; annotate it"));
  EXPECT_THAT(error_of("def f(x: Tensor):\n  return __torch__.m.f(x)\n"),
              HasSubstr("the return type of '__torch__.m.f' depends on itself; annotate it"));
  EXPECT_EQ(error_of("def f(x: Tensor) -> Tensor:\n  return __torch__.m.f(x)\n"), "");
  EXPECT_THAT(error_of("def g() -> int:\n  return 1\ndef f(x: int=g()) -> int:\n  return x\n"),
              HasSubstr("the default of a parameter must be a literal"));
}

// A 0-dimensional constant counts as a scalar in sums and products, on either side; other constants stay tensors.
TEST(FrontendErrors, ConstantsThatAreNumbers) {
  const Tensor flag = Tensor::empty(Dims{}, DType::kBool);
  *flag.data<bool>() = true;
  const auto graph = [&](const std::string& expression) {
    CompilationUnit unit = unit_of("def f(x: Tensor) -> Tensor:\n  return " + expression + "\n");
    unit.set_constants({Tensor::scalar(0.5, DType::kFloat64), flag, Tensor::empty(Dims{1}, DType::kFloat64)});
    return graph_of(unit, "f");
  };
  for (const char* expression : {"torch.add(x, CONSTANTS.c0)", "torch.add(x, other=CONSTANTS.c0)",
                                 "torch.add(x, alpha=1, other=CONSTANTS.c0)"}) {
    EXPECT_THAT(graph(expression), HasSubstr("[value=0.5]")) << expression;
    EXPECT_THAT(graph(expression), HasSubstr("aten::add.Scalar")) << expression;
  }
  for (const char* expression :
       {"torch.add(x, CONSTANTS.c1)", "torch.add(x, other=CONSTANTS.c1)", "torch.add(x, CONSTANTS.c2)",
        "torch.add(CONSTANTS.c0, x)", "torch.atan2(x, CONSTANTS.c0)",
        "torch.div(x, CONSTANTS.c0, rounding_mode=\"floor\")"}) {
    EXPECT_THAT(graph(expression), HasSubstr("<Tensor ")) << expression;
  }
}

// Names that do not refer to a value.
TEST(FrontendErrors, WhatIsNoValue) {
  const std::string before =
      "def g(x: Tensor) -> Tensor:\n  return x\n"
      "class C:\n  k = g\n  n : int\n  def __init__(self) -> None:\n    self.n = 1\n  def m(self) -> int:\n    return "
      "self.k\n"
      "class T(NamedTuple):\n  a : int\n  b : int = g\n"
      "class E(Enum):\n  A = g\n";
  const std::pair<const char*, const char*> wrong[] = {
      {"  y = __torch__.m.g\n  z = torch.neg(y)\n", "function __torch__.m.g can only be called"},
      {"  y = __torch__.m.C\n  z = torch.neg(y)\n", "class __torch__.m.C can only be called"},
      {"  y = ops.aten.neg\n  z = torch.neg(y)\n", "operator aten::neg can only be called"},
      {"  y = ops.aten(x)\n", "'ops.aten' is not an operator"},
      {"  y = ops.aten.neg.out(x)\n", "'ops.aten.neg.out' is not an operator"},
      {"  y = fork(x)\n", "fork takes a nested function"},
      {"  def h(a: Tensor):\n    return a\n  y = fork(h)\n", "a forked function takes no parameters"},
      {"  y = torch.wait(x)\n", "wait: expected a future but got Tensor"},
      {"  y = __torch__.m.T.__new__(__torch__.m.T)\n", "'__torch__.m.T' is not a class"},
      {"  y = __torch__.m.C.k\n", "'__torch__.m.C.k' is not a constant"},
      {"  y = missing\n", "name 'missing' is not defined"},
      {"  y = missing.part\n", "is not defined"},
  };
  for (const auto& [body, message] : wrong) EXPECT_THAT(error_of(before + with(body)), HasSubstr(message)) << body;
  EXPECT_THAT(error_of(before + "def f(x: Tensor):\n  return __torch__.m.T(1)\n"),
              HasSubstr("the default of a field must be a literal"));
  EXPECT_THAT(error_of(before + "def f(x: Tensor):\n  return __torch__.m.E.A\n"),
              HasSubstr("the value of an enum member must be a literal"));
  EXPECT_THAT(error_of(before + "def f(x: Tensor):\n  y = __torch__.m.C()\n  return y.k\n"),
              HasSubstr("the value of a class constant must be a literal"));
}

}  // namespace
}  // namespace tensord::jit::frontend_errors_test
