#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/jit/ir/missing_operators.h"
#include "tests/jit/frontend/frontend_fixture.h"

namespace tensord::jit::frontend_test {
namespace {

using ::testing::HasSubstr;

TEST(Frontend, OperatorsAreChosenByTypeAndDefaultsFilledIn) {
  EXPECT_EQ(graph_of("def f(x: Tensor, n: int) -> Tensor:\n"
                     "  y = torch.add(x, x)\n"
                     "  return torch.mul(y, torch.add(n, 1))\n",
                     "f"),
            "graph(%x : Tensor, %n : int):\n"
            "  %0 : int = prim::Constant[value=1]()\n"
            "  %y : Tensor = aten::add.Tensor(%x, %x, %0)\n"
            "  %1 : int = prim::Constant[value=1]()\n"
            "  %2 : int = aten::add.int(%n, %1)\n"
            "  %3 : Tensor = aten::mul.Scalar(%y, %2)\n"
            "  return (%3)\n");
}

TEST(Frontend, ImplicitConversions) {
  const std::string graph = graph_of(
      "def g(x: float) -> float:\n  return x\n"
      "def f(x: Tensor, n: int) -> float:\n"
      "  a = __torch__.m.g(1, )\n"
      "  b = __torch__.m.g(n, )\n"
      "  c = torch.select(x, 0, torch.sum(x))\n"
      "  return __torch__.m.g(c, )\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::Constant[value=1.0]()"));
  EXPECT_THAT(graph, HasSubstr("aten::Float.int(%n)"));
  EXPECT_THAT(graph, HasSubstr("aten::IntImplicit("));
  EXPECT_THAT(graph, HasSubstr("aten::FloatImplicit(%c)"));
}

TEST(Frontend, IntegersOfBothBases) {
  const auto returned = [](const std::string& number) {
    return graph_of("def f() -> int:\n  return " + number + "\n", "f");
  };
  const auto constant = [](const std::string& value) { return "prim::Constant[value=" + value + "]()"; };
  EXPECT_THAT(returned("0x1F"), HasSubstr(constant("31")));
  EXPECT_THAT(returned("0XabCD"), HasSubstr(constant("43981")));
  EXPECT_THAT(returned("0x7FFFFFFFFFFFFFFF"), HasSubstr(constant("9223372036854775807")));
  EXPECT_THAT(returned("1_000"), HasSubstr(constant("1000")));
  EXPECT_THAT(returned("9223372036854775807"), HasSubstr(constant("9223372036854775807")));
  for (const char* number : {"0x8000000000000000", "9223372036854775808"}) {
    EXPECT_THAT(error_of(concat("def f() -> int:\n  return ", number, "\n")), HasSubstr("does not fit 64 bits"));
  }
}

TEST(Frontend, ListParametersTakeTuplesAndSingleNumbers) {
  const std::string graph = graph_of(
      "def f(x: Tensor, s: Tuple[int, int]) -> Tensor:\n"
      "  return torch.permute(torch.reshape(x, s), [1, 0])\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::TupleUnpack(%s)"));
  EXPECT_THAT(graph, HasSubstr(": List[int] = prim::ListConstruct("));
}

TEST(Frontend, BranchesMergeTheirVariables) {
  EXPECT_EQ(graph_of("def f(x: Tensor, c: bool) -> Tensor:\n"
                     "  if c:\n    y, n = torch.relu(x), 1\n  else:\n    y, n = x, 2\n"
                     "  return torch.mul(y, n)\n",
                     "f"),
            "graph(%x : Tensor, %c : bool):\n"
            "  %n : int, %y : Tensor = prim::If(%c)\n"
            "    block0():\n"
            "      %y.1 : Tensor = aten::relu(%x)\n"
            "      %n.1 : int = prim::Constant[value=1]()\n"
            "      -> (%n.1, %y.1)\n"
            "    block1():\n"
            "      %n.2 : int = prim::Constant[value=2]()\n"
            "      -> (%n.2, %x)\n"
            "  %0 : Tensor = aten::mul.Scalar(%y, %n)\n"
            "  return (%0)\n");
}

TEST(Frontend, MergedTypesBecomeOptional) {
  const std::string graph = graph_of(
      "def f(x: Tensor, c: bool) -> Optional[Tensor]:\n"
      "  if c:\n    y = x\n  else:\n    y = None\n  return y\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("%y : Optional[Tensor] = prim::If(%c)"));
}

TEST(Frontend, ARaisingBranchGivesPlaceholders) {
  const std::string graph = graph_of(
      "def f(x: Tensor, c: bool) -> Tensor:\n"
      "  if c:\n    y = x\n  else:\n    ops.prim.RaiseException(\"no\", \"builtins.ValueError\")\n"
      "  return y\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::RaiseException("));
  EXPECT_THAT(graph, HasSubstr(": Tensor = prim::Uninitialized()\n      -> ("));
}

