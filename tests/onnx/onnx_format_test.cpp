// How the reader interprets models, and which it refuses, each with one error that names the problem.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/jit/importers/format.h"
#include "core/jit/importers/onnx/attribute_values.h"
#include "core/jit/importers/onnx/message_writer.h"
#include "core/jit/importers/onnx/onnx_format.h"
#include "core/jit/importers/onnx/operator_library.h"
#include "core/jit/runtime/batch_safety.h"
#include "core/jit/runtime/module.h"
#include "tests/onnx/message.h"

namespace tensord::jit::onnx_format_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnnxFormat : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tensord_onnx_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& bytes, const std::string& name = "model.onnx") {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::shared_ptr<Module> load(const Message& message, LoadOptions options = {}) {
    return Module::load(write(message.str()), std::move(options));
  }
  std::string error_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "no error";
  }
  std::string load_error(const Message& message) {
    return error_of([&] { load(message); });
  }

  fs::path folder_;
  ErrorCode code_ = ErrorCode::kInternal;
};

Tensor floats(const std::vector<float>& values) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

std::vector<float> run(const Module& module, const std::vector<Value>& arguments) {
  const auto frame = make_frame();
  const Tensor result = module.method("forward").run(*frame, arguments).to_tensor().contiguous();
  return {result.data<float>(), result.data<float>() + result.numel()};
}

const std::vector<Message> kWeight{float_tensor("layer.weight", {2}, {10, 20})};

Message add_model() { return model(graph({node("Add", {"x", "layer.weight"}, {"y"})}, {"x"}, {"y"}, kWeight)); }

TEST_F(OnnxFormat, RunsAndDescribesAModel) {
  const auto module = load(add_model());
  EXPECT_EQ(module->platform(), "onnxruntime_onnx");
  EXPECT_THAT(run(*module, {floats({1, 2})}), ElementsAre(11, 22));
  const MethodSignature* signature = module->signature("forward");
  ASSERT_NE(signature, nullptr);
  ASSERT_EQ(signature->inputs.size(), 1U);
  EXPECT_EQ(signature->inputs[0].name, "x");
  EXPECT_EQ(signature->inputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(*signature->inputs[0].shape, Dims{-1});
  EXPECT_EQ(signature->outputs[0].name, "y");
  const auto parameters = module->named_parameters();
  ASSERT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters[0].first, "layer.weight");
}

