// Invalid models, by the part of the file: each error with the smallest model that causes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "tests/onnx/message.h"

namespace tensord::jit::onnx_errors_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnnxErrors : public ::testing::Test {
 protected:
  OnnxErrors() : file_(fs::path(::testing::TempDir()) / concat("onnx_errors.", getpid(), ".onnx")) {}
  ~OnnxErrors() override { fs::remove(file_); }

  std::shared_ptr<Module> load(const std::string& bytes) {
    std::ofstream(file_, std::ios::binary) << bytes;
    return Module::load(file_.string());
  }
  // "CODE message", or "none".
  std::string error_of(const std::string& bytes) {
    try {
      load(bytes)->method("forward");
    } catch (const Error& error) {
      return concat(to_string(error.code()), " ", error.what());
    }
    return "none";
  }
  std::string error_of(const Message& message) { return error_of(message.str()); }
  std::string nodes_error(const std::vector<Message>& nodes, const std::vector<std::string>& outputs = {"y"},
                          int64_t version = 17) {
    return error_of(model(graph(nodes, {"x"}, outputs), version));
  }
  std::string node_error(const Message& node, int64_t version = 17) {
    return error_of(model(graph({node}, {"x", "a", "b"}, {"y"}), version).message(8, opset(1, "com.microsoft")));
  }

  const fs::path file_;
};

const Message kAbs = node("Abs", {"x"}, {"y"});
Message abs_model() { return model(graph({kAbs}, {"x"}, {"y"})); }

Message floats_attribute(const std::string& name) {
  return Message().bytes(1, name).bytes(7, std::string(4, '\0')).number(20, 6);
}

TEST_F(OnnxErrors, Wire) {
  const std::string good = abs_model().str();
  ASSERT_EQ(error_of(good), "none");
  const auto with = [&](const std::string& tail) { return error_of(good + tail); };
  // The unknown field 99, of each wire type.
  EXPECT_EQ(with("\x98\x06\x01"), "none");
  EXPECT_EQ(with(std::string("\x99\x06") + std::string(8, 'x')), "none");
  EXPECT_EQ(with(std::string("\x9a\x06\x02") + "ab"), "none");
  EXPECT_EQ(with(std::string("\x9d\x06") + std::string(4, 'x')), "none");
  // The largest varint of ten bytes, and one with a bit more.
  EXPECT_EQ(with("\x98\x06" + std::string(9, '\xff') + "\x01"), "none");
  EXPECT_THAT(with("\x98\x06" + std::string(9, '\xff') + "\x02"), HasSubstr("ModelProto: a number is damaged"));
  EXPECT_THAT(with("\x98\x06" + std::string(10, '\xff') + "\x01"), HasSubstr("ModelProto: a number is damaged"));
  EXPECT_THAT(with("\x98\x06\xff"), HasSubstr("ModelProto: a number is damaged"));
  EXPECT_THAT(with(std::string("\x99\x06") + std::string(7, 'x')), HasSubstr("a field ends after the message"));
  EXPECT_THAT(with(std::string("\x9d\x06") + std::string(3, 'x')), HasSubstr("a field ends after the message"));
  EXPECT_THAT(with(std::string("\x9a\x06\x03") + "ab"), HasSubstr("a field ends after the message"));
  // Field 0, the largest field number, one more, and a group.
  EXPECT_THAT(with(std::string("\x00\x01", 2)), HasSubstr("ModelProto: a field has no number"));
  EXPECT_EQ(with("\xf8\xff\xff\xff\x0f\x01"), "none");
  EXPECT_THAT(with("\x80\x80\x80\x80\x10\x01"), HasSubstr("ModelProto: a field has no number"));
  EXPECT_THAT(with("\x9b\x06"), HasSubstr("DATA_LOSS"));
  EXPECT_THAT(with("\x9b\x06"), HasSubstr("ModelProto: field 99 has an unknown wire type"));
  // producer_name as a number, and with invalid UTF-8.
  EXPECT_THAT(with("\x10\x01"), HasSubstr("ModelProto: field 2 has another type than it should"));
  EXPECT_THAT(with("\x12\x01\xff"), HasSubstr("ModelProto: field 2 is not UTF-8"));
  // An attribute's type is a number from 0 to 2^31 - 1; its floats are complete.
  const auto attribute = [&](const Message& tail) {
    return nodes_error({node("Abs", {"x"}, {"y"}, {Message().bytes(1, "a").message(21, Message()).bytes(5, "")})}) +
           error_of(model(graph({node("Abs", {"x"}, {"y"}, {tail})}, {"x"}, {"y"})));
  };
  EXPECT_THAT(attribute(Message().bytes(1, "a").number(20, uint64_t{1} << 31)),
              HasSubstr("AttributeProto: field 20 is 2147483648"));
  EXPECT_THAT(attribute(Message().bytes(1, "a").number(20, ~uint64_t{0})), HasSubstr("field 20 is -1"));
  EXPECT_THAT(attribute(Message().bytes(1, "a").number(20, (uint64_t{1} << 31) - 1)),
              HasSubstr("attribute 'a' is not known"));
  EXPECT_THAT(attribute(Message().bytes(1, "a").bytes(7, "12345")), HasSubstr("AttributeProto: field 7 is cut off"));
}

