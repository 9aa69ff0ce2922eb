// Errors that every run would raise for the number of dimensions are raised at load, also if sizes depend on the
// request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "tests/onnx/message.h"

namespace tensord::jit::onnx_ranks_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kFloat = 1, kInt64 = 7, kBool = 9;

Message int_tensor(const std::string& name, const std::vector<int64_t>& values) {
  Message tensor = Message().number(1, values.size()).number(2, kInt64).bytes(8, name);
  for (const int64_t value : values) tensor.number(7, static_cast<uint64_t>(value));
  return tensor;
}

// With inputs from the request: floats in three dimensions, lists of two numbers, a number, a condition.
std::string error_of(const std::vector<Message>& nodes, int64_t version = 18) {
  Message whole;
  for (const Message& each : nodes) whole.message(1, each);
  whole.bytes(2, "g");
  for (const Message& each : {float_tensor("two", {2}, {1, 2}), int_tensor("axis_1", {1}), int_tensor("axis_5", {5}),
                              int_tensor("first", {0}), int_tensor("third", {2})}) {
    whole.message(5, each);
  }
  whole.message(5, Message().number(2, kInt64).bytes(8, "second").number(7, 1));  // without dimensions
  whole.message(11, value_info("x", {2, 3, 4})).message(11, value_info("list", {2}, kInt64));
  whole.message(11, value_info("number", {}, kInt64)).message(11, value_info("k", {1}, kInt64));
  whole.message(11, value_info("c", {}, kBool)).message(12, value_info("y", {}, kFloat));
  const fs::path file = fs::path(::testing::TempDir()) / concat("onnx_ranks.", getpid(), ".onnx");
  std::ofstream(file, std::ios::binary) << model(whole, version).str();
  std::string error = "none";
  try {
    Module::load(file.string())->method("forward");
  } catch (const Error& failure) {
    error = failure.what();
  }
  fs::remove(file);
  return error;
}

Message transpose(const std::string& of, const std::vector<uint64_t>& perm) {
  return node("Transpose", {of}, {"y"}, {ints_attribute("perm", perm)});
}
std::vector<uint64_t> perm_of(size_t rank) {
  std::vector<uint64_t> perm;
  for (size_t i = rank; i-- > 0;) perm.push_back(i);
  return perm;
}

// Nodes that compute "t", and its rank.
struct Row {
  std::vector<Message> nodes;
  size_t rank;
};

