// Limits of passes: at the limit the pass acts, beyond it the graph is unchanged.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/pipeline.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit::pass_limits_test {
namespace {

std::string after(const std::string& pass, const std::string& text) {
  auto graph = parse_graph(text);
  verify(*graph);
  PassContext context;
  find_pass(pass).run(*graph, context);
  verify(*graph);
  return print_graph(*graph);
}

bool has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

// A loop of `turns` iterations whose body has `nodes` operators, not counting constants.
std::string loop_of(int turns, int nodes, const std::string& also = "") {
  std::string body, last = "%s";
  for (int i = 0; i < nodes; ++i) {
    const std::string next = "%u" + std::to_string(i);
    body += "      " + next + " : Tensor = aten::neg(" + last + ")\n";
    last = next;
  }
  return "graph(%x : Tensor, %n : int):\n  %turns : int = prim::Constant[value=" + std::to_string(turns) +
         "]()\n  %yes : bool = prim::Constant[value=True]()\n  %r : Tensor = prim::Loop(%turns, %yes, %x)\n"
         "    block0(%i : int, %s : Tensor):\n" +
         also + body + "      -> (%yes, " + last + ")\n  return (%r)\n";
}

TEST(PassLimits, LoopsThatAreUnrolled) {
  const struct {
    int turns, nodes;
    const char* also;
    bool is_unrolled;
  } rows[] = {
      {1024, 1, "", true},
      {1025, 1, "", false},
      {1024, 8, "", true},
      {1024, 9, "", false},
      {2, 4096, "", true},
      {2, 4097, "", false},
      // A constant does not count as work; nodes in a branch do.
      {1024, 8, "      %c : int = prim::Constant[value=7]()\n", true},
      {1024, 7, "      prim::If(%yes)\n        block0():\n          -> ()\n        block1():\n          -> ()\n", true},
      {1024, 7,
       "      prim::If(%yes)\n        block0():\n          %k : int = aten::neg.int(%n)\n          -> ()\n"
       "        block1():\n          -> ()\n",
       false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::to_string(row.turns) + " turns of " + std::to_string(row.nodes) + row.also);
    const std::string got = after("unroll", loop_of(row.turns, row.nodes, row.also));
    EXPECT_EQ(!has(got, "prim::Loop"), row.is_unrolled);
  }
}

std::string shape(const std::string& first, const std::string& second) {
  return "graph():\n  %sizes : List[int] = prim::Constant[value=[" + first + ", " + second +
         "]]()\n  %none : NoneType = prim::Constant[value=None]()\n"
         "  %r : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)\n  %n : int = aten::numel(%r)\n  return "
         "(%n)\n";
}

// Tensors of up to a megabyte become constants.
TEST(PassLimits, TensorsThatBecomeConstants) {
  EXPECT_FALSE(has(after("const_prop", shape("512", "512")), "aten::zeros"));
  EXPECT_TRUE(has(after("const_prop", shape("512", "513")), "aten::zeros"));
  EXPECT_TRUE(has(after("const_prop", shape("1048576", "1048576")), "aten::zeros"));
  // A product that overflows would look small.
  EXPECT_TRUE(has(after("const_prop", shape("4294967296", "4294967296")), "aten::zeros"));
}

std::string repeated(const std::string& count) {
  return "graph():\n  %a : str = prim::Constant[value=\"ab\"]()\n  %n : int = prim::Constant[value=" + count +
         "]()\n  %r : str = aten::mul.str_int(%a, %n)\n  return (%r)\n";
}
TEST(PassLimits, TextsThatBecomeConstants) {
  EXPECT_FALSE(has(after("const_prop", repeated("524288")), "aten::mul"));
  EXPECT_TRUE(has(after("const_prop", repeated("524289")), "aten::mul"));
  EXPECT_TRUE(has(after("const_prop", repeated("1048577")), "aten::mul"));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Equal lists of numbers are merged up to 64 items.
TEST(PassLimits, ListsThatAreMerged) {
  for (const int items : {64, 65}) {
    std::string list = "[0";
    for (int i = 1; i < items; ++i) list += ", " + std::to_string(i);
    const std::string constant = " : List[int] = prim::Constant[value=" + list + "]]()\n";
    const std::string got = after("cse", "graph():\n  %a" + constant + "  %b" + constant +
                                             "  %m : int = aten::len.t(%a)\n  %n : int = aten::len.t(%b)\n"
                                             "  %r : int = aten::add.int(%m, %n)\n  return (%r)\n");
    EXPECT_EQ(count(got, "prim::Constant"), items == 64 ? 1u : 2u) << items;
  }
}

// Constants of up to 64 megabytes in total, and the one that exceeds it.
TEST(PassLimits, ConstantsTogether) {
  std::string text =
      "graph():\n  %sizes : List[int] = prim::Constant[value=[1024, 256]]()\n"
      "  %none : NoneType = prim::Constant[value=None]()\n";
  std::string results;
  for (int i = 0; i < 66; ++i) {
    const std::string name = "%r" + std::to_string(i);
    text += "  " + name + " : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)\n";
    results += (i > 0 ? ", " : "") + name;
  }
  text += "  %all : List[Tensor] = prim::ListConstruct(" + results + ")\n  %y : Tensor = aten::cat(%all, %zero)\n";
  text.insert(text.find("  %none"), "  %zero : int = prim::Constant[value=0]()\n");
  const std::string got = after("const_prop", text + "  %n : int = aten::numel(%y)\n  return (%n)\n");
  size_t left = 0;
  for (size_t at = got.find("aten::zeros("); at != std::string::npos; at = got.find("aten::zeros(", at + 1)) ++left;
  EXPECT_EQ(left, 1U);
}

// An operator whose result size is unknown runs under a memory limit; the result is not first created and then found
// too large.
TEST(PassLimits, MemoryWhileConstantsAreMade) {
  const auto products = [](int sizes) {
    return concat("graph():\n  %n : int = prim::Constant[value=", sizes,
                  "]()\n  %none : NoneType = prim::Constant[value=None]()\n"
                  "  %a : Tensor = aten::arange(%n, %none, %none, %none, %none)\n"
                  "  %l : List[Tensor] = prim::ListConstruct(%a, %a, %a)\n  %p : Tensor = aten::cartesian_prod(%l)\n"
                  "  %k : int = aten::numel(%p)\n  return (%k)\n");
  };
  EXPECT_FALSE(has(after("const_prop", products(30)), "aten::cartesian_prod"));
  const uint64_t refused = cpu_allocator().stats().out_of_memory;
  EXPECT_TRUE(has(after("const_prop", products(300)), "aten::cartesian_prod"));  // 648 MB
  EXPECT_GT(cpu_allocator().stats().out_of_memory, refused);
  EXPECT_EQ(owner_limit(memory_owner("constant folding")), 0u);
}

// Numbers that may be sizes of an operator's result.
TEST(PassLimits, NumbersThatMayBeSizes) {
  const auto is_folded = [](const std::string& constants, const std::string& call, const std::string& type) {
    // A returned list may be written to.
    const char* const length = type == "str" ? "aten::len.str" : "aten::len.t";
    return !has(after("const_prop", concat("graph():\n", constants, "  %y : ", type, " = ", call,
                                           "\n  %z : int = ", length, "(%y)\n  return (%z)\n")),
                call.substr(0, call.find('(')).c_str());
  };
  const auto text_to = [&](const char* end) {
    return is_folded(concat("  %s : str = prim::Constant[value=\"abcd\"]()\n  %a : int = prim::Constant[value=0]()\n"
                            "  %b : int = prim::Constant[value=",
                            end, "]()\n  %c : int = prim::Constant[value=1]()\n"),
                     "aten::slice.str(%s, %a, %b, %c)", "str");
  };
  EXPECT_TRUE(text_to("1048576"));
  EXPECT_FALSE(text_to("1048577"));
  EXPECT_TRUE(text_to("9223372036854775807"));
  const auto list_of = [&](const char* items) {
    return is_folded(concat("  %l : List[int] = prim::Constant[value=[", items,
                            "]]()\n  %a : int = prim::Constant[value=0]()\n  %b : int = prim::Constant[value=1]()\n"),
                     "aten::slice.t(%l, %a, %b, %b)", "List[int]");
  };
  EXPECT_TRUE(list_of("4096, 4096"));
  EXPECT_FALSE(list_of("4096, 4097"));
  EXPECT_TRUE(list_of("0, 16777216"));
  EXPECT_FALSE(list_of("0, 16777217"));
  // Strings in a list count, up to 4096 of them.
  const auto texts = [&](int count) {
    return is_folded(
        concat("  %s : str = prim::Constant[value=\"", std::string(300, 'a'),
               "\"]()\n  %l : List[str] = prim::ListConstruct(%s)\n  %n : int = prim::Constant[value=", count, "]()\n"),
        "aten::mul.left_t(%l, %n)", "List[str]");
  };
  EXPECT_TRUE(texts(100));
  EXPECT_FALSE(texts(4096));
}

}  // namespace
}  // namespace tensord::jit::pass_limits_test