TEST_F(OnnxErrors, Models) {
  EXPECT_THAT(error_of(Message().number(1, 8).message(8, opset(17))), HasSubstr("ModelProto: there is no graph"));
  EXPECT_THAT(error_of(abs_model().message(7, graph({kAbs}, {"x"}, {"y"}))),
              HasSubstr("ModelProto: graph appears twice"));
  EXPECT_THAT(error_of(abs_model().message(8, opset(16))), HasSubstr("opset_import: domain '' has two versions"));
  EXPECT_EQ(error_of(abs_model().message(8, opset(17))), "none");
  EXPECT_EQ(error_of(abs_model().message(8, opset(17, "ai.onnx"))), "none");
  EXPECT_THAT(error_of(Message().number(1, 8).message(7, graph({kAbs}, {"x"}, {"y"}))),
              HasSubstr("opset_import has no version of domain ''"));
  // An old version of the format is accepted, a future one is not.
  const auto version = [&](uint64_t number) {
    return error_of(Message().number(1, number).message(7, graph({kAbs}, {"x"}, {"y"})).message(8, opset(17)));
  };
  EXPECT_EQ(version(3), "none");
  EXPECT_THAT(version(1000), HasSubstr("UNIMPLEMENTED"));
  EXPECT_THAT(version(1000), HasSubstr("IR version 1000 is newer than"));
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {}))), HasSubstr("the graph has no outputs"));
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {"y", "y"}))), HasSubstr("two outputs have the same name"));
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x", ""}, {"y"}))), HasSubstr("an input has no name"));
}