std::vector<Row> rows() {
  const auto int_of = [](const char* name, int64_t value) { return std::vector{int_attribute(name, value)}; };
  const Message nonzero = node("NonZero", {"x"}, {"n"});
  return {
      {{node("NonZero", {"x"}, {"t"})}, 2},
      {{nonzero, node("Abs", {"n"}, {"t"})}, 2},
      {{nonzero, node("Cast", {"n"}, {"t"}, int_of("to", 1))}, 2},
      {{nonzero, node("Gather", {"n", "list"}, {"t"}, int_of("axis", 1))}, 2},
      {{nonzero, node("Gather", {"n", "second"}, {"t"}, int_of("axis", 1))}, 1},
      {{nonzero, node("Gather", {"n", "number"}, {"t"})}, 1},
      {{nonzero, node("Gather", {"n", "n"}, {"t"})}, 3},
      {{nonzero, node("GatherElements", {"n", "n"}, {"t"})}, 2},
      {{nonzero, node("ArgMax", {"n"}, {"t"})}, 2},
      {{nonzero, node("ArgMax", {"n"}, {"t"}, int_of("keepdims", 0))}, 1},
      {{nonzero, node("Flatten", {"n"}, {"t"})}, 2},
      {{nonzero, node("Shape", {"n"}, {"t"})}, 1},
      {{nonzero, node("Transpose", {"n"}, {"t"})}, 2},
      {{nonzero, node("Concat", {"n", "n"}, {"t"}, int_of("axis", 0))}, 2},
      {{nonzero, node("Unsqueeze", {"n", "axis_1"}, {"t"})}, 3},
      {{nonzero, node("Squeeze", {"n", "k"}, {"t"})}, 1},
      {{nonzero, node("Squeeze", {"n", "axis_1"}, {"t"})}, 1},
      {{nonzero, node("Slice", {"n", "k", "k"}, {"t"})}, 2},
      {{nonzero, node("Tile", {"n", "list"}, {"t"})}, 2},
      {{nonzero, node("Add", {"n", "number"}, {"t"})}, 2},
      {{nonzero, node("Equal", {"n", "list"}, {"t"})}, 2},
      {{nonzero, node("ReduceSum", {"n", "k"}, {"t"}, int_of("keepdims", 0))}, 1},
      {{nonzero, node("ReduceSum", {"n", "k"}, {"t"})}, 2},
      {{node("Reshape", {"x", "list"}, {"t"})}, 2},
      {{node("Expand", {"x", "list"}, {"t"})}, 3},
      {{node("ConstantOfShape", {"list"}, {"t"})}, 2},
      {{node("Range", {"number", "number", "number"}, {"t"})}, 1},
      {{node("Compress", {"x", "c1"}, {"t"})}, 1},
      {{node("Unique", {"x"}, {"t"})}, 1},
      {{node("Unique", {"x"}, {"t"}, int_of("axis", 1))}, 3},
      {{node("Unique", {"x"}, {"u", "t"}, int_of("axis", 1))}, 1},
      {{node("OneHot", {"list", "number", "two"}, {"t"})}, 2},
      {{node("TopK", {"x", "k"}, {"t", "i"})}, 3},
      {{node("TopK", {"x", "k"}, {"v", "t"})}, 3},
      {{node("Trilu", {"x", "number"}, {"t"})}, 3},
      {{node("Unsqueeze", {"x", "list"}, {"t"})}, 5},
      {{node("Pad", {"x", "pads"}, {"t"})}, 3},
  };
}

TEST(OnnxRanks, BehindWhatDependsOnData) {
  // Additional inputs of some rows, also from the request: six pads and two conditions.
  const std::vector<Message> before{node("Concat", {"list", "list", "list"}, {"pads"}, {int_attribute("axis", 0)}),
                                    node("Cast", {"list"}, {"c1"}, {int_attribute("to", 9)})};
  for (const Row& row : rows()) {
    std::vector<Message> nodes = before;
    nodes.insert(nodes.end(), row.nodes.begin(), row.nodes.end());
    for (const size_t rank : {row.rank - 1, row.rank, row.rank + 1}) {
      if (rank == 0) continue;
      std::vector<Message> all = nodes;
      all.push_back(transpose("t", perm_of(rank)));
      const std::string error = error_of(all);
      SCOPED_TRACE(row.nodes.back().str());
      if (rank == row.rank) {
        EXPECT_EQ(error, "none");
      } else {
        EXPECT_THAT(error, HasSubstr("node 'the_Transpose' (Transpose): ")) << rank << " of " << row.rank;
      }
    }
  }
}

// Which dimensions have size 1 a request may say.
TEST(OnnxRanks, OfSqueezesWithoutAxes) {
  for (const size_t rank : {1, 2, 3}) {
    EXPECT_EQ(error_of({node("Slice", {"x", "k", "k"}, {"part"}), node("Squeeze", {"part"}, {"t"}),
                        transpose("t", perm_of(rank))}),
              "none");
    EXPECT_EQ(error_of({node("Squeeze", {"x"}, {"t"}), transpose("t", perm_of(rank))}) == "none", rank == 3);
  }
}

// A body with the states `v` and `w` and an output for each round, float32 but of no shape that the file says.
Message body(const std::vector<Message>& nodes, bool is_loop, const std::vector<int64_t>& item = {}) {
  Message message;
  for (const Message& each : nodes) message.message(1, each);
  message.bytes(2, "body");
  if (is_loop) {
    message.message(1, node("Identity", {"go"}, {"on"}));
    message.message(11, value_info("i", {}, kInt64)).message(11, value_info("go", {}, kBool));
    message.message(12, value_info("on", {}, kBool));
  }
  const auto without_shape = [](const std::string& name) {
    return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, kFloat)));
  };
  for (const char* name : {"v", "w"}) message.message(11, without_shape(name));
  for (const char* name : {"v2", "w2"}) message.message(12, without_shape(name));
  return message.message(12, item.empty() ? without_shape("item") : value_info("item", item));
}

