// Each rule of the verifier by a graph that breaks it and no other.
#include "core/jit/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/jit/ir/text.h"

namespace tensord::jit {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& lines, const std::string& returned) {
  const auto graph =
      parse_graph("graph(%x : Tensor, %n : int, %c : bool):\n" + lines + "  return (" + returned + ")\n");
  try {
    verify(*graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string loop(const std::string& head, const std::string& inputs, const std::string& outputs) {
  return "  %y : Tensor = prim::Loop(" + head + ")\n    block0(" + inputs + "):\n      -> (" + outputs + ")\n";
}

std::string branch(const std::string& condition, const std::string& inputs, const std::string& outputs) {
  return "  %y : Tensor = prim::If(" + condition + ")\n    block0(" + inputs + "):\n      -> (" + outputs +
         ")\n    block1():\n      -> (%x)\n";
}

TEST(Verify, TakesWhatIsRight) {
  EXPECT_EQ(error_of(loop("%n, %c, %x", "%i : int, %z : Tensor", "%c, %z"), "%y"), "no error");
  EXPECT_EQ(error_of(branch("%c", "", "%x"), "%y"), "no error");
}

TEST(Verify, LoopsAndBranches) {
  const auto expect = [](const std::string& lines, const char* problem) {
    EXPECT_THAT(error_of(lines, "%y"), HasSubstr(problem)) << lines;
  };
  expect(loop("%n, %c", "%i : int, %z : Tensor", "%c, %z"), "wrong number of inputs");
  expect(loop("%c, %c, %x", "%i : int, %z : Tensor", "%c, %z"), "the trip count is not an int");
  expect(loop("%n, %n, %x", "%i : int, %z : Tensor", "%c, %z"), "the condition is not a bool");
  expect(loop("%n, %c, %x", "%i : int", "%c, %x"), "the body has the wrong number of inputs");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", ""), "the body gives no bool to go on");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", "%i, %z"), "the body gives no bool to go on");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", "%c"), "a block gives back another number of values");
  expect(loop("%n, %c, %n", "%i : int, %z : Tensor", "%c, %z"), "a carried value does not fit the body's input");
  expect(loop("%n, %c, %x", "%i : int, %z : int", "%c, %x"), "a carried value does not fit the body's input");
  expect(branch("%n", "", "%x"), "the condition is not a bool");
  expect(branch("%c", "%i : int", "%x"), "a branch has inputs");
  expect(branch("%c", "", ""), "a block gives back another number of values");
  expect(branch("%c", "", "%n"), "output 0 is Tensor but a block gives int");
  expect("  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n", "wrong number of blocks");
}

TEST(Verify, NodesWithoutBlocks) {
  const auto expect = [](const std::string& line, const char* problem) {
    EXPECT_THAT(error_of("  " + line + "\n", "%x"), HasSubstr(problem)) << line;
  };
  expect("%y : Tensor, %z : Tensor = aten::relu(%x)", "the number of outputs is not the schema's");
  expect("%y : Tensor = prim::ListConstruct(%x)", "makes no list");
  expect("%y : List[Tensor], %z : Tensor = prim::ListConstruct(%x)", "makes no list");
  expect("%y : Tuple[Tensor, Tensor] = prim::TupleConstruct(%x)", "makes no tuple of its inputs");
  expect("%y : List[Tensor] = prim::TupleConstruct(%x)", "makes no tuple of its inputs");
  expect("%y : Dict[int, Tensor] = prim::DictConstruct(%n)", "keys and values do not pair");
  expect("%y : Tensor = prim::TupleIndex[index=0](%x, %x)", "wrong number of inputs");
  expect("%y : Tensor, %z : Tensor = prim::Uninitialized()", "wrong number of outputs");
  expect("%y : Tensor = prim::CallMethod[name=\"f\"]()", "a call has no callee");
}

}  // namespace
}  // namespace tensord::jit
