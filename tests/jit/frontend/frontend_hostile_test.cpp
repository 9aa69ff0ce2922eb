#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "tests/jit/frontend/frontend_fixture.h"

namespace tensord::jit::frontend_hostile_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string function_of(const std::string& expression) {
  return "def f(x: Tensor) -> Tensor:\n  return " + expression + "\n";
}

// Far deeper than the stack allows.
constexpr int kDeep = 100000;

TEST(FrontendHostile, DeepNestingIsAnErrorWithAPlace) {
  for (const std::string& text : {
           function_of(repeat("(", kDeep) + "x" + repeat(")", kDeep)),
           function_of(repeat("torch.relu(", kDeep) + "x" + repeat(")", kDeep)),
           function_of(repeat("[", kDeep) + repeat("]", kDeep)),
           function_of(repeat("-", kDeep) + "x"),
           function_of(repeat("not ", kDeep) + "x"),
           function_of("x" + repeat(".t", kDeep)),
           function_of("x" + repeat("[0]", kDeep)),
           function_of("x" + repeat("(x)", kDeep)),
           function_of("x" + repeat(" + x", kDeep)),
           function_of("x" + repeat(" < x", kDeep)),
           function_of("x" + repeat(" and x", kDeep)),
           function_of("x" + repeat(" ** x", kDeep)),
           function_of(repeat("x if x else ", kDeep) + "x"),
           "def f(x: " + repeat("List[", kDeep) + "int" + repeat("]", kDeep) + ") -> int:\n  return 1\n",
           "def f(x: Tensor) -> Tensor:\n  if x:\n    pass\n" + repeat("  elif x:\n    pass\n", kDeep) + "  return x\n",
           "def f(x: Tensor) -> Tensor:\n  " + repeat("if x: ", kDeep) + "pass\n",
       }) {
    const std::string message = error_of(text);
    EXPECT_THAT(message, ::testing::StartsWith("code/__torch__/m.py:")) << text.substr(0, 80);
    EXPECT_LT(message.size(), 1000u);
  }
}

// Every line doubles the size of the previous type, as a tree.
TEST(FrontendHostile, TypesOfTuplesStaySmall) {
  std::string text = "def f(x: Tensor) -> Tensor:\n  s0 = (1, 1)\n";
  for (int i = 0; i < 60; ++i) {
    const std::string before = "s" + std::to_string(i);
    text += "  s" + std::to_string(i + 1) + " = (" + before + ", " + before + ")\n";
  }
  EXPECT_THAT(error_of(text + "  return x\n"), HasSubstr("a type is made of more than"));
}

TEST(FrontendHostile, NestingWithinTheLimitsCompiles) {
  EXPECT_EQ(error_of(function_of(repeat("torch.relu(", 90) + "x" + repeat(")", 90))), "");
  std::string text = "def f(x: Tensor, c: bool) -> Tensor:\n";
  for (size_t i = 1; i < 80; ++i) text += std::string(i, ' ') + "if c:\n";
  text += std::string(80, ' ') + "x = torch.relu(x)\n return x\n";
  EXPECT_EQ(error_of(text), "");
}

TEST(FrontendHostile, HugeLiterals) {
  EXPECT_THAT(error_of("def f() -> int:\n  return " + repeat("9", 10000) + "\n"),
              HasSubstr("the number does not fit 64 bits"));
  EXPECT_THAT(error_of("def f() -> int:\n  return 9223372036854775808\n"),
              HasSubstr("the number does not fit 64 bits"));
  EXPECT_EQ(error_of("def f() -> int:\n  return -9223372036854775808\n"), "");
  EXPECT_EQ(error_of("def f() -> float:\n  return 1e999999\n"), "");
  EXPECT_THAT(error_of("def f() -> float:\n  return 1" + repeat("0", 100) + "j\n"),
              HasSubstr("expected a value of type float but got complex"));
}