TEST(Frontend, VariablesOfOneBranchCannotBeRead) {
  EXPECT_THAT(error_of("def f(x: Tensor, c: bool) -> Tensor:\n  if c:\n    y = x\n  else:\n    pass\n  return y\n"),
              HasSubstr("m.py:6:10: variable 'y' is not defined in every branch"));
}

TEST(Frontend, LoopsCarryWhatTheyAssign) {
  EXPECT_EQ(graph_of("def f(x: Tensor, n: int) -> Tensor:\n"
                     "  y = x\n"
                     "  for i in range(n):\n"
                     "    t = torch.relu(y)\n"
                     "    y = torch.mul(t, i)\n"
                     "  return y\n",
                     "f"),
            "graph(%x : Tensor, %n : int):\n"
            "  %0 : bool = prim::Constant[value=True]()\n"
            "  %y : Tensor = prim::Loop(%n, %0, %x)\n"
            "    block0(%i : int, %y.1 : Tensor):\n"
            "      %t : Tensor = aten::relu(%y.1)\n"
            "      %y.2 : Tensor = aten::mul.Scalar(%t, %i)\n"
            "      %1 : bool = prim::Constant[value=True]()\n"
            "      -> (%1, %y.2)\n"
            "  return (%y)\n");
}

TEST(Frontend, WhileReadsItsConditionAgain) {
  const std::string graph = graph_of(
      "def f(n: int) -> int:\n"
      "  i, go = 0, torch.lt(0, n)\n"
      "  while go:\n"
      "    i0 = torch.add(i, 1)\n"
      "    go, i = torch.lt(i0, n), i0\n"
      "  return i\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::Constant[value=9223372036854775807]()"));
  EXPECT_THAT(graph, HasSubstr("-> (%go.3, %go.3, %i0)"));
}

TEST(Frontend, ParallelAssignmentReadsBeforeItWrites) {
  EXPECT_EQ(graph_of("def f(a: int, b: int) -> Tuple[int, int]:\n  a, b = b, a\n  return (a, b)\n", "f"),
            "graph(%a : int, %b : int):\n"
            "  %0 : Tuple[int, int] = prim::TupleConstruct(%b, %a)\n"
            "  return (%0)\n");
}

TEST(Frontend, Unpacking) {
  const std::string graph = graph_of(
      "def f(x: Tensor, t: Tuple[int, Tensor], l: List[int]) -> int:\n"
      "  a, b, = t\n  c, d, = l\n  v, i = torch.frexp(x)\n  return torch.add(a, d)\n"
      "def g(t: Tuple[int, int]) -> int:\n  (a, b), c = t, 1\n  return (t)[-1]\n",
      "g");
  EXPECT_THAT(graph, HasSubstr("prim::TupleIndex[index=1](%t)"));
}

TEST(Frontend, ModulesMethodsAndAttributes) {
  const CompilationUnit unit = unit_of(
      "class A(Module):\n"
      "  __parameters__ = []\n"
      "  n : int\n"
      "  eps : Final[float] = 0.5\n"
      "  __annotations__[\"0\"] = __torch__.m.B\n"
      "  def forward(self: __torch__.m.A, x: Tensor) -> Tensor:\n"
      "    _0 = getattr(self, \"0\")\n"
      "    self.n = torch.add(self.n, 1)\n"
      "    return torch.mul((_0).forward(x, ), self.eps)\n"
      "class B(Module):\n"
      "  def forward(self: __torch__.m.B, x: Tensor, k: int=3) -> Tensor:\n"
      "    return torch.mul(x, k)\n");
  EXPECT_EQ(graph_of(unit, "A.forward"),
            "graph(%self : __torch__.m.A, %x : Tensor):\n"
            "  %_0 : __torch__.m.B = prim::GetAttr[name=\"0\"](%self)\n"
            "  %0 : int = prim::GetAttr[name=\"n\"](%self)\n"
            "  %1 : int = prim::Constant[value=1]()\n"
            "  %2 : int = aten::add.int(%0, %1)\n"
            "  prim::SetAttr[name=\"n\"](%self, %2)\n"
            "  %3 : int = prim::Constant[value=3]()\n"
            "  %4 : Tensor = prim::CallMethod[name=\"forward\"](%_0, %x, %3)\n"
            "  %5 : float = prim::Constant[value=0.5]()\n"
            "  %6 : Tensor = aten::mul.Scalar(%4, %5)\n"
            "  return (%6)\n");
  EXPECT_EQ(unit.find_method("__torch__.m.A", "forward"), unit.find_function("__torch__.m.A.forward"));
}