// "t" is a result of a loop that goes as often as the request says, or twice.
TEST(OnnxRanks, OfLoops) {
  const Message twice = node("Constant", {}, {"twice"}, {int_attribute("value_int", 2)});
  const auto ranks_of = [&](const std::string& trips, const std::vector<Message>& nodes, size_t output,
                            const std::vector<int64_t>& item = {}) {
    std::vector<std::string> outputs{"a", "b", "all"};
    outputs[output] = "t";
    std::vector<size_t> taken;
    for (size_t rank = 1; rank <= 5; ++rank) {
      const std::string error =
          error_of({twice, node("Flatten", {"x"}, {"flat"}),
                    node("Loop", {trips, "", "x", "flat"}, outputs, {graph_attribute("body", body(nodes, true, item))}),
                    transpose("t", perm_of(rank))});
      if (error == "none") {
        taken.push_back(rank);
      } else {
        EXPECT_THAT(error, HasSubstr("node 'the_Transpose' (Transpose): "));
      }
    }
    return taken;
  };
  const std::vector<Message> steady{node("Abs", {"v"}, {"v2"}), node("Neg", {"w"}, {"w2"}),
                                    node("Relu", {"w2"}, {"item"})};
  const std::vector<Message> longer{node("Concat", {"v", "v"}, {"v2"}, {int_attribute("axis", 0)}),
                                    node("Neg", {"w"}, {"w2"}), node("Relu", {"w2"}, {"item"})};
  const std::vector<Message> deeper{node("Unsqueeze", {"v", "first"}, {"v2"}), node("Neg", {"w"}, {"w2"}),
                                    node("Relu", {"w2"}, {"item"})};
  const std::vector<Message> squeezed{node("Squeeze", {"v"}, {"v2"}), node("Neg", {"w"}, {"w2"}),
                                      node("Relu", {"w2"}, {"item"})};
  const std::vector<size_t> any{1, 2, 3, 4, 5};
  for (const char* trips : {"number", "twice"}) {
    SCOPED_TRACE(trips);
    EXPECT_EQ(ranks_of(trips, steady, 0), std::vector<size_t>{3});
    EXPECT_EQ(ranks_of(trips, steady, 1), std::vector<size_t>{2});
    // What is more with each round may have any number of dimensions, and so may what goes with it.
    EXPECT_EQ(ranks_of(trips, deeper, 0), any);
    EXPECT_EQ(ranks_of(trips, steady, 2, {-1, -1}), std::vector<size_t>{3});
  }
  // Without a round it is as long as the file says.
  EXPECT_EQ(ranks_of("number", steady, 2, {-1}), any);
  EXPECT_EQ(ranks_of("number", steady, 2), any);
  EXPECT_EQ(ranks_of("twice", steady, 2), std::vector<size_t>{3});
  // Other sizes in each round: of the first alone nothing follows for the second.
  EXPECT_EQ(ranks_of("number", longer, 0), std::vector<size_t>{3});
  EXPECT_EQ(ranks_of("twice", longer, 0), any);
  EXPECT_EQ(ranks_of("number", squeezed, 0), any);
}