TEST(FrontendHostile, BrokenText) {
  for (const char* text : {
           "def",
           "def f",
           "def f(",
           "def f()",
           "def f() ->",
           "def f():",
           "def f():\n",
           "def f():\nreturn 1\n",
           "class",
           "class f(:\n",
           "class f:\n  x\n",
           "class f:\n  __annotations__[0] = int\n",
           "f = 1\n",
           "  def f():\n    pass\n",
           "def f():\n  return 1 2\n",
           "def f():\n  a = b = 1\n",
           "def f():\n  1 = 2\n",
           "def f():\n  return x[1\n",
           "def f():\n  lambda x: x\n",
           "\x00\xff\xfe",
           "def f(x: Foo) -> Bar:\n  return x\n",
           "def f(x, x):\n  return x\n",
           "def f():\n  return ops.x\n",
           "def f():\n  return CONSTANTS.c99\n",
           "def f():\n  return CONSTANTS.cX\n",
           "def f():\n  return __torch__.m.f\n",
           "def f(x: int=x):\n  return 1\n",
           "def f():\n  return __torch__.m.G.__new__()\n",
           "def f():\n  return fork(f)\n",
           "def f():\n  return annotate(int)\n",
           "def f():\n  return isinstance(1, 2)\n",
           "def f():\n  return getattr(1, 2)\n",
           "def f():\n  return (1)[\"a\"]\n",
           "def f():\n  del x\n",
           "def f():\n  return f\"{x}\"\n",
           "def f():\n  return g(*x)\n",
       }) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(FrontendHostile, ManyParametersAndKeywordsAreRefusedQuickly) {
  std::string many = "def f(a";
  for (int i = 0; i < kDeep; ++i) many += concat(", a", i);
  EXPECT_THAT(error_of(many + ") -> int:\n  return 1\n"), HasSubstr("too many parameters"));
  std::string call = "def f() -> int:\n  return g(a=1";
  for (int i = 0; i < kDeep; ++i) call += concat(", a", i, "=1");
  EXPECT_THAT(error_of(call + ")\n"), HasSubstr("too many keyword arguments"));
}

// At a limit the source is accepted, or fails for another reason; one more is reported as too many.
TEST(FrontendHostile, LimitsOfTheParser) {
  const auto call_with = [](int count) {
    std::string text = "def f() -> int:\n  return g(a0=1";
    for (int i = 1; i < count; ++i) text += concat(", a", i, "=1");
    return text + ")\n";
  };
  const auto with_parameters = [](int count) {
    std::string text = "def f(a0: int";
    for (int i = 1; i < count; ++i) text += concat(", a", i, ": int");
    return text + ") -> int:\n  return 1\n";
  };
  const auto with_brackets = [](int count) { return function_of(repeat("[", count) + repeat("]", count)); };
  const auto with_blocks = [](int count) {  // including the function's own
    std::string text = "def f(x: int) -> int:\n";
    for (int i = 1; i < count; ++i) text += std::string(static_cast<size_t>(i), ' ') + "if x > 0:\n";
    return text + std::string(static_cast<size_t>(count), ' ') + "x = 2\n return x\n";
  };
  EXPECT_THAT(error_of(call_with(500)), Not(HasSubstr("too many")));
  EXPECT_THAT(error_of(call_with(501)), HasSubstr("too many keyword arguments"));
  EXPECT_EQ(error_of(with_parameters(1000)), "");
  EXPECT_THAT(error_of(with_parameters(1001)), HasSubstr("too many parameters"));
  EXPECT_THAT(error_of(with_brackets(200)), Not(HasSubstr("brackets are nested too deeply")));
  EXPECT_THAT(error_of(with_brackets(201)), HasSubstr("brackets are nested too deeply"));
  EXPECT_EQ(error_of(with_blocks(99)), "");
  EXPECT_THAT(error_of(with_blocks(100)), HasSubstr("blocks are nested too deeply"));
}

// Wherever the deepest part of a call is.
TEST(FrontendHostile, DepthOfExpressions) {
  const auto sum = [](int count) { return "1" + repeat(" + 1", count); };
  const auto call = [&](const std::string& arguments) {
    return concat("def f(x: Tensor) -> Tensor:\n  return torch.add(", arguments, ")\n");
  };
  const auto calls = [&](const std::string& deep) {
    return std::vector<std::string>{call(concat("x, ", deep)), call(concat("x, ", deep, ", alpha=1")),
                                    call(concat("x, other=", deep, ", alpha=1")),
                                    call(concat("x, alpha=1, other=", deep))};
  };
  for (const std::string& text : calls(sum(248))) EXPECT_EQ(error_of(text), "");
  for (const std::string& text : calls(sum(249))) {
    EXPECT_THAT(error_of(text), HasSubstr("the expression is nested too deeply"));
  }
}

constexpr const char* kSource = R"(class M(Module):
  __parameters__ = ["w", ]
  w : Tensor
  eps : Final[float] = 1e-05
  __annotations__["0"] = __torch__.m.N
  def forward(self: __torch__.m.M,
    x: Tensor,
    n: int=3) -> Tuple[Tensor, List[int]]:
    _0 = __torch__.m.helper
    w = self.w
    if torch.gt(n, 2):
      y, k = torch.add(x, w, alpha=2), 1
    else:
      y, k = _0(x, [1, 2], "a\n\001", ), n
    out = annotate(List[int], [])
    i = 0
    _1 = torch.lt(i, n)
    while _1:
      _2 = torch.append(out, i)
      i0 = torch.add(i, 1)
      _1, i = torch.lt(i0, n), i0
    for j in range(torch.__range_length(0, n, 2)):
      y = torch.mul(y, self.eps)
    def __forked_function():
      return torch.neg(y)
    z = fork(__forked_function)
    return (torch.wait(z), out)
class N(Module):
  training : bool
class P(NamedTuple):
  a : int
  b : Optional[Tensor] = None
def helper(x: Tensor, l: List[int], s: str) -> Tensor:
  p = __torch__.m.P(1)
  if torch.__is__(p.b, None):
    r = x
  else:
    ops.prim.RaiseException(s, "builtins.ValueError")
  return r
)";