TEST(Frontend, FunctionsInVariables) {
  EXPECT_THAT(graph_of("def g(x: Tensor, n: int=2) -> Tensor:\n  return x\n"
                       "def f(x: Tensor) -> Tensor:\n  _0 = __torch__.m.g\n  return _0(x, )\n",
                       "f"),
              HasSubstr("prim::CallFunction[name=\"__torch__.m.g\"](%x, "));
}

TEST(Frontend, ClassesNamedTuplesAndEnums) {
  const CompilationUnit unit = unit_of(
      "class Acc:\n  n : int\n  def __init__(self: __torch__.m.Acc, n: int) -> NoneType:\n    self.n = n\n    return "
      "None\n"
      "class P(NamedTuple):\n  x : int\n  y : float = 2.\n"
      "class Color(Enum):\n  RED = 7\n"
      "def f() -> int:\n"
      "  a = __torch__.m.Acc.__new__(__torch__.m.Acc)\n"
      "  _1 = (a).__init__(2, )\n"
      "  p = __torch__.m.P(1)\n"
      "  c = __torch__.m.Color.RED\n"
      "  return torch.add(p.x, (c).value)\n");
  const std::string graph = graph_of(unit, "f");
  EXPECT_THAT(graph, HasSubstr("%a : __torch__.m.Acc = prim::CreateObject()"));
  EXPECT_THAT(graph, HasSubstr("%p : __torch__.m.P = prim::TupleConstruct("));
  EXPECT_THAT(graph, HasSubstr("prim::TupleIndex[index=0](%p)"));
  EXPECT_THAT(graph, HasSubstr("prim::Constant[value=7]()"));
}

TEST(Frontend, ForkCapturesByValue) {
  EXPECT_EQ(graph_of("def f(x: Tensor) -> Tensor:\n"
                     "  y = torch.relu(x)\n"
                     "  def __forked_function():\n"
                     "    return torch.neg(y)\n"
                     "  y = x\n"
                     "  w = fork(__forked_function)\n"
                     "  return torch.wait(w)\n",
                     "f"),
            "graph(%x : Tensor):\n"
            "  %y : Tensor = aten::relu(%x)\n"
            "  %w : Future[Tensor] = prim::fork(%y)\n"
            "    block0(%y.1 : Tensor):\n"
            "      %0 : Tensor = aten::neg(%y.1)\n"
            "      -> (%0)\n"
            "  %1 : Tensor = prim::wait(%w)\n"
            "  return (%1)\n");
}

TEST(Frontend, WithCallsEnterAndExit) {
  const std::string graph = graph_of(
      "class Ctx:\n"
      "  def __enter__(self: __torch__.m.Ctx) -> int:\n    return 1\n"
      "  def __exit__(self: __torch__.m.Ctx, a: Any, b: Any, c: Any) -> NoneType:\n    return None\n"
      "def f(ctx: __torch__.m.Ctx) -> int:\n  with ctx as k:\n    n = torch.add(k, 1)\n  return n\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("%k : int = prim::CallMethod[name=\"__enter__\"](%ctx)"));
  EXPECT_THAT(graph, HasSubstr("prim::CallMethod[name=\"__exit__\"](%ctx, "));
}

TEST(Frontend, SpecialForms) {
  const std::string graph = graph_of(
      "def f(x: Any) -> List[int]:\n"
      "  a = annotate(List[int], [])\n"
      "  b = uninitialized(Tensor)\n"
      "  c = isinstance(x, (int, list))\n"
      "  d = unchecked_cast(int, x)\n"
      "  _0 = torch.append(a, d)\n"
      "  return a\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("%a : List[int] = prim::ListConstruct()"));
  EXPECT_THAT(graph, HasSubstr("%b : Tensor = prim::Uninitialized()"));
  EXPECT_THAT(graph, HasSubstr("%d : int = prim::unchecked_cast(%x)"));
}

TEST(Frontend, ModuleListsByAnIndexKnownAtRunTime) {
  const std::string graph = graph_of(
      "class I(ModuleInterface):\n  def forward(self, x: Tensor) -> Tensor:\n    pass\n"
      "class A(Module):\n  def forward(self: __torch__.m.A, x: Tensor) -> Tensor:\n    return x\n"
      "class L(Module):\n  training : bool\n  __annotations__[\"0\"] = __torch__.m.A\n  __annotations__[\"1\"] = "
      "__torch__.m.A\n"
      "def f(l: __torch__.m.L, x: Tensor, i: int) -> Tensor:\n  h : __torch__.m.I = l[i]\n  return (h).forward(x, )\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::GetAttr[name=\"0\"](%l)"));
  EXPECT_THAT(graph, HasSubstr("prim::GetAttr[name=\"1\"](%l)"));
  EXPECT_THAT(graph, HasSubstr("prim::CallMethod[name=\"forward\"](%h, %x)"));
}