TEST(OnnxRanks, OfScans) {
  const std::vector<Message> nodes{node("Add", {"v", "w"}, {"v2"}), node("Abs", {"w"}, {"item"})};
  const auto ranks_of = [&](const std::string& scanned, const std::string& state, size_t output, int64_t axis) {
    std::vector<std::string> outputs{"a", "all"};
    outputs[output] = "t";
    Message graph;
    for (const Message& each : nodes) graph.message(1, each);
    graph.bytes(2, "body").message(11, value_info("v", {-1})).message(11, value_info("w", {-1}));
    graph.message(12, value_info("v2", {-1})).message(12, value_info("item", {-1, -1}));
    std::vector<size_t> taken;
    for (size_t rank = 1; rank <= 5; ++rank) {
      const std::string error =
          error_of({node("NonZero", {"x"}, {"n"}), node("Cast", {"n"}, {"f"}, {int_attribute("to", 1)}),
                    node("Unsqueeze", {"f", "first"}, {"deep"}),
                    node("Constant", {}, {"zero"}, {Message().bytes(1, "value_float").number(20, 1)}),
                    node("Scan", {state, scanned}, outputs,
                         {int_attribute("num_scan_inputs", 1), graph_attribute("body", graph),
                          ints_attribute("scan_input_axes", {static_cast<uint64_t>(axis)})}),
                    transpose("t", perm_of(rank))});
      if (error == "none") {
        taken.push_back(rank);
      } else {
        EXPECT_THAT(error, HasSubstr("node 'the_Transpose' (Transpose): "));
      }
    }
    return taken;
  };
  // Rows of known sizes, and of sizes that the request makes.
  EXPECT_EQ(ranks_of("x", "x", 0, 0), std::vector<size_t>{3});
  EXPECT_EQ(ranks_of("x", "x", 1, 0), std::vector<size_t>{3});
  EXPECT_EQ(ranks_of("x", "x", 1, -3), std::vector<size_t>{3});
  EXPECT_EQ(ranks_of("deep", "deep", 0, 1), std::vector<size_t>{3});
  EXPECT_EQ(ranks_of("deep", "deep", 1, 1), std::vector<size_t>{3});
}

// Each by an axis beyond the two dimensions.
TEST(OnnxRanks, AxesBehindWhatDependsOnData) {
  const Message nonzero = node("NonZero", {"x"}, {"n"});
  const std::vector<Message> axis{int_attribute("axis", 2)};
  for (const Message& each : {node("Concat", {"n", "n"}, {"y"}, axis), node("Gather", {"n", "list"}, {"y"}, axis),
                              node("GatherElements", {"n", "n"}, {"y"}, axis),
                              node("Unsqueeze", {"n", "axis_5"}, {"y"}), node("Squeeze", {"n", "third"}, {"y"}),
                              node("Split", {"n"}, {"y", "z"}, {axis[0], int_attribute("num_outputs", 2)}),
                              node("ArgMax", {"n"}, {"y"}, axis), node("ReduceMax", {"n", "third"}, {"y"}),
                              node("CumSum", {"n", "third"}, {"y"}), node("TopK", {"n", "k"}, {"y", "z"}, axis),
                              node("Slice", {"n", "first", "axis_5", "third"}, {"y"})}) {
    EXPECT_THAT(error_of({nonzero, each}), HasSubstr("node 'the_")) << each.str();
  }
}

// Sizes that the file states, beside those that the data makes: x is [2, 3, 4], and p is [2, 4, 3].
TEST(OnnxRanks, SizesBesideWhatDependsOnData) {
  const Message p = node("Transpose", {"x"}, {"p"}, {ints_attribute("perm", {0, 2, 1})});
  const auto axis = [](uint64_t number) { return std::vector{int_attribute("axis", number)}; };
  const auto floats = [](const char* of) { return node("Cast", {of}, {"t"}, {int_attribute("to", 1)}); };
  const auto product = [](const char* a, const char* b) { return node("MatMul", {a, b}, {"y"}); };
  const auto check_product = [&](std::vector<Message> nodes, const Message& good, const Message& bad) {
    SCOPED_TRACE(nodes.front().str());
    nodes.insert(nodes.begin(), p);
    std::vector<Message> refused = nodes;
    nodes.push_back(good);
    refused.push_back(bad);
    EXPECT_EQ(error_of(nodes), "none");
    EXPECT_THAT(error_of(refused), HasSubstr("node 'the_MatMul' (MatMul): "));
  };
  // [3, n] and [n, 3].
  check_product({node("NonZero", {"x"}, {"n"}), floats("n")}, product("p", "t"), product("x", "t"));
  check_product({node("NonMaxSuppression", {"x", "p"}, {"n"}), floats("n")}, product("t", "x"), product("t", "p"));
  // [2, n, 4], [n, 3, 4] and [2, 3, n].
  check_product({node("Unique", {"x"}, {"t"}, axis(1))}, product("t", "p"), product("t", "x"));
  check_product({node("TopK", {"x", "k"}, {"t", "i"}, axis(0))}, product("t", "p"), product("t", "x"));
  check_product(
      {node("Cast", {"list"}, {"b"}, {int_attribute("to", kBool)}), node("Compress", {"x", "b"}, {"t"}, axis(2))},
      product("p", "t"), product("x", "t"));
}