// One scale for a whole batch: such models run one request at a time.
TEST_F(OnnxFormat, ScalesOfABatchAreKnownToMixIt) {
  const auto found = [&](const Message& message) {
    const auto module = load(message);
    return find_mixing_operator(*module, module->method("forward"));
  };
  EXPECT_EQ(found(add_model()), "");
  EXPECT_EQ(found(model(graph({node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"})}, {"x"}, {"scale"}))),
            "aten::_aminmax");
}

TEST_F(OnnxFormat, ParametersOfTrainingAreMemoryOfTheirOwnWithGradients) {
  LoadOptions options;
  options.for_training = true;
  const auto module = load(add_model(), options);
  EXPECT_THAT(run(*module, {floats({1, 2})}), ElementsAre(11, 22));
  ASSERT_EQ(module->named_parameters().size(), 1U);
}

TEST_F(OnnxFormat, NamesThatAreATensorAndAModuleGiveWay) {
  const std::vector<Message> weights{float_tensor("a", {2}, {1, 2}), float_tensor("a.b", {2}, {10, 20}),
                                     float_tensor("..", {2}, {100, 200})};
  const auto module = load(
      model(graph({node("Add", {"a", "a.b"}, {"t"}), node("Add", {"t", ".."}, {"u"}), node("Add", {"u", "x"}, {"y"})},
                  {"x"}, {"y"}, weights)));
  EXPECT_THAT(run(*module, {floats({0, 0})}), ElementsAre(111, 222));
}

TEST_F(OnnxFormat, AModelByAnotherNameIsKnownByItsFirstBytes) {
  const ModelFormat& format = onnx::kOnnxFormat;
  EXPECT_TRUE(format.probe(write("", "model.onnx")));
  const std::pair<std::string, bool> heads[] = {
      {"\x08\x03\x12", true},  {"\x08\x40\x3a", true},  {"\x08\x02\x12", false}, {"\x08\x41\x12", false},
      {"\x08\x08\x22", false}, {"\x09\x08\x12", false}, {"\x08\x08", false},     {"", false},
  };
  for (const auto& [head, is_model] : heads) EXPECT_EQ(format.probe(write(head, "model.bin")), is_model);
  EXPECT_FALSE(format.probe((folder_ / "none").string()));
}

TEST_F(OnnxFormat, SeveralOutputsAreNamed) {
  const auto module =
      load(model(graph({node("Neg", {"x"}, {"minus"}), node("Abs", {"x"}, {"plus"})}, {"x"}, {"plus", "minus"})));
  const auto frame = make_frame();
  const std::vector<Value> arguments{floats({-3})};
  const Value result = module->method("forward").run(*frame, arguments);
  EXPECT_EQ(result.to_tuple()->type->field_names(), (std::vector<std::string>{"plus", "minus"}));
  EXPECT_EQ(result.to_tuple()->items[0].to_tensor().item_double(), 3);
}

TEST_F(OnnxFormat, OneOutputKeepsItsName) {
  const auto module = load(add_model());
  EXPECT_EQ(module->method("forward").schema().returns.at(0).name, "y");
}

TEST_F(OnnxFormat, InputsBesideASequenceKeepTheirTypes) {
  Message whole = Message().message(1, node("SequenceConstruct", {"x"}, {"parts"})).bytes(2, "g");
  const Message tensor = Message().message(1, Message().number(1, 1));
  const Message type = Message().message(4, Message().message(1, tensor));
  whole.message(11, value_info("x", {-1, 3})).message(12, Message().bytes(1, "parts").message(2, type));
  const auto module = load(model(whole));
  const MethodSignature* signature = module->signature("forward");
  ASSERT_NE(signature, nullptr);
  EXPECT_EQ(signature->inputs.at(0).dtype, DType::kFloat32);
  EXPECT_EQ(*signature->inputs.at(0).shape, (Dims{-1, 3}));
  EXPECT_EQ(signature->outputs.at(0).name, "parts");
  EXPECT_EQ(signature->outputs.at(0).dtype, std::nullopt);
}

TEST_F(OnnxFormat, InitializersThatAreInputsMayBeOverruled) {
  const std::vector<Message> weights{float_tensor("w", {2}, {10, 20}), float_tensor("scale", {}, {2})};
  const auto made = [&](int64_t ir_version) {
    const Message body = graph({node("Mul", {"x", "scale"}, {"t"}), node("Add", {"t", "w"}, {"y"})},
                               {"w", "x", "scale"}, {"y"}, weights);
    return load(Message().number(1, static_cast<uint64_t>(ir_version)).message(7, body).message(8, opset(17)));
  };
  const auto module = made(8);
  EXPECT_THAT(run(*module, {floats({1, 2})}), ElementsAre(12, 24));
  EXPECT_THAT(run(*module, {floats({1, 2}), floats({0, 1})}), ElementsAre(2, 5));
  EXPECT_THAT(run(*module, {floats({1, 2}), Value(), floats({3})}), ElementsAre(13, 26));
  ASSERT_EQ(module->signature("forward")->inputs.size(), 3U);
  EXPECT_EQ(module->signature("forward")->inputs[1].name, "w");
  ASSERT_EQ(module->named_parameters().size(), 1U);
  // They had to be inputs before IR 4.
  EXPECT_EQ(made(3)->signature("forward")->inputs.size(), 1U);
}

// A file that lists every weight as an input does not expect requests to send them.
TEST_F(OnnxFormat, FilesThatNameAllTheirWeightsAsInputs) {
  std::vector<Message> weights, nodes;
  std::vector<std::string> inputs{"v0"};
  for (int i = 0; i < 9; ++i) {
    inputs.push_back(concat("w", i));
    weights.push_back(float_tensor(inputs.back(), {2}, {1, 2}));
    nodes.push_back(node("Add", {concat("v", i), inputs.back()}, {concat("v", i + 1)}));
  }
  const auto module = load(model(graph(nodes, inputs, {"v9"}, weights)));
  EXPECT_EQ(module->signature("forward")->inputs.size(), 1U);
}

// Each string attribute is in the table of choices, and each row of the table is used.
TEST_F(OnnxFormat, EveryChoiceIsInTheTableOfAttributes) {
  const auto& library = onnx::OperatorLibrary::instance();
  std::set<const onnx::AttributeValues*> used;
  for (const std::string& name : library.function_names()) {
    const std::string last = name.substr(name.rfind('.') + 1);
    const size_t cut = last.rfind('_');
    if (cut == 0 || cut == std::string::npos || last.find_first_not_of("0123456789", cut + 1) != std::string::npos)
      continue;
    for (const ops::Argument& argument : library.find_function(name)->schema.arguments) {
      if (!argument.is_keyword_only) continue;
      const auto* row = onnx::find_attribute_values(last.substr(0, cut), argument.name);
      used.insert(row);
      const ops::Type& type =
          argument.type->kind() == ops::TypeKind::kOptional ? *argument.type->element() : *argument.type;
      const bool is_text = type.kind() == ops::TypeKind::kString ||
                           (type.kind() == ops::TypeKind::kList && type.element()->kind() == ops::TypeKind::kString);
      EXPECT_TRUE(row || !is_text) << last << ": " << argument.name;
    }
  }
  for (const onnx::AttributeValues& row : onnx::attribute_values()) {
    EXPECT_TRUE(used.contains(&row)) << row.attribute << " of " << row.operators;
  }
}

TEST_F(OnnxFormat, LocalFunctionsTakeAttributes) {
  // twice(a; axis) = Concat(a, a; axis)
  const Message axis = Message().bytes(1, "axis").bytes(21, "along").number(20, 2);
  const Message body = node("Concat", {"a", "a"}, {"b"}, {axis});
  const Message function = Message()
                               .bytes(1, "twice")
                               .bytes(4, "a")
                               .bytes(5, "b")
                               .bytes(6, "along")
                               .message(7, body)
                               .message(9, opset(17))
                               .bytes(10, "mine");
  Message message =
      model(graph({node("twice", {"x"}, {"y"}, {int_attribute("along", 0)}, "mine")}, {"x"}, {"y"}), 17, {function});
  message.message(8, opset(1, "mine"));
  EXPECT_THAT(run(*load(message), {floats({1, 2})}), ElementsAre(1, 2, 1, 2));
  const auto other = node("twice", {"x"}, {"y"}, {int_attribute("along", 0), int_attribute("by", 2)}, "mine");
  message = model(graph({other}, {"x"}, {"y"}), 17, {function}).message(8, opset(1, "mine"));
  EXPECT_THAT(load_error(message), HasSubstr("node 'the_twice' (mine.twice): attribute 'by' is not known"));
}

TEST_F(OnnxFormat, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(load_error(model(graph({node("Frobnicate", {"x"}, {"y"})}, {"x"}, {"y"}))),
              AllOf(HasSubstr("the_Frobnicate"),
                    HasSubstr("operator Frobnicate of domain ai.onnx, opset 17, is not supported")));
  EXPECT_EQ(code_, ErrorCode::kUnimplemented);
  Message other = model(graph({node("Hello", {"x"}, {"y"}, {}, "com.example")}, {"x"}, {"y"}));
  other.message(8, opset(3, "com.example"));
  EXPECT_THAT(load_error(other), HasSubstr("operator Hello of domain com.example, opset 3"));
  EXPECT_THAT(load_error(model(graph({node("Gelu", {"x"}, {"y"})}, {"x"}, {"y"}))),
              HasSubstr("not supported in that version"));
  EXPECT_THAT(load_error(model(graph({node("Abs", {"x"}, {"y"})}, {"x"}, {"y"}), 99)),
              HasSubstr("newer than opset 28"));
  EXPECT_THAT(load_error(model(graph({node("Abs", {"x"}, {"y"}, {int_attribute("extra", 1)})}, {"x"}, {"y"}))),
              HasSubstr("attribute 'extra' is not known"));
  EXPECT_THAT(load_error(model(graph({node("Add", {"x"}, {"y"})}, {"x"}, {"y"}))), HasSubstr("input 'B' is missing"));
  EXPECT_THAT(load_error(model(graph({node("Abs", {"x", "x"}, {"y"})}, {"x"}, {"y"}))),
              HasSubstr("has 2 inputs, but takes 1"));
  Message strings = graph({node("Identity", {"s"}, {"y"})}, {}, {"y"});
  strings.message(11, value_info("s", {-1}, 8));
  EXPECT_THAT(load_error(model(strings)), HasSubstr("input 's': element type STRING is not supported"));
}

TEST_F(OnnxFormat, ValuesAreMadeBeforeTheyAreUsedAndOnce) {
  const Message first = node("Abs", {"b"}, {"a"}), second = node("Abs", {"a"}, {"b"});
  EXPECT_THAT(load_error(model(graph({first, second}, {"x"}, {"a"}))),
              HasSubstr("value 'b' is used, but nothing before makes it"));
  EXPECT_EQ(code_, ErrorCode::kDataLoss);
  EXPECT_THAT(load_error(model(graph({node("Abs", {"x"}, {"x"})}, {"x"}, {"x"}))),
              HasSubstr("value 'x' is made twice"));
  EXPECT_THAT(load_error(model(graph({}, {"x"}, {"z"}))), HasSubstr("value 'z' is used"));
}

// Any number of initializers with one name, in the graph or as attributes.
TEST_F(OnnxFormat, ManyInitializersOfOneName) {
  const std::vector<Message> same(20000, float_tensor("w", {2}, {1, 2}));
  EXPECT_THAT(load_error(model(graph({node("Abs", {"x"}, {"y"})}, {"x"}, {"y"}, same))),
              HasSubstr("initializer 'w' appears twice"));
  EXPECT_EQ(code_, ErrorCode::kDataLoss);
  // Dots in names are replaced by '_'; colliding names get more of them.
  std::vector<Message> alike;
  for (int i = 0; i < 4096; ++i) {
    std::string name = "a";
    for (int bit = 0; bit < 12; ++bit) name += i >> bit & 1 ? ".b" : "_b";
    for (int more = 0; more < 60; ++more) name += ".c";
    alike.push_back(float_tensor(name, {2}, {1, 2}));
  }
  const auto module = load(model(graph({node("Abs", {"x"}, {"y"})}, {"x"}, {"y"}, alike)));
  EXPECT_THAT(run(*module, {floats({-1, 2})}), ElementsAre(1, 2));
}

TEST_F(OnnxFormat, FunctionsThatCallThemselvesOrExplodeAreRefused) {
  const auto function = [](const std::string& name, const std::vector<Message>& nodes) {
    Message message;
    message.bytes(1, name).bytes(4, "a").bytes(5, "b");
    for (const Message& each : nodes) message.message(7, each);
    return message.message(9, opset(17)).message(9, opset(1, "f")).bytes(10, "f");
  };
  const auto with = [&](const std::vector<Message>& functions, const std::string& call) {
    Message message = model(graph({node(call, {"x"}, {"y"}, {}, "f")}, {"x"}, {"y"}), 17, functions);
    return message.message(8, opset(1, "f"));
  };
  EXPECT_THAT(load_error(with({function("f0", {node("f0", {"a"}, {"b"}, {}, "f")})}, "f0")),
              HasSubstr("'f0' calls itself"));
  std::vector<Message> functions{function("f0", {node("Identity", {"a"}, {"b"})})};
  for (int i = 1; i < 30; ++i) {
    const std::string callee = "f" + std::to_string(i - 1);
    functions.push_back(
        function("f" + std::to_string(i), {node(callee, {"a"}, {"c"}, {}, "f"), node(callee, {"c"}, {"b"}, {}, "f")}));
  }
  EXPECT_THAT(load_error(with(functions, "f29")), HasSubstr("too large when its functions are expanded"));
  EXPECT_EQ(code_, ErrorCode::kResourceExhausted);
}

TEST_F(OnnxFormat, DepthIsBounded) {
  Message inner = graph({node("Abs", {"x"}, {"y"})}, {}, {"y"});
  for (int i = 0; i < 200; ++i) {
    inner = graph(
        {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", inner), graph_attribute("else_branch", Message())})},
        {}, {"y"});
  }
  EXPECT_THAT(load_error(model(inner)), HasSubstr("nested more than"));
  EXPECT_EQ(code_, ErrorCode::kResourceExhausted);
}

TEST_F(OnnxFormat, SizesMustAgreeWithBytes) {
  const auto with = [&](const Message& tensor) {
    return load_error(model(graph({node("Add", {"x", "w"}, {"y"})}, {"x"}, {"y"}, {tensor})));
  };
  EXPECT_THAT(with(float_tensor("w", {3}, {1, 2})),
              HasSubstr("tensor 'w': raw_data has 8 bytes, but the tensor takes 12"));
  EXPECT_EQ(code_, ErrorCode::kDataLoss);
  EXPECT_THAT(with(float_tensor("w", {-1}, {1, 2})), HasSubstr("a dimension of size -1"));
  EXPECT_THAT(with(float_tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, {1})), HasSubstr("larger than any memory"));
  EXPECT_THAT(with(float_tensor("w", {0, int64_t{1} << 62, int64_t{1} << 62}, {})),
              HasSubstr("larger than any memory"));
  EXPECT_THAT(with(float_tensor("w", std::vector<int64_t>(65, 1), {1})), HasSubstr("has 65 dimensions"));
  // A terabyte without any data.
  EXPECT_THAT(with(Message().number(1, uint64_t{1} << 38).number(2, 1).bytes(8, "w")),
              HasSubstr("fewer elements than"));
  EXPECT_THAT(with(Message().number(1, 1).number(2, 20).bytes(8, "w").bytes(9, "a")),
              HasSubstr("FLOAT8E5M2FNUZ is not supported"));
  EXPECT_THAT(with(Message().number(1, 1).number(2, 777).bytes(8, "w").bytes(9, "a")), HasSubstr("element type 777"));
}

TEST_F(OnnxFormat, ExternalDataStaysInTheFolder) {
  std::string raw(8, '\0');
  const float values[] = {10, 20};
  std::memcpy(raw.data(), values, sizeof values);
  const auto tensor = [](const std::string& location,
                         const std::vector<std::pair<std::string, std::string>>& more = {}) {
    Message message = Message().number(1, 2).number(2, 1).bytes(8, "w").message(
        13, Message().bytes(1, "location").bytes(2, location));
    for (const auto& [key, value] : more) message.message(13, Message().bytes(1, key).bytes(2, value));
    return message.number(14, 1);
  };
  const auto with = [&](const Message& weight) {
    return model(graph({node("Add", {"x", "w"}, {"y"})}, {"x"}, {"y"}, {weight}));
  };
  write("padding " + raw, "data");
  const auto module = load(with(tensor("data", {{"offset", "8"}, {"length", "8"}})));
  EXPECT_THAT(run(*module, {floats({1, 2})}), ElementsAre(11, 22));

  const fs::path outside = folder_.string() + "_outside";
  std::ofstream(outside) << "padding " << raw;
  fs::create_symlink(outside, folder_ / "link");
  for (const std::string& location : {std::string("../") + outside.filename().string(), outside.string(), std::string(),
                                      std::string("sub/../../") + outside.filename().string(), std::string("link")}) {
    EXPECT_THAT(load_error(with(tensor(location))), HasSubstr("folder")) << location;
    EXPECT_EQ(code_, ErrorCode::kInvalidArgument) << location;
  }
  fs::remove(outside);
  EXPECT_THAT(load_error(with(tensor("missing"))), HasSubstr("'missing' cannot be opened"));
  EXPECT_THAT(load_error(with(tensor("data", {{"offset", "9"}}))),
              HasSubstr("8 bytes at 9 are not in 'data', which has 16"));
  EXPECT_THAT(load_error(with(tensor("data", {{"offset", "18446744073709551615"}}))), HasSubstr("offset"));
  EXPECT_THAT(load_error(with(tensor("data", {{"offset", "-1"}}))), HasSubstr("offset"));
  EXPECT_THAT(load_error(with(tensor("data", {{"length", "4"}}))), HasSubstr("has 4 bytes, but the tensor takes 8"));
  EXPECT_THAT(load_error(with(tensor("."))), HasSubstr("not a regular file"));
}

// Beyond the 2 GB limit of other readers. The files are sparse.
constexpr size_t kHugeCount = 600'000'000, kHugeBytes = kHugeCount * sizeof(float);

void make_huge(const fs::path& path, size_t size) {
  fs::resize_file(path, size);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const float last = 7;
  file.seekp(static_cast<std::streamoff>(size - sizeof last));
  file.write(reinterpret_cast<const char*>(&last), sizeof last);
}

// y = w[last] + x, without w.
Message last_of_weight() {
  std::string index(sizeof(int64_t), '\xff');  // -1
  const Message i = Message().number(1, 1).number(2, 7).bytes(8, "i").bytes(9, index);
  return graph({node("Gather", {"w", "i"}, {"z"}), node("Add", {"z", "x"}, {"y"})}, {"x"}, {"y"}, {i});
}

TEST_F(OnnxFormat, ExternalDataMayBeHuge) {
  Message weight = Message().number(1, kHugeCount).number(2, 1).bytes(8, "w");
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"location", "data"}, {"offset", "4096"}, {"length", std::to_string(kHugeBytes)}})
    weight.message(13, Message().bytes(1, key).bytes(2, value));
  write("", "data");
  make_huge(folder_ / "data", 4096 + kHugeBytes);
  const Message model = Message().number(1, 8).message(7, last_of_weight().message(5, weight.number(14, 1)));
  const auto module = load(Message(model).message(8, opset(17)));
  EXPECT_THAT(run(*module, {floats({1})}), ElementsAre(8));
  fs::resize_file(folder_ / "data", kHugeBytes);
  EXPECT_THAT(load_error(Message(model).message(8, opset(17))),
              HasSubstr("2400000000 bytes at 4096 are not in 'data'"));
}

TEST_F(OnnxFormat, TheFileItselfMayBeHuge) {
  onnx::MessageWriter tensor, field;
  tensor.number(1, kHugeCount);
  tensor.number(2, 1);
  tensor.text(8, "w");
  tensor.begin_bytes(9, kHugeBytes);
  field.begin_bytes(5, tensor.bytes().size() + kHugeBytes);
  const std::string graph = last_of_weight().str() + field.bytes() + tensor.bytes();
  std::string head;
  // Aligned data is not copied.
  for (size_t padding = 0; head.empty() || (head.size() + graph.size()) % 64 != 0; ++padding) {
    onnx::MessageWriter model;
    model.number(1, 8);
    model.text(6, std::string(padding, 'p'));
    model.text(8, opset(17).str());
    model.begin_bytes(7, graph.size() + kHugeBytes);
    head = model.bytes();
  }
  const std::string path = write(head + graph);
  make_huge(path, head.size() + graph.size() + kHugeBytes);
  EXPECT_THAT(run(*Module::load(path), {floats({1})}), ElementsAre(8));
  fs::resize_file(path, kHugeBytes);
  EXPECT_THAT(error_of([&] { Module::load(path); }), HasSubstr("a field ends after the message"));
  EXPECT_EQ(code_, ErrorCode::kDataLoss);
}

// A file truncated anywhere, or with any byte changed, gives an Error or a model.
TEST_F(OnnxFormat, DamagedFilesAreRefused) {
  const Message branch = graph({node("Abs", {"x"}, {"z"})}, {}, {"z"});
  const Message condition = Message().bytes(1, "value").message(5, Message().number(2, 9).bytes(9, "\1")).number(20, 4);
  const std::string whole =
      model(graph({node("Constant", {}, {"c"}, {condition}),
                   node("If", {"c"}, {"z"},
                        {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
                   node("Add", {"z", "layer.weight"}, {"y"})},
                  {"x"}, {"y"}, kWeight))
          .str();
  EXPECT_THAT(run(*Module::load(write(whole)), {floats({-1, -2})}), ElementsAre(11, 22));
  const auto try_to_load = [&](const std::string& bytes) {
    const std::string path = write(bytes);
    try {
      const auto module = Module::load(path);
      module->method("forward");
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  };
  for (size_t size = 0; size < whole.size(); ++size) try_to_load(whole.substr(0, size));
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try_to_load(bytes);
  }
}

TEST(OnnxOperators, AllCompile) {
  const onnx::OperatorLibrary& library = onnx::OperatorLibrary::instance();
  size_t count = 0;
  for (const std::string& name : library.function_names()) {
    try {
      ASSERT_NE(library.find_function(name), nullptr) << name;
      ++count;
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
  EXPECT_GT(count, 300U);
}

}  // namespace
}  // namespace tensord::jit::onnx_format_test