TEST(Frontend, ModuleListsByAConstantIndex) {
  const auto graph = [](const std::string& item, const std::string& parameter = "") {
    const std::string text =
        "class A(Module):\n  def forward(self: __torch__.m.A, x: Tensor) -> Tensor:\n    return x\n"
        "class L(Module):\n  training : bool\n  __annotations__[\"0\"] = __torch__.m.A\n  __annotations__[\"1\"] = "
        "__torch__.m.A\n  __annotations__[\"a\"] = __torch__.m.A\n"
        "def f(l: __torch__.m.L, x: Tensor" +
        parameter + ") -> Tensor:\n  return (" + item + ").forward(x, )\n";
    const std::string error = error_of(text);
    return error.empty() ? graph_of(text, "f") : error;
  };
  EXPECT_THAT(graph("l[0]"), HasSubstr("prim::GetAttr[name=\"0\"](%l)"));
  EXPECT_THAT(graph("l[1]"), HasSubstr("prim::GetAttr[name=\"1\"](%l)"));
  EXPECT_THAT(graph("l[\"a\"]"), HasSubstr("prim::GetAttr[name=\"a\"](%l)"));
  EXPECT_THAT(graph("l[-2]"), HasSubstr("prim::GetAttr[name=\"1\"](%l)"));  // of three items
  for (const char* none : {"l[3]", "l[-4]", "l[\"b\"]"}) {
    EXPECT_THAT(graph(none), HasSubstr("class __torch__.m.L has no such module")) << none;
  }
  EXPECT_THAT(graph("l[i]", ", i: int"), HasSubstr("only needs an interface as annotation"));
}

TEST(Frontend, ConstantsOfTheArchive) {
  CompilationUnit unit = unit_of("def f() -> str:\n  return CONSTANTS.c1\ndef g() -> str:\n  return CONSTANTS.c2\n");
  unit.set_constants({ops::Value(), ops::Value("\xC3\xA9")});
  EXPECT_THAT(graph_of(unit, "f"), HasSubstr(": str = prim::Constant[value="));
  EXPECT_THROW(unit.find_function("__torch__.m.g"), Error);
}