TEST_F(OnnxErrors, TypesOfInputs) {
  const auto with = [&](const Message& type) {
    Message inner = graph({kAbs}, {"x"}, {"y"});
    return error_of(model(inner.message(11, Message().bytes(1, "t").message(2, type))));
  };
  const Message tensor = Message().message(1, Message().number(1, 1));
  EXPECT_EQ(with(tensor), "none");
  EXPECT_EQ(with(Message().message(4, Message().message(1, tensor))), "none");
  EXPECT_THAT(with(Message()), HasSubstr("input 't': has no type"));
  EXPECT_THAT(with(Message().message(4, Message())), HasSubstr("input 't': its type has no element type"));
  EXPECT_THAT(with(Message().message(9, Message())), HasSubstr("input 't': its type has no element type"));
  EXPECT_THAT(with(Message().message(5, Message())), HasSubstr("input 't': maps are not supported"));
  EXPECT_THAT(with(Message().message(8, Message())), HasSubstr("input 't': sparse tensors are not supported"));
  // Forty deep including its graph, and one more.
  const auto deep = [&](int depth) {
    Message type = tensor;
    for (int i = 1; i < depth; ++i) type = Message().message(4, Message().message(1, type));
    return with(type);
  };
  EXPECT_EQ(deep(39), "none");
  EXPECT_THAT(deep(40), HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(deep(40), HasSubstr("graphs or types are nested more than 40 deep"));
}

// Numbers in typed fields instead of raw_data.
TEST_F(OnnxErrors, NumbersOfTensors) {
  const auto values = [&](uint64_t type, const std::vector<uint64_t>& numbers, uint64_t size) {
    Message tensor = Message().number(1, size).number(2, type);
    for (const uint64_t number : numbers) tensor.number(type == 7 ? 7 : 5, number);
    return error_of(model(graph({kAbs}, {"x"}, {"y", "w"}, {tensor.bytes(8, "w")})));
  };
  struct Range {
    uint64_t type;
    int64_t low, high;
  };
  for (const auto& [type, low, high] : {Range{6, INT32_MIN, INT32_MAX},
                                        {5, -32768, 32767},
                                        {3, -128, 127},
                                        {2, 0, 255},
                                        {9, 0, 1},
                                        {10, 0, 65535},
                                        {16, 0, 65535}}) {
    const auto number = [&](int64_t value) { return values(type, {static_cast<uint64_t>(value)}, 1); };
    EXPECT_EQ(number(low), "none") << type;
    EXPECT_EQ(number(high), "none") << type;
    EXPECT_THAT(number(low - 1), HasSubstr(concat("tensor 'w': ", low - 1, " is out of its type's range"))) << type;
    EXPECT_THAT(number(high + 1), HasSubstr(concat("tensor 'w': ", high + 1, " is out of its type's range"))) << type;
  }
  EXPECT_EQ(values(7, {~uint64_t{0}}, 1), "none");
  EXPECT_THAT(values(7, {1, 2, 3}, 2), HasSubstr("tensor 'w': has 3 elements, but its sizes make 2"));
  EXPECT_THAT(values(6, {1, 2, 3}, 2), HasSubstr("tensor 'w': has 3 elements, but its sizes make 2"));
  EXPECT_THAT(values(7, {1, 2}, 3), HasSubstr("tensor 'w': has fewer elements than its sizes make"));
  const auto segments = Message().number(1, 1).number(2, 1).message(3, Message()).bytes(8, "w");
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {"y"}, {segments}))), HasSubstr("segments are not supported"));
  const auto external = Message().number(1, 1).number(2, 1).bytes(8, "w").number(14, 1);
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {"y"}, {external}))),
              HasSubstr("tensor 'w': external data has no location"));
  const auto bools = Message().number(1, 2).number(2, 9).bytes(8, "w").bytes(9, std::string("\1\2"));
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {"y"}, {bools}))), HasSubstr("tensor 'w'"));
}