void compile_all(const std::string& text) {
  try {
    const CompilationUnit unit = unit_of(text);
    for (const std::string& name : unit.function_names()) unit.find_function(name);
    for (const std::string& name : unit.class_names()) {
      unit.find_type(name);
      for (const std::string& method : unit.method_names(name)) unit.find_method(name, method);
    }
  } catch (const Error& error) {
    ASSERT_NE(error.code(), ErrorCode::kInternal) << error.what() << "\n" << text;
  }
}

TEST(FrontendHostile, TheSourceItselfCompiles) {
  const CompilationUnit unit = unit_of(kSource);
  EXPECT_NE(unit.find_method("__torch__.m.M", "forward"), nullptr);
}

// Any change of the source either compiles or is an Error; nothing crashes, hangs or reports an internal error.
TEST(FrontendHostile, RandomChanges) {
  std::mt19937 random(7);
  const std::string source = kSource;
  const std::string alphabet = "()[]{}:,.=\"'\\ \n\tab019_-+*#@<>\xff";
  const std::clock_t begin = std::clock();  // CPU time, independent of other load
  for (int round = 0; round < 4000; ++round) {
    std::string text = source;
    for (int changes = static_cast<int>(random() % 3) + 1; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 5) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.erase(at, random() % 8 + 1); break;
        case 2: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
        case 3: text.insert(at, source.substr(random() % source.size(), random() % 40)); break;
        case 4: text[at] = static_cast<char>(random()); break;
      }
    }
    compile_all(text);
    if (HasFatalFailure()) return;
  }
  for (size_t length = 0; length < source.size(); length += 7) compile_all(source.substr(0, length));
  EXPECT_LT(std::clock() - begin, 120 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace tensord::jit::frontend_hostile_test