TEST(Frontend, ReturnsAtTheEndOfBranches) {
  const std::string graph = graph_of(
      "def f(x: Tensor, n: int) -> Tensor:\n"
      "  if n > 3:\n    return x\n"
      "  if n < 0:\n    raise ValueError(\"negative\")\n"
      "  y = torch.relu(x)\n"
      "  if n == 0:\n    return y\n  else:\n    return -y\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("aten::relu(%x)"));
  EXPECT_THAT(graph, HasSubstr("aten::neg("));
}

TEST(Frontend, HandWrittenOperatorsAndNarrowing) {
  const std::string graph = graph_of(
      "def f(x: Optional[Tensor], l: List[int]):\n"
      "  \"\"\"Doc.\"\"\"\n"
      "  if x is not None and x.dim() > 1:\n"
      "    y = x @ x.t()\n"
      "  else:\n"
      "    return None\n"
      "  n = 0\n"
      "  for k in l:\n"
      "    n += k if k > 2 else -k\n"
      "  y *= n\n"
      "  return y\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("prim::unchecked_cast(%x)"));
  EXPECT_THAT(graph, HasSubstr("aten::mul_.Scalar(%y"));
}

TEST(Frontend, UnknownOperatorsAreNamed) {
  ErrorCode code = ErrorCode::kInternal;
  const std::string message = error_of("def f(x: Tensor) -> Tensor:\n  return torch.no_such_thing(x)\n", &code);
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_EQ(message,
            "code/__torch__/m.py:2:10: operator aten::no_such_thing is not supported\n"
            "    return torch.no_such_thing(x)\n"
            "           ^");
}

TEST(Frontend, UnknownOperatorsInBranchesRaiseWhenReached) {
  const std::string graph = graph_of(
      "def f(x: Tensor, c: bool) -> Tensor:\n"
      "  if c:\n    y = [1, torch.no_such_thing(x)[0].size(1)]\n    z = torch.relu(x)\n"
      "  else:\n    y, z = [2], x\n"
      "  return torch.reshape(z, y)\n",
      "f");
  EXPECT_THAT(graph, HasSubstr("%y : List[int], %z : Tensor = prim::If(%c)"));
  EXPECT_THAT(graph, HasSubstr("value=\"operator aten::no_such_thing is not supported\""));
  EXPECT_THAT(graph, HasSubstr("prim::MissingOperator("));
  EXPECT_THAT(graph, ::testing::Not(HasSubstr("aten::relu")));
}

TEST(Frontend, OperatorsThatWerePutOffAreListed) {
  const CompilationUnit unit = unit_of(
      "def g(x: Tensor, c: bool) -> Tensor:\n"
      "  if c:\n    x = torch.never_written(x)\n"
      "  return x\n"
      "def broken(x: Tensor) -> Tensor:\n"
      "  return torch.never_written(x)\n"
      "def f(x: Tensor, c: bool) -> Tensor:\n"
      "  if c:\n    x = torch.no_such_thing(x)\n"
      "  if c:\n    x = torch.relu(x, 1, 2)\n"
      "  if c:\n    raise ValueError(\"no\")\n"
      "  for i in range(3):\n    x = __torch__.m.g(x, c)\n"
      "  if c:\n    x = __torch__.m.broken(x)\n"
      "  return __torch__.m.g(x, c)\n");
  std::string found;
  for (const MissingOperator& missing : missing_operators(*unit.find_function("__torch__.m.f")->graph, unit)) {
    found += missing.message + " " + missing.location.str() + "\n";
  }
  EXPECT_EQ(found,
            "operator aten::no_such_thing is not supported code/__torch__/m.py:9\n"
            "no overload of aten::relu takes (Tensor, int, int) code/__torch__/m.py:11\n"
            "operator aten::never_written is not supported code/__torch__/m.py:3\n");
}

TEST(Frontend, WrongArgumentsListTheCandidates) {
  ErrorCode code = ErrorCode::kInternal;
  const std::string message = error_of("def f(x: str) -> Tensor:\n  return torch.relu(x)\n", &code);
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_THAT(message, HasSubstr("no overload of aten::relu takes (str)"));
  EXPECT_THAT(message, HasSubstr("aten::relu(Tensor self) -> Tensor"));
  EXPECT_THAT(message, HasSubstr("expected a value of type Tensor for argument 'self' but got str"));
}

TEST(Frontend, MistakesHaveAPlace) {
  EXPECT_THAT(error_of("def f(x: Tensor) -> Tensor:\n  return y\n"), HasSubstr("m.py:2:10: name 'y' is not defined"));
  EXPECT_THAT(error_of("def f(x: Tensor) -> int:\n  return x.foo\n"), HasSubstr("m.py:2:10: "));
  EXPECT_THAT(error_of("def f(x: Tensor) -> str:\n  return x\n"),
              HasSubstr("expected a value of type str but got Tensor"));
  EXPECT_THAT(error_of("def f(t: Tuple[int, int]) -> int:\n  return (t)[2]\n"),
              HasSubstr("tuple index 2 is out of range"));
  EXPECT_THAT(error_of("def f(t: Tuple[int, int]) -> int:\n  a, b, c = t\n  return a\n"),
              HasSubstr("got 2 values to unpack, expected 3"));
  EXPECT_THAT(error_of("def f(n: int) -> int:\n  for i in range(n):\n    return i\n  return 0\n"),
              HasSubstr("m.py:3:5: a return inside of a loop"));
  EXPECT_THAT(error_of("def g(n: int) -> int:\n  return n\ndef f(n: int) -> int:\n  return __torch__.m.g(n, n, )\n"),
              HasSubstr("expected at most 1"));
}

TEST(Frontend, ReturnTypesAreInferredButNotInCircles) {
  EXPECT_THAT(graph_of("def g(n: int):\n  return n\ndef f(n: int) -> int:\n  return g(n)\n", "f"),
              HasSubstr(": int = prim::CallFunction"));
  EXPECT_THAT(error_of("def g(n: int):\n  return f(n)\ndef f(n: int):\n  return g(n)\n"),
              HasSubstr("depends on itself"));
}

TEST(Frontend, ErrorsComeAgainWhenAskedAgain) {
  const CompilationUnit unit = unit_of("def f(x: Tensor) -> Tensor:\n  return (x\n");
  for (int i = 0; i < 2; ++i) EXPECT_THROW(unit.find_function("__torch__.m.f"), Error);
}

}  // namespace
}  // namespace tensord::jit::frontend_test