// Linear indices and indices for each dimension.
TEST_F(OnnxErrors, SparseTensors) {
  struct Parts {
    std::vector<int64_t> values_size = {2}, indices_size = {2};
    std::vector<uint64_t> indices = {0, 3}, dims = {2, 2};
    uint64_t indices_type = 7;
  };
  const auto made = [](const Parts& parts) {
    Message indices;
    for (const int64_t size : parts.indices_size) indices.number(1, static_cast<uint64_t>(size));
    indices.number(2, parts.indices_type);
    for (const uint64_t index : parts.indices) indices.number(parts.indices_type == 7 ? 7 : 5, index);
    int64_t count = 1;
    for (const int64_t size : parts.values_size) count *= size;
    Message sparse =
        Message()
            .message(1, float_tensor("s", parts.values_size, std::vector<float>(static_cast<size_t>(count), 5)))
            .message(2, indices);
    for (const uint64_t dim : parts.dims) sparse.number(3, dim);
    return model(graph({node("Add", {"x", "s"}, {"y"})}, {"x"}, {"y"}).message(15, sparse));
  };
  const auto values_of = [&](const Parts& parts) {
    const auto module = load(made(parts).str());
    const auto frame = make_frame();
    const Tensor zero = Tensor::empty(Dims{1}, DType::kFloat32);
    *zero.data<float>() = 0;
    const std::vector<Value> arguments{zero};
    const Tensor result = module->method("forward").run(*frame, arguments).to_tensor().contiguous();
    return std::vector<float>(result.data<float>(), result.data<float>() + result.numel());
  };
  EXPECT_THAT(values_of({}), ElementsAre(5, 0, 0, 5));
  EXPECT_THAT(values_of({.indices_size = {2, 2}, .indices = {0, 1, 1, 0}}), ElementsAre(0, 5, 5, 0));
  const auto refused = [&](const Parts& parts, const std::string& why) {
    EXPECT_THAT(error_of(made(parts)), HasSubstr("DATA_LOSS")) << why;
    EXPECT_THAT(error_of(made(parts)), HasSubstr("tensor 's': " + why));
  };
  refused({.indices = {0, 4}}, "an index is out of range");
  refused({.indices = {~uint64_t{0}, 3}}, "an index is out of range");
  refused({.indices_size = {2, 2}, .indices = {0, 2, 1, 0}}, "an index is out of range");
  refused({.indices_size = {2, 2}, .indices = {2, 0, 1, 0}}, "an index is out of range");
  refused({.values_size = {2, 1}}, "indices do not fit the values");
  refused({.indices_type = 6}, "indices do not fit the values");
  refused({.indices_size = {1, 2, 1}}, "indices do not fit the values");
  refused({.indices_size = {3}, .indices = {0, 1, 2}}, "indices do not fit the values");
  refused({.indices_size = {2, 1}}, "indices do not fit the values");
  EXPECT_THAT(error_of(made({.dims = {1 << 25, 1 << 25}})), HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(error_of(made({.dims = {1ull << 62, 1 << 25}})), HasSubstr("bytes of memory, more than the"));
}

TEST_F(OnnxErrors, Calls) {
  EXPECT_THAT(nodes_error({node("Concat", {"x", "", "x"}, {"y"}, {int_attribute("axis", 0)})}),
              HasSubstr("input 1 is left out, but must be given"));
  EXPECT_THAT(nodes_error({node("Concat", {"x", "x"}, {"y"})}), HasSubstr("attribute 'axis' is missing"));
  EXPECT_THAT(nodes_error({node("Concat", {"x"}, {"y"}, {floats_attribute("axis")})}),
              HasSubstr("attribute 'axis' has type 6 and should be int"));
  EXPECT_THAT(nodes_error({node("Concat", {"x"}, {"y"}, {int_attribute("axis", 0), int_attribute("axis", 0)})}),
              HasSubstr("attribute 'axis' appears twice"));
  EXPECT_THAT(nodes_error({node("Abs", {"x"}, {"y", "z"})}), HasSubstr("has 2 outputs, but gives 1"));
  EXPECT_EQ(nodes_error({node("Abs", {"x"}, {"y", ""})}), "none");
  EXPECT_THAT(nodes_error({node("SequenceConstruct", {"x"}, {"s"}), node("Abs", {"s"}, {"y"})}),
              HasSubstr("is List[Tensor] and should be Tensor"));
  const Message of_function = Message().bytes(1, "axis").bytes(21, "along").number(20, 2);
  EXPECT_THAT(nodes_error({node("Concat", {"x"}, {"y"}, {of_function})}),
              HasSubstr("attribute 'axis' is of a function"));
  const Message function =
      Message().bytes(1, "f").bytes(4, "a").bytes(5, "b").message(7, node("Abs", {"a"}, {"b"})).message(9, opset(17));
  const auto calls = [&](const std::vector<std::string>& inputs) {
    Message message =
        model(graph({node("f", inputs, {"y"}, {}, "mine")}, {"x"}, {"y"}), 17, {Message(function).bytes(10, "mine")});
    return error_of(message.message(8, opset(1, "mine")));
  };
  EXPECT_EQ(calls({"x"}), "none");
  EXPECT_THAT(calls({"x", "x"}), HasSubstr("has 2 inputs, but the function takes 1"));
}

// What the file determines is checked at load: every value of an attribute, and what follows from it.
TEST_F(OnnxErrors, ValuesOfAttributes) {
  EXPECT_THAT(node_error(node("Pad", {"x", "a"}, {"y"}, {text_attribute("mode", "mirror")})),
              HasSubstr("node 'the_Pad' (Pad): attribute 'mode' is mirror; values that are taken: constant, reflect, "
                        "edge, wrap"));
  EXPECT_THAT(node_error(node("Resize", {"x", "", "a"}, {"y"}, {text_attribute("mode", "area")})),
              HasSubstr("attribute 'mode' is area; values that are taken: nearest, linear, cubic"));
  EXPECT_THAT(node_error(node("Conv", {"x", "a"}, {"y"}, {text_attribute("auto_pad", "SAME")})),
              HasSubstr("attribute 'auto_pad' is SAME; values"));
  EXPECT_THAT(node_error(node("LSTM", {"x", "a", "b"}, {"y"}, {text_attribute("direction", "backward")})),
              HasSubstr("attribute 'direction' is backward; values"));
  EXPECT_THAT(node_error(node("GridSample", {"x", "a"}, {"y"}, {text_attribute("padding_mode", "wrap")})),
              HasSubstr("attribute 'padding_mode' is wrap; values"));
  EXPECT_THAT(node_error(node("ReduceMean", {"x"}, {"y"}, {int_attribute("keepdims", 2)})),
              HasSubstr("attribute 'keepdims' is 2; values that are taken: 0, 1"));
  const Message names = Message().bytes(1, "activations").bytes(9, "Tanh").bytes(9, "Gelu").number(20, 8);
  EXPECT_THAT(node_error(node("RNN", {"x", "a", "b"}, {"y"}, {names})),
              HasSubstr("attribute 'activations' is Gelu; values"));
  EXPECT_THAT(node_error(node("Abs", {"x"}, {"y"}, {text_attribute("mode", "a")})),
              HasSubstr("attribute 'mode' is not known"));
  EXPECT_THAT(node_error(node("Identity", {"x"}, {"y"}, {text_attribute("mode", "a")})),
              HasSubstr("attribute 'mode' is not known"));
}

TEST_F(OnnxErrors, WhatEveryRunWouldSayIsSaidAtLoad) {
  EXPECT_THAT(node_error(node("Dropout", {"x"}, {"y"}), 6),
              HasSubstr("node 'the_Dropout' (Dropout): Dropout: before opset 7"));
  EXPECT_THAT(node_error(node("Resize", {"x"}, {"y"})), HasSubstr("neither scales nor sizes are given"));
  const Message two = Message().bytes(1, "activations").bytes(9, "Tanh").bytes(9, "Tanh").number(20, 8);
  for (const char* op : {"RNN", "LSTM"}) {
    EXPECT_THAT(node_error(node(op, {"x", "a", "b"}, {"y"}, {two})), HasSubstr("activations but got 2")) << op;
  }
  EXPECT_THAT(node_error(node("GRU", {"x", "a", "b"}, {"y"}, {two})), HasSubstr("X has 1 dimensions and R 1, not 3"));
  const auto conv = node("Conv", {"x", "w"}, {"y"}, {ints_attribute("kernel_shape", {3})});
  const std::vector<Message> weight{float_tensor("w", {1, 1, 2}, {1, 2})};
  EXPECT_THAT(error_of(model(graph({conv}, {"x"}, {"y"}, weight))), HasSubstr("kernel_shape is [3], but W has shape"));
  const auto attention = [&](const std::vector<std::string>& inputs) {
    return node_error(
        node("GroupQueryAttention", inputs, {"y"},
             {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 2), int_attribute("do_rotary", 1)},
             "com.microsoft"));
  };
  EXPECT_THAT(attention({"x", "a", "b", "", "", "x", "a"}), HasSubstr("do_rotary wants cos_cache and sin_cache"));
  EXPECT_THAT(attention({"x", "a", "b", "", "", "x", "a", "x", "x"}), HasSubstr("Dimension out of range"));
}

