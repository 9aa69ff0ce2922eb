// The meaning of scripts: literals, defaults, named numbers, blocks and conditions, checked by their results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"

namespace tensord::jit::frontend_values_test {
namespace {

using ops::Value;

// The string that `forward` of a module returns, or the error.
std::string result_of(const std::string& body, const std::string& signature = "self) -> str",
                      bool for_training = false) {
  try {
    LoadOptions options;
    options.for_training = for_training;
    const auto module = Module::compile("class M(Module):\n  def forward(" + signature + ":\n" + body, {}, options);
    Frame frame;
    const Value got = module->method("forward").run(frame, {});
    const ops::Op& text = ops::get_op("aten::str");
    return ops::run(text, ops::bind(text, {got})).at(0).to_string();
  } catch (const Error& error) {
    return concat("error: ", error.what());
  }
}
// The value of one expression of any type.
std::string value_of(const std::string& expression) { return result_of("    return str(" + expression + ")\n"); }
std::string default_of(const std::string& type, const std::string& literal) {
  return result_of("    return str(x)\n", "self, x: " + type + "=" + literal + ") -> str");
}

TEST(FrontendValues, NamedNumbers) {
  EXPECT_EQ(value_of("math.pi"), "3.1415926535897931");
  EXPECT_EQ(value_of("math.inf"), "inf");
  EXPECT_EQ(value_of("-math.inf"), "-inf");
  const std::pair<const char*, const char*> dtypes[] = {
      {"half", "float16"}, {"float", "float32"}, {"double", "float64"},   {"short", "int16"},
      {"int", "int32"},    {"long", "int64"},    {"cfloat", "complex64"}, {"cdouble", "complex128"}};
  for (const auto& [name, same] : dtypes) {
    EXPECT_EQ(value_of(concat("torch.", name)), value_of(concat("torch.", same))) << name;
    EXPECT_THAT(value_of(concat("torch.", name)), ::testing::Not(::testing::HasSubstr("error"))) << name;
  }
  EXPECT_EQ(value_of("math.floor(2.5)"), "2");
  EXPECT_EQ(value_of("torch.device(\"cpu\").type"), "cpu");
  EXPECT_EQ(value_of("torch.device(\"cuda:1\").index"), "1");
  EXPECT_EQ(value_of("torch.zeros([2, 3]).shape"), "[2, 3]");
  EXPECT_EQ(value_of("torch.zeros([2, 3]).T.shape"), "[3, 2]");
  EXPECT_EQ(value_of("torch.zeros([2, 3]).requires_grad"), "False");
}

// Assignments in a block are visible after it, whatever the brackets around the targets.
TEST(FrontendValues, TargetsInBracketsAreAssigned) {
  for (const char* targets : {"a, b", "(a, b)", "[a, b]"}) {
    const std::string values = targets[0] == '[' ? "[a + 1, b + i]" : "(a + 1, b + i)";
    EXPECT_EQ(result_of(concat("    a, b = 0, 0\n    for i in range(4):\n      ", targets, " = ", values,
                               "\n    return str([a, b])\n")),
              "[4, 6]")
        << targets;
    EXPECT_EQ(result_of(concat("    a, b, i = 0, 0, 7\n    if i > 5:\n      ", targets, " = ", values,
                               "\n    return str([a, b])\n")),
              "[1, 7]")
        << targets;
  }
}

TEST(FrontendValues, TypesInQuotes) {
  EXPECT_EQ(default_of("\"int\"", "3"), "3");
  EXPECT_EQ(default_of("'Optional[float]'", "2.5"), "2.5");
  EXPECT_EQ(result_of("    x : \"List[int]\" = []\n    return str(x)\n", "self) -> \"str\""), "[]");
  EXPECT_THAT(default_of("\"no type\"", "3"), ::testing::HasSubstr("error: "));
}

TEST(FrontendValues, Defaults) {
  EXPECT_EQ(default_of("int", "3"), "3");
  EXPECT_EQ(default_of("float", "3"), "3.");
  EXPECT_EQ(default_of("float", "-2.5"), "-2.5");
  EXPECT_EQ(default_of("int", "-2"), "-2");
  EXPECT_EQ(default_of("float", "inf"), "inf");
  EXPECT_EQ(default_of("float", "-inf"), "-inf");
  EXPECT_EQ(default_of("float", "nan"), "nan");
  EXPECT_EQ(default_of("bool", "True"), "True");
  EXPECT_EQ(default_of("str", "\"a\""), "a");
  EXPECT_EQ(default_of("Optional[int]", "None"), "None");
  EXPECT_EQ(default_of("Optional[float]", "2"), "2.");
  EXPECT_EQ(default_of("Device", "\"cpu\""), "cpu");
  EXPECT_EQ(default_of("Device", "torch.device(\"cpu\")"), "cpu");
  EXPECT_EQ(default_of("List[int]", "[1, 2]"), "[1, 2]");
  EXPECT_EQ(default_of("List[float]", "[1, 2]"), "[1., 2.]");
  EXPECT_EQ(default_of("Optional[List[float]]", "[1]"), "[1.]");
  EXPECT_EQ(default_of("List[int]", "[]"), "[]");
  EXPECT_EQ(default_of("List[int]", "annotate(List[int], [])"), "[]");
  EXPECT_EQ(default_of("List[float]", "annotate(List[float], [1])"), "[1.]");
  EXPECT_EQ(default_of("List[List[float]]", "[[1], [2, 3]]"), "[[1.], [2., 3.]]");
  EXPECT_EQ(default_of("Tuple[int, float]", "(1, 2)"), "(1, 2.)");
  EXPECT_EQ(default_of("Tuple[float, Tuple[int, float]]", "(1, (2, 3))"), "(1., (2, 3.))");
  EXPECT_EQ(default_of("Dict[str, float]", "{\"a\": 1, \"b\": 2}"), "{a: 1., b: 2.}");
  EXPECT_EQ(default_of("Dict[int, List[float]]", "{7: [1]}"), "{7: [1.]}");
  EXPECT_EQ(default_of("Dict[str, int]", "{}"), "{}");
  EXPECT_THAT(default_of("int", "min(1, 2)"), ::testing::HasSubstr("error: "));
  EXPECT_THAT(default_of("int", "not 1"), ::testing::HasSubstr("error: "));
}

TEST(FrontendValues, DefaultsAreMadeAnew) {
  EXPECT_EQ(result_of("    first = self.add()\n    return str(self.add())\n"
                      "  def add(self, x: List[int]=[1]) -> List[int]:\n    x.append(2)\n    return x\n"),
            "[1, 2]");
}

TEST(FrontendValues, GradModes) {
  const auto inside = [](const std::string& context) {
    return result_of("    with " + context + ":\n      inside = torch.is_grad_enabled()\n" +
                         "    return str((inside, torch.is_grad_enabled()))\n",
                     "self) -> str", /*for_training=*/true);
  };
  EXPECT_EQ(inside("torch.no_grad()"), "(False, True)");
  EXPECT_EQ(inside("torch.inference_mode()"), "(False, True)");
  EXPECT_EQ(inside("torch.enable_grad()"), "(True, True)");
  EXPECT_THAT(inside("torch.no_grad(1)"), ::testing::HasSubstr("error: "));
  EXPECT_THAT(inside("torch.no_grad(x=1)"), ::testing::HasSubstr("error: "));
  EXPECT_EQ(
      result_of("    with torch.no_grad():\n      with torch.enable_grad():\n        a = torch.is_grad_enabled()\n"
                "      b = torch.is_grad_enabled()\n    return str((a, b))\n",
                "self) -> str", /*for_training=*/true),
      "(True, False)");
}

TEST(FrontendValues, WhatConditionsSay) {
  const auto narrowed = [](const std::string& test, const std::string& otherwise) {
    return result_of(
        "    if " + test + ":\n      out = x + 1\n    else:\n      out = " + otherwise + "\n    return str(out)\n",
        "self, x: Optional[int]=4) -> str");
  };
  EXPECT_EQ(narrowed("x is not None", "0"), "5");
  EXPECT_EQ(narrowed("not x is None", "0"), "5");
  EXPECT_EQ(narrowed("x is not None and x > 3", "0"), "5");
  EXPECT_EQ(narrowed("not (x is None or x < 3)", "0"), "5");
  EXPECT_EQ(narrowed("isinstance(x, int)", "0"), "5");
  EXPECT_EQ(narrowed("x is None", "0"), "0");
  EXPECT_THAT(narrowed("x is not None or True", "0"), ::testing::HasSubstr("error: "));
  EXPECT_EQ(result_of("    if x is None:\n      out = 0\n    else:\n      out = x + 1\n    return str(out)\n",
                      "self, x: Optional[int]=4) -> str"),
            "5");
}

TEST(FrontendValues, VariablesOfBranchesThatRaise) {
  EXPECT_EQ(
      result_of(
          "    if len(\"a\") == 1:\n      out = 1\n    else:\n      raise Exception(\"no\")\n    return str(out)\n"),
      "1");
  EXPECT_EQ(
      result_of(
          "    if len(\"a\") == 2:\n      raise Exception(\"no\")\n    else:\n      out = 1\n    return str(out)\n"),
      "1");
  EXPECT_THAT(result_of("    if len(\"a\") == 1:\n      out = 1\n    return str(out)\n"),
              ::testing::HasSubstr("is not defined in every branch"));
  EXPECT_THAT(result_of("    if len(\"a\") == 1:\n      out = 1\n    else:\n      out = \"b\"\n    return str(out)\n"),
              ::testing::HasSubstr("has type int in one branch and str in the other"));
}

TEST(FrontendValues, AugmentedAssignments) {
  const auto list = [](const std::string& statement) {
    return result_of("    x = [1, 2]\n    y = x\n    " + statement + "\n    return str((x, y))\n");
  };
  EXPECT_EQ(list("x += [3]"), "([1, 2, 3], [1, 2, 3])") << "in place";
  EXPECT_EQ(list("x = x + [3]"), "([1, 2, 3], [1, 2])");
  EXPECT_EQ(list("x[0] += 4"), "([5, 2], [5, 2])");
  const auto tensor = [](const std::string& statement) {
    return result_of("    x = torch.ones([1])\n    y = x\n    " + statement + "\n    return str((int(x), int(y)))\n");
  };
  EXPECT_EQ(tensor("x += 3"), "(4, 4)") << "in place";
  EXPECT_EQ(tensor("x -= 3"), "(-2, -2)");
  EXPECT_EQ(tensor("x *= 3"), "(3, 3)");
  EXPECT_EQ(tensor("x /= 0.5"), "(2, 2)");
  EXPECT_EQ(tensor("x = x + 3"), "(4, 1)");
  const auto number = [](const std::string& statement) {
    return result_of("    x = 7\n    " + statement + "\n    return str(x)\n");
  };
  EXPECT_EQ(number("x += 3"), "10");
  EXPECT_EQ(number("x //= 2"), "3");
  EXPECT_EQ(number("x %= 4"), "3");
}

// A missing operator is an error when it is reached, wherever it is in a statement.
TEST(FrontendValues, OperatorsThatAreNotThere) {
  for (const char* statement : {
           "y = torch.nothing(x)",
           "y = torch.nothing(x).shape",
           "y = torch.nothing(x).relu()",
           "y = torch.nothing(x)[0]",
           "y = x[torch.nothing(x)]",
           "y = torch.relu(torch.nothing(x))",
           "y = torch.add(torch.relu(x), torch.nothing(x))",
           "y = x + torch.nothing(x)",
           "y = -torch.nothing(x)",
           "y = self.other(torch.nothing(x))",
           "y = (torch.nothing(x), x)",
           "y = [torch.nothing(x), x]",
           "y = {\"a\": torch.nothing(x)}",
           "a, b = torch.nothing(x)",
           "a, b = torch.nothing(x), x",
           "x += torch.nothing(x)",
           "x[0] = torch.nothing(x)",
           "x[0] += torch.nothing(x)",
           "y = int(torch.nothing(x))",
           "y = str(torch.nothing(x))",
           "y = 1 if bool(torch.nothing(x)) else 2",
           "y = bool(torch.nothing(x)) and n == 1",
           "y = n == 1 and bool(torch.nothing(x))",
           "assert bool(torch.nothing(x))",
           "print(torch.nothing(x))",
           "raise Exception(str(torch.nothing(x)))",
           "return str(torch.nothing(x))",
           "for i in torch.nothing(x):\n        y = i",
           "for i in range(torch.nothing(x)):\n        y = i",
           "while bool(torch.nothing(x)):\n        n += 1",
           "if bool(torch.nothing(x)):\n        y = 1\n      else:\n        y = 2",
           "with torch.no_grad():\n        y = torch.nothing(x)",
           "for i in range(3):\n        y = torch.nothing(x)",
       }) {
    const auto run = [&](int n) {
      return result_of(concat("    x = torch.ones([2])\n    if n == 1:\n      ", statement, "\n    return str(n)\n",
                              "  def other(self, x: Tensor) -> Tensor:\n    return x\n"),
                       concat("self, n: int=", n, ") -> str"));
    };
    EXPECT_EQ(run(0), "0") << statement;
    EXPECT_THAT(run(1), ::testing::HasSubstr("aten::nothing")) << statement;
  }
}

}  // namespace
}  // namespace tensord::jit::frontend_values_test
