// What scripts may not say: each by the shortest function that says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/jit/frontend_fixture.h"

namespace tensord::jit {
namespace {

using ::testing::HasSubstr;

// A function of a tensor, a number, a flag, a list and a pair, whose body is given line by line.
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
  };
  for (const auto& [body, message] : wrong) EXPECT_THAT(error_of(with(body)), HasSubstr(message)) << body;
  for (const char* bounds : {"n", "n, n", "n, n, n"}) {
    EXPECT_EQ(error_of(with(concat("  for i in range(", bounds, "):\n    pass\n"))), "") << bounds;
  }
  EXPECT_THAT(error_of("def f(x: Tensor, c: bool):\n  if c:\n    return x\n  else:\n    return 1\n"),
              HasSubstr("the branches return different types: Tensor and int"));
}

TEST(FrontendErrors, WhatIsNotSupportedSaysSo) {
  const std::pair<const char*, const char*> missing[] = {
      {"  for i in range(n):\n    break\n", "break and continue are not supported"},
      {"  for i in range(n):\n    continue\n", "break and continue are not supported"},
      {"  x[0] = x\n", "assignment to a tensor's elements by subscript is not supported"},
      {"  y = [i for i in l]\n", "list comprehensions are not supported"},
      {"  y = b\"a\"\n", "bytes are not supported"},
      {"  y = f\"a\"\n", "f-strings are not supported"},
      {"  if c:\n    if n > 1:\n      return x\n  else:\n    pass\n", "a return inside of nested branches"},
  };
  for (const auto& [body, message] : missing) {
    ErrorCode code{};
    EXPECT_THAT(error_of(with(body), &code), HasSubstr(message)) << body;
    EXPECT_EQ(code, ErrorCode::kUnimplemented) << body;
  }
}

}  // namespace
}  // namespace tensord::jit