// 4-bit elements are only for operators that accept them.
TEST_F(OnnxErrors, ElementsOfFourBits) {
  const auto tensor = [](const std::string& bytes) {
    return Message().number(1, 3).number(2, 22).bytes(8, "w").bytes(9, bytes);
  };
  const std::string bytes("\x21\x03");
  const auto error = [&](const std::vector<Message>& nodes, const std::string& data) {
    return error_of(model(graph(nodes, {"x"}, {"y"}, {tensor(data)}), 21));
  };
  const auto real = node("DequantizeLinear", {"w", "x"}, {"y"});
  EXPECT_EQ(error({real}, bytes), "none");
  EXPECT_THAT(error({real}, "\x21"), HasSubstr("tensor 'w': has 1 bytes, but the tensor takes 2"));
  EXPECT_THAT(error({node("Abs", {"w"}, {"y"})}, bytes),
              HasSubstr("node 'the_Abs' (Abs): element type INT4 is not supported here"));
  EXPECT_THAT(error({node("Identity", {"w"}, {"y"})}, bytes), HasSubstr("element type INT4 is not supported here"));
}

// A graph with an input x of these sizes, and "y".
Message sized_model(const std::vector<Message>& nodes, const std::vector<int64_t>& sizes,
                    const std::vector<Message>& weights = {}) {
  Message whole;
  for (const Message& each : nodes) whole.message(1, each);
  for (const Message& each : weights) whole.message(5, each);
  whole.message(11, value_info("x", sizes)).message(12, value_info("y", {}));
  return model(whole.bytes(2, "g"), 13).message(8, opset(1, "com.microsoft"));
}