Message branch(const std::vector<Message>& nodes) { return graph(nodes, {}, {"b"}); }
Message choice(const std::vector<Message>& first, const std::vector<Message>& second) {
  return node("If", {"c"}, {"t"},
              {graph_attribute("then_branch", branch(first)), graph_attribute("else_branch", branch(second))});
}

// The request selects the branch: what both branches refuse is refused, and what both determine is known.
TEST(OnnxRanks, BranchesThatTheRequestChooses) {
  const std::vector<Message> good{node("Abs", {"x"}, {"b"})},
      other{node("Concat", {"x", "x"}, {"b"}, {int_attribute("axis", 2)})};
  const std::vector<Message> bad{node("Softmax", {"x"}, {"b"}, {int_attribute("axis", 7)})};
  const std::vector<Message> flat{node("Flatten", {"x"}, {"b"})};
  const Message abs = node("Abs", {"t"}, {"y"});
  EXPECT_EQ(error_of({choice(good, other), abs}), "none");
  EXPECT_EQ(error_of({choice(good, bad), abs}), "none");
  EXPECT_THAT(error_of({choice(bad, bad), abs}), HasSubstr("node 'the_If' (If): "));
  for (const auto& [first, second] : {std::pair(good, good), {good, other}, {good, bad}, {bad, other}}) {
    EXPECT_EQ(error_of({choice(first, second), transpose("t", {2, 1, 0})}), "none");
    EXPECT_THAT(error_of({choice(first, second), transpose("t", {1, 0})}), HasSubstr("(Transpose): "));
  }
  // One has three dimensions, the other two.
  for (const auto& perm : {perm_of(3), perm_of(2)})
    EXPECT_EQ(error_of({choice(good, flat), transpose("t", perm)}), "none");
  // Sizes that only one branch has do not lead to an error.
  const Message weight = node("Add", {"t", "x"}, {"y"});
  EXPECT_EQ(error_of({choice(good, other), weight}), "none");
  EXPECT_THAT(error_of({choice(other, other), weight}), HasSubstr("(Add): "));
}

// If the file determines the condition, the branch is known.
TEST(OnnxRanks, BranchesThatTheFileChooses) {
  const std::vector<Message> good{node("Abs", {"x"}, {"b"})};
  const std::vector<Message> bad{node("Softmax", {"x"}, {"b"}, {int_attribute("axis", 7)})};
  const auto chosen = [&](const std::vector<Message>& condition, const std::vector<Message>& first,
                          const std::vector<Message>& second) {
    std::vector<Message> nodes = condition;
    nodes.push_back(
        node("If", {"chosen"}, {"t"},
             {graph_attribute("then_branch", branch(first)), graph_attribute("else_branch", branch(second))}));
    nodes.push_back(node("Abs", {"t"}, {"y"}));
    return error_of(nodes);
  };
  // By a number in the file, and by a declared shape.
  for (const std::vector<Message>& condition :
       {std::vector{node("Constant", {}, {"one"}, {int_attribute("value_int", 1)}),
                    node("Cast", {"one"}, {"chosen"}, {int_attribute("to", 9)})},
        {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "first"}, {"g"}),
         node("Greater", {"g", "axis_1"}, {"chosen"})}}) {
    EXPECT_THAT(chosen(condition, bad, good), HasSubstr("(Softmax): "));
    EXPECT_EQ(chosen(condition, good, bad), "none");
  }
}

}  // namespace
}  // namespace tensord::jit::onnx_ranks_test