TEST_F(OnnxErrors, WhatEveryRunOfTheDeclaredShapesWouldSayIsSaidAtLoad) {
  const auto split = node("Split", {"t"}, {"y", "z"});
  const auto relu = node("Relu", {"x"}, {"t"});
  EXPECT_THAT(error_of(sized_model({relu, split}, {5, 2})),
              HasSubstr("node 'the_Split' (Split): Split: 5 cannot be split into 2 equal parts"));
  EXPECT_EQ(error_of(sized_model({relu, split}, {6, 2})), "none");
  EXPECT_EQ(error_of(sized_model({relu, split}, {-1, 2})), "none");
  const auto attention = node("MultiHeadAttention", {"t"}, {"y"}, {int_attribute("num_heads", 2)}, "com.microsoft");
  EXPECT_THAT(error_of(sized_model({relu, attention}, {1, 3, 8})), HasSubstr("there is no key"));
  EXPECT_EQ(error_of(sized_model({relu, attention}, {1, 3, 2, 3, 4})), "none");
  const auto mod = node("Mod", {"x", "x"}, {"y"});
  EXPECT_THAT(error_of(sized_model({mod}, {3})), HasSubstr("floating types want fmod=1"));
  const auto weight = float_tensor("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto product = node("MatMul", {"x", "w"}, {"t"});
  EXPECT_THAT(error_of(sized_model({product, split}, {7, 3}, {weight})), HasSubstr("7 cannot be split into 2"));
  const auto other = node("MatMul", {"t", "w"}, {"y"});
  EXPECT_THAT(error_of(sized_model({relu, other}, {7, 2}, {weight})),
              HasSubstr("node 'the_MatMul' (MatMul): rows of the second factor: 3 and not 2"));
  EXPECT_THAT(error_of(sized_model({relu, node("Add", {"t", "w"}, {"y"})}, {7, 2}, {weight})),
              HasSubstr("node 'the_Add' (Add): for the shapes that the file declares: "));
  EXPECT_EQ(error_of(sized_model({relu, other}, {7, -1}, {weight})), "none");
  // In a branch of the model itself the check is left to the run.
  const auto branch = [](const std::vector<Message>& nodes) { return graph(nodes, {}, {"y"}); };
  const auto choice = node("If", {"c"}, {"y"},
                           {graph_attribute("then_branch", branch({relu, split})),
                            graph_attribute("else_branch", branch({node("Neg", {"x"}, {"y"})}))});
  Message whole = Message().message(1, choice).bytes(2, "g").message(11, value_info("x", {5, 2}));
  whole.message(11, value_info("c", {}, 9)).message(12, value_info("y", {}));
  EXPECT_EQ(error_of(model(whole, 13)), "none");
}

// A branch of the model itself may check first, so this is left to the run.
TEST_F(OnnxErrors, ShapesInBranchesAreLeftToTheRun) {
  const auto squeeze = [](const std::string& axis) { return node("Squeeze", {"w", axis}, {"s"}); };
  const Message axis = Message().number(1, 1).number(2, 7).bytes(8, "axis").number(7, 0);
  const std::vector<Message> weights{float_tensor("w", {2}, {1, 2}), axis};
  EXPECT_THAT(error_of(model(graph({squeeze("axis")}, {"x"}, {"s"}, weights))),
              HasSubstr("Squeeze: dimension 0 has size 2"));
  const auto branch = [&](const Message& node_of) { return graph({node_of}, {}, {"s"}); };
  const Message choice = node("If", {"c"}, {"y"},
                              {graph_attribute("then_branch", branch(squeeze("axis"))),
                               graph_attribute("else_branch", branch(node("Neg", {"w"}, {"s"})))});
  Message whole = graph({choice}, {"x"}, {"y"}, weights);
  EXPECT_EQ(error_of(model(whole.message(11, value_info("c", {}, 9)))), "none");
}

TEST_F(OnnxErrors, Constants) {
  const auto with = [&](const std::vector<Message>& attributes) {
    return nodes_error({node("Constant", {}, {"y"}, attributes)});
  };
  EXPECT_EQ(with({int_attribute("value_int", 1)}), "none");
  EXPECT_EQ(with({ints_attribute("value_ints", {1, 2})}), "none");
  EXPECT_THAT(with({}), HasSubstr("must have one attribute"));
  EXPECT_THAT(with({int_attribute("value_int", 1), ints_attribute("value_ints", {1})}),
              HasSubstr("must have one attribute"));
  EXPECT_THAT(with({int_attribute("value", 1)}), HasSubstr("attribute 'value' is not supported"));
  EXPECT_THAT(with({int_attribute("sparse_value", 1)}), HasSubstr("attribute 'sparse_value' is not supported"));
  EXPECT_THAT(with({Message().bytes(1, "value_string").bytes(4, "a").number(20, 3)}),
              HasSubstr("attribute 'value_string' is not supported"));
}

TEST_F(OnnxErrors, Optionals) {
  EXPECT_THAT(nodes_error({node("Optional", {}, {"y"})}), HasSubstr("has neither an input nor a type"));
  EXPECT_EQ(nodes_error({node("Optional", {"x"}, {"o"}), node("OptionalGetElement", {"o"}, {"y"})}), "none");
  EXPECT_EQ(nodes_error({node("OptionalHasElement", {""}, {"y"})}, {"y"}, 18), "none");
  EXPECT_THAT(nodes_error({node("OptionalGetElement", {""}, {"y"})}, {"y"}, 18), HasSubstr("has no input"));
}

TEST_F(OnnxErrors, Branches) {
  const Message condition = node("Constant", {}, {"c"}, {int_attribute("value_int", 1)});
  const auto branch = [](const std::vector<std::string>& outputs) {
    return graph({node("Abs", {"x"}, {"a"}), node("SequenceConstruct", {"x"}, {"s"})}, {}, outputs);
  };
  const auto with = [&](const Message& first, const Message& second, const std::vector<std::string>& inputs = {"c"}) {
    return nodes_error(
        {condition,
         node("If", inputs, {"y"}, {graph_attribute("then_branch", first), graph_attribute("else_branch", second)})});
  };
  EXPECT_EQ(with(branch({"a"}), branch({"a"})), "none");
  EXPECT_THAT(with(branch({"a"}), branch({"a"}), {""}), HasSubstr("has no condition"));
  EXPECT_THAT(with(branch({"a"}), branch({"a", "a"})), HasSubstr("the branches give different numbers of outputs"));
  EXPECT_THAT(with(branch({"a"}), branch({"s"})),
              HasSubstr("output 0 is Tensor in one branch and List[Tensor] in the other"));
  EXPECT_THAT(with(branch({"a"}), graph({}, {"z"}, {"z"})), HasSubstr("graph 'g' has 1 inputs, but gets 0"));
  EXPECT_THAT(nodes_error({condition, node("If", {"c"}, {"y"}, {graph_attribute("then_branch", branch({"a"}))})}),
              HasSubstr("graph 'else_branch' is missing"));
  EXPECT_THAT(
      nodes_error({condition, node("If", {"c"}, {"y"},
                                   {graph_attribute("then_branch", branch({"a"})), int_attribute("else_branch", 1)})}),
      HasSubstr("graph 'else_branch' is missing"));
}

TEST_F(OnnxErrors, Loops) {
  const auto body = [](const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    return graph({node("Identity", {"c"}, {"d"}), node("SequenceConstruct", {"x"}, {"s"})}, inputs, outputs);
  };
  const auto with = [&](const Message& graph, const std::vector<std::string>& inputs) {
    return nodes_error({node("Constant", {}, {"n"}, {int_attribute("value_int", 2)}),
                        node("Loop", inputs, {"y"}, {graph_attribute("body", graph)})});
  };
  EXPECT_EQ(with(body({"i", "c", "v"}, {"d", "v"}), {"n", "", "x"}), "none");
  EXPECT_THAT(with(body({"i", "c", "v"}, {"d", "v"}), {"n", "", ""}), HasSubstr("state 0 is left out"));
  EXPECT_THAT(with(body({"i", "c", "v", "w"}, {"d", "v", "w"}), {"n", "", "", "x"}), HasSubstr("state 0 is left out"));
  EXPECT_THAT(with(body({"i", "c"}, {"d", "x"}), {"n", "", "x"}),
              HasSubstr("the body has 2 inputs and 2 outputs for 1 states"));
  EXPECT_THAT(with(body({"i", "c", "v"}, {"d"}), {"n", "", "x"}),
              HasSubstr("the body has 3 inputs and 1 outputs for 1 states"));
  EXPECT_THAT(with(body({"i", "c", "v"}, {"d", "s"}), {"n", "", "x"}),
              HasSubstr("state 0 begins as Tensor and becomes List[Tensor]"));
}

TEST_F(OnnxErrors, Scans) {
  const Message body = graph({node("Add", {"v", "e"}, {"w"})}, {"v", "e"}, {"w", "w"});
  const auto with = [&](const std::vector<std::string>& inputs, std::vector<Message> attributes,
                        const std::vector<Message>& own = {}) {
    attributes.push_back(graph_attribute("body", own.empty() ? body : own[0]));
    return nodes_error({node("Scan", inputs, {"", "y"}, attributes)});
  };
  const auto scans = [](int64_t count) { return int_attribute("num_scan_inputs", count); };
  EXPECT_EQ(with({"x", "x"}, {scans(1)}), "none");
  EXPECT_EQ(with({"x", "x"}, {scans(1), ints_attribute("scan_input_axes", {0})}), "none");
  EXPECT_THAT(with({"x", "x"}, {}), HasSubstr("num_scan_inputs does not fit 2 inputs"));
  EXPECT_THAT(with({"x", "x"}, {scans(0)}), HasSubstr("num_scan_inputs does not fit 2 inputs"));
  EXPECT_THAT(with({"x", "x"}, {scans(3)}), HasSubstr("num_scan_inputs does not fit 2 inputs"));
  EXPECT_THAT(with({"", "x"}, {scans(1)}), HasSubstr("num_scan_inputs does not fit 2 inputs"));
  EXPECT_THAT(with({"x", "x"}, {scans(1)}, {graph({}, {"v", "e"}, {})}),
              HasSubstr("the body has fewer outputs than states"));
  for (const char* name : {"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"}) {
    EXPECT_THAT(with({"x", "x"}, {scans(1), ints_attribute(name, {0, 0})}),
                HasSubstr(concat("attribute '", name, "' must be 1 integers")));
    EXPECT_THAT(with({"x", "x"}, {scans(1), int_attribute(name, 0)}),
                HasSubstr(concat("attribute '", name, "' must be 1 integers")));
  }
}

TEST_F(OnnxErrors, SequencesAndAttention) {
  const Message body = graph({node("Abs", {"a"}, {"b"})}, {"a"}, {"b"});
  const auto map = [&](const std::vector<std::string>& inputs) {
    return nodes_error(
        {node("SequenceConstruct", {"x"}, {"s"}), node("SequenceMap", inputs, {"y"}, {graph_attribute("body", body)})});
  };
  EXPECT_EQ(map({"s"}), "none");
  EXPECT_THAT(map({"x"}), HasSubstr("the first input is not a sequence"));
  EXPECT_THAT(map({}), HasSubstr("the first input is not a sequence"));
  Message flex = model(graph({node("FlexAttention", {"x", "x"}, {"y"}, {}, "ai.onnx.preview")}, {"x"}, {"y"}));
  EXPECT_THAT(error_of(flex.message(8, opset(1, "ai.onnx.preview"))), HasSubstr("must have three inputs"));
}

// An input that a function or branch omits has no value.
TEST_F(OnnxErrors, InputsThatAreLeftOut) {
  const Message inner = graph({}, {}, {"a"});
  const Message function =
      Message()
          .bytes(1, "f")
          .bytes(4, "a")
          .bytes(5, "b")
          .message(7, node("Constant", {}, {"c"}, {int_attribute("value_int", 1)}))
          .message(7, node("If", {"c"}, {"b"},
                           {graph_attribute("then_branch", inner), graph_attribute("else_branch", inner)}))
          .message(9, opset(17))
          .bytes(10, "mine");
  const auto calls = [&](const std::vector<std::string>& inputs) {
    Message message = model(graph({node("f", inputs, {"y"}, {}, "mine")}, {"x"}, {"y"}), 17, {function});
    return error_of(message.message(8, opset(1, "mine")));
  };
  EXPECT_EQ(calls({"x"}), "none");
  EXPECT_THAT(calls({}), HasSubstr("output 'a' is an input that is left out"));
}

}  // namespace
}  // namespace tensord::jit::onnx_errors_test
