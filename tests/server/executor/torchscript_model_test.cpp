// How a model's script and its configuration are combined when it is loaded, and how it runs then.
#include "server/executor/model/torchscript_model.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/tensor/lend.h"
#include "server/config/pbtxt/model_config_text.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_sink.h"
#include "tests/server/temporary_folder.h"
#include "tests/support/places.h"

namespace tensord::server::torchscript_model_test {
namespace {

using fixtures::float_tensor;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::function<bool()> kNever = [] { return false; };

// One scale is computed over all rows.
constexpr const char* kMixing = R"(
class M(Module):
    def forward(self, x: Tensor) -> Tensor:
        low, high = torch._aminmax(x)
        return x / high
)";

class TorchScriptModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<const Model> load(const std::string& source, const std::string& config = "",
                                    const EngineOptions& defaults = {}) const {
    const std::string file = folder_.path() / "model.py";
    std::ofstream(file) << source;
    return load_torchscript_model({file}, parse_model_config(config, "config.pbtxt"), defaults);
  }
  // The source of a module whose forward() has these arguments and this body.
  static std::string module(const std::string& arguments, const std::string& body, const std::string& type = "Tensor") {
    return concat("class M(Module):\n    training: bool\n    def forward(self, ", arguments, ") -> ", type,
                  ":\n        ", body, "\n");
  }
  std::string refusal(const std::string& source, const std::string& config) const {
    return error_of([&] { load(source, config); }).what();
  }
  static RunResult run(const Model& model, const std::vector<const InferTensor*>& inputs) {
    return model.make_session()->run(inputs, {.is_cancelled = kNever});
  }

  const fixtures::TemporaryFolder folder_{"torchscript_model"};
};

std::string input(const std::string& name, const std::string& more) {
  return concat("input [ { name: \"", name, "\" ", more, " } ]\n");
}
const std::string kFloats = "data_type: TYPE_FP32 dims: [ -1 ]";

// The module returns its own buffer; the result of one run must not change when the next one writes there.
TEST_F(TorchScriptModelTest, ResultsOfAModelWithStateAreTheirOwn) {
  const auto model = load_torchscript_model({concat(tests_folder(), "/server/data/counter.pt")}, {}, {});
  EXPECT_TRUE(model->signature().keeps_state);
  const auto sessions = {model->make_session(), model->make_session()};
  const InferTensor one = float_tensor("x", {4}, {1, 1, 1, 1});
  const InferTensor* const inputs[] = {&one};
  std::vector<RunResult> results;
  for (int round = 0; round < 2; ++round) {
    for (const auto& session : sessions) results.push_back(session->run(inputs, {.is_cancelled = kNever}));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(values_of(results[i].outputs.at(0)), std::vector<float>(4, static_cast<float>(i + 1)));
  }
}

// Inputs may be shared with other readers, unless the request marks them as its own.
TEST_F(TorchScriptModelTest, WhatIsWrittenToAnInputIsSeenByNobodyElse) {
  const auto model =
      load(module("a: Tensor, b: Tensor", "view = a[1:]\n        view.add_(b[1:])\n        return a + b"));
  const Signature& signature = model->signature();
  EXPECT_TRUE(signature.inputs[0].is_written);
  const InferTensor given = float_tensor("a", {2}, {1, 2});
  InferTensor own = float_tensor("a", {2}, {1, 2}), shared = given;
  own.is_own = true;
  for (const bool is_read_only : {false, true}) {
    if (is_read_only) shared.tensor = read_only(given.tensor);
    const RunResult result = run(*model, {&shared, &given});
    EXPECT_EQ(values_of(result.outputs.at(0)), (std::vector<float>{2, 6}));
    EXPECT_EQ(result.copied_bytes, 2 * sizeof(float));
    EXPECT_EQ(values_of(given), (std::vector<float>{1, 2}));
  }
  const RunResult result = run(*model, {&own, &given});
  EXPECT_EQ(values_of(result.outputs.at(0)), (std::vector<float>{2, 6}));
  EXPECT_EQ(result.copied_bytes, 0);
  EXPECT_EQ(values_of(own), (std::vector<float>{1, 4}));
}

// Each model has its own random generator: seeded, or random at each load. A model that sets a seed does not affect the
// others.
TEST_F(TorchScriptModelTest, RandomNumbersAreItsOwn) {
  const std::string draws = module("x: Tensor", "return torch.rand([4]) + x");
  const std::string sets = module("x: Tensor", "torch.manual_seed(5)\n        return torch.rand([4]) + x");
  const auto seeded = [](const std::string& seed) {
    return concat("parameters { key: \"seed\" value: { string_value: \"", seed, "\" } }");
  };
  const InferTensor zero = float_tensor("x", {4}, {0, 0, 0, 0});
  const auto drawn = [&](const Model& model) {
    const Tensor numbers = run(model, {&zero}).outputs.at(0).tensor;
    return std::vector<float>(numbers.data<float>(), numbers.data<float>() + 4);
  };
  const auto first = load(draws), second = load(draws), seven = load(draws, seeded("7"));
  const auto one = drawn(*first);
  EXPECT_NE(one, drawn(*second));
  const auto of_seven = drawn(*seven);
  EXPECT_EQ(of_seven, drawn(*load(draws, seeded("7"))));
  const auto setter = load(sets);
  const auto of_five = drawn(*setter);
  EXPECT_EQ(of_five, drawn(*setter));
  EXPECT_NE(drawn(*first), of_five);
  EXPECT_THAT(refusal(draws, seeded("x")), ::testing::HasSubstr("parameters 'seed' must be a number of 64 bits"));
}

TEST_F(TorchScriptModelTest, AnInputThatIsNotWrittenIsNotCopied) {
  const auto model = load(module("x: Tensor, write: bool", "if write:\n            x.add_(1)\n        return x"));
  const InferTensor x = float_tensor("x", {2}, {1, 2});
  for (const bool write : {false, true}) {
    InferTensor flag;
    flag.name = "write";
    flag.datatype = DataType::kBool;
    flag.shape = {1};
    flag.tensor = Tensor::scalar(write).as_view({1}, {1}, 0);
    const RunResult result = run(*model, {&x, &flag});
    EXPECT_EQ(result.outputs.at(0).tensor.raw_data() == x.tensor.raw_data(), !write);
    EXPECT_EQ(result.copied_bytes, write ? 2 * sizeof(float) : 0);
    EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  }
}

TEST_F(TorchScriptModelTest, TextsOfAModelWithState) {
  const auto model =
      load(module("x: Tensor", "self.training = not self.training\n        return str(self.training)", "str"));
  EXPECT_TRUE(model->signature().keeps_state);
  const InferTensor x = float_tensor("x", {1}, {1});
  const std::string first = run(*model, {&x}).outputs.at(0).strings.at(0);
  EXPECT_EQ(run(*model, {&x}).outputs.at(0).strings.at(0), first == "True" ? "False" : "True");
}

TEST_F(TorchScriptModelTest, InputsByNameAliasAndPlace) {
  const std::string two = module("a: Tensor, b: Tensor", "return a - b");
  const auto names = [&](const std::string& config) {
    std::vector<std::string> out;
    const auto model = load(two, config);
    for (const TensorSpec& spec : model->signature().inputs) out.push_back(spec.name);
    return out;
  };
  EXPECT_THAT(names(""), ElementsAre("a", "b"));
  EXPECT_THAT(names(input("b", kFloats) + input("a", kFloats)), ElementsAre("a", "b"));
  EXPECT_THAT(names(input("left", kFloats) + input("right", kFloats)), ElementsAre("left", "right"));
  EXPECT_THAT(names(input("y__1", kFloats) + input("y__0", kFloats)), ElementsAre("y__0", "y__1"));
  EXPECT_THAT(refusal(two, input("y__2", kFloats)), HasSubstr("config.pbtxt names input 'y__2', but forward takes 2"));
  EXPECT_THAT(refusal(two, input("a", kFloats)), HasSubstr("config.pbtxt has no input for argument 'b' of forward"));
  EXPECT_THAT(refusal(two, input("a", kFloats) + input("y__0", kFloats)),
              HasSubstr("config.pbtxt has two inputs for argument 'a'"));
}

TEST_F(TorchScriptModelTest, InputsThatMayBeLeftOut) {
  const std::string source = module("x: Tensor, bias: Optional[Tensor], times: int = 3",
                                    "if bias is not None:\n            x = x + bias\n        return x * times");
  const auto model = load(source, input("x", kFloats));
  ASSERT_EQ(model->signature().inputs.size(), 3u);
  EXPECT_FALSE(model->signature().inputs[0].is_optional);
  EXPECT_TRUE(model->signature().inputs[1].is_optional);
  EXPECT_TRUE(model->signature().inputs[2].is_optional);
  const InferTensor x = float_tensor("x", {1}, {2}), bias = float_tensor("bias", {1}, {5});
  EXPECT_THAT(values_of(run(*model, {&x, nullptr, nullptr}).outputs.at(0)), ElementsAre(6));
  EXPECT_THAT(values_of(run(*model, {&x, &bias, nullptr}).outputs.at(0)), ElementsAre(21));
  // The configuration can make an input optional, but not one that is required.
  const auto all = load(source, input("x", kFloats + " optional: true") + input("bias", kFloats));
  EXPECT_TRUE(all->signature().inputs[0].is_optional);
  EXPECT_TRUE(all->signature().inputs[1].is_optional);
  EXPECT_THAT(load(module("x: Tensor, d: Dict[str, Tensor] = {}", "return x"))->signature().inputs,
              ::testing::SizeIs(1));
  EXPECT_THAT(refusal(module("d: Dict[str, int]", "return torch.full([1], d['a'])"), ""),
              HasSubstr("argument 'd' of forward has type Dict[str, int], which a request cannot carry"));
}

TEST_F(TorchScriptModelTest, ArgumentsThatSeveralInputsMake) {
  const auto named = [](const std::vector<std::string>& names, const std::string& more = "") {
    std::string config;
    for (const std::string& name : names) config += input(name, kFloats + more);
    return config;
  };
  const InferTensor a = float_tensor("a", {1}, {2}), b = float_tensor("b", {1}, {5});
  const std::string keys = module("d: Dict[str, Tensor], s: Tensor", "return d['a'] * s - d['b'] + len(d)");
  const auto dict = load(keys, named({"b", "s", "a"}) + named({"c"}, " optional: true"));
  ASSERT_EQ(dict->signature().inputs.size(), 4u);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < 4; ++i) places[dict->signature().inputs[i].name] = i;
  std::vector<const InferTensor*> inputs(4, nullptr);
  inputs[places.at("a")] = &a;
  inputs[places.at("b")] = inputs[places.at("s")] = &b;
  EXPECT_THAT(values_of(run(*dict, inputs).outputs.at(0)), ElementsAre(2 * 5 - 5 + 2));
  inputs[places.at("c")] = &b;
  EXPECT_THAT(values_of(run(*dict, inputs).outputs.at(0)), ElementsAre(2 * 5 - 5 + 3));
  EXPECT_THAT(refusal(keys, ""), HasSubstr("config.pbtxt has to list the inputs that make it, named by the keys"));
  EXPECT_THAT(refusal(keys, named({"s"})), HasSubstr("config.pbtxt has to list the inputs that make it"));
  EXPECT_THAT(refusal(keys, named({"a"})), HasSubstr("config.pbtxt has no input for argument 's' of forward"));
  const std::string two = module("d: Dict[str, Tensor], e: Dict[str, Tensor]", "return d['a'] - e['a']");
  EXPECT_THAT(refusal(two, named({"a"})), HasSubstr("input 'a' could be a key of several arguments"));
  EXPECT_THAT(values_of(run(*load(two, named({"d__a", "e__a"})), {&a, &b}).outputs.at(0)), ElementsAre(-3));

  const std::string places_of =
      module("xs: List[Tensor], t: Optional[List[Tensor]]", "return xs[0] - xs[-1] + len(xs) if t is None else t[0]");
  const auto list = load(places_of, named({"xs__1", "xs__0"}) + named({"xs__2", "t__0", "xs__3"}, " optional: true"));
  EXPECT_EQ(list->signature().inputs[1].name, "xs__1");
  EXPECT_THAT(values_of(run(*list, {&a, &b, nullptr, nullptr, nullptr}).outputs.at(0)), ElementsAre(-1));
  EXPECT_THAT(values_of(run(*list, {&a, &b, &a, nullptr, nullptr}).outputs.at(0)), ElementsAre(3));
  EXPECT_THAT(values_of(run(*list, {&a, &b, nullptr, nullptr, &b}).outputs.at(0)), ElementsAre(5));
  EXPECT_THAT(error_of([&] {
                run(*list, {&a, &b, nullptr, &a, nullptr});
              }).what(),
              HasSubstr("inference input 'xs__2' is missing before 'xs__3'"));
  EXPECT_THAT(refusal(places_of, named({"xs__0", "xs__2"})), HasSubstr("an input 'xs__2', but none 'xs__1'"));
  EXPECT_THAT(refusal(places_of, named({"xs__0", "xs__01"})), HasSubstr("names input 'xs__01', which no argument"));
}

TEST_F(TorchScriptModelTest, TypesOfInputs) {
  const std::string texts = module("words: List[str], x: Tensor", "return x + len(words)");
  const std::string words = input("words", "data_type: TYPE_STRING dims: [ -1 ]");
  EXPECT_NO_THROW(load(texts, words + input("x", kFloats)));
  EXPECT_THAT(refusal(texts, input("words", kFloats) + input("x", kFloats)),
              HasSubstr("input 'words' cannot be of type FP32"));
  EXPECT_THAT(refusal(texts, words + input("x", "data_type: TYPE_STRING dims: [ -1 ]")),
              HasSubstr("input 'x' cannot be of type BYTES"));
}

TEST_F(TorchScriptModelTest, AReshapeNeedsToKnowTheShapeItComesFrom) {
  const std::string source = module("x: Tensor", "return torch.sum(x, [1], False)");
  const InferTensor flat = float_tensor("x", {6}, {1, 2, 3, 4, 5, 6});
  const auto reshaped = load(source, input("x", "data_type: TYPE_FP32 dims: [ 6 ] reshape { shape: [ 2, 3 ] }"));
  EXPECT_THAT(values_of(run(*reshaped, {&flat}).outputs.at(0)), ElementsAre(6, 15));
  const InferTensor square = float_tensor("x", {2, 2}, {1, 2, 3, 4});
  const auto open = load(source, input("x", "data_type: TYPE_FP32 reshape { shape: [ 2, 3 ] }"));
  EXPECT_THAT(values_of(run(*open, {&square}).outputs.at(0)), ElementsAre(3, 7));
}

TEST_F(TorchScriptModelTest, RowsThatChangeEachOthersResultsShareNoRun) {
  const auto warnings = [&](const std::string& config, const char* source = kMixing) {
    return load(source, config)->warnings();
  };
  EXPECT_EQ(load(kMixing)->signature().mixing_operator, "aten::_aminmax");
  const std::string batch = "max_batch_size: 4\n", one = "max_batch_size: 1\n";
  const std::string joins = "dynamic_batching { }\n", sequences = "sequence_batching { }\n";
  const std::string ragged = input("x", "data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true");
  const std::string buckets = R"(parameters { key: "ragged_buckets" value: { string_value: "4,8" } })";
  EXPECT_THAT(warnings(batch), IsEmpty());
  EXPECT_THAT(warnings(one + joins), IsEmpty());
  EXPECT_THAT(warnings(batch + joins), ElementsAre(HasSubstr("dynamic_batching joins no requests: aten::_aminmax")));
  EXPECT_THAT(warnings(one + sequences), IsEmpty());
  EXPECT_THAT(refusal(kMixing, batch + sequences), HasSubstr("sequences cannot share a run, as aten::_aminmax"));
  EXPECT_THAT(warnings(batch + ragged), IsEmpty());
  EXPECT_THAT(refusal(kMixing, batch + ragged + buckets), HasSubstr("ragged_buckets: padding would change the scale"));
  EXPECT_THAT(warnings(batch + input("x", kFloats) + buckets), IsEmpty());
  const std::string plain = module("x: Tensor", "return x");
  EXPECT_THAT(warnings(batch + joins, plain.c_str()), IsEmpty());
  EXPECT_NO_THROW(load(plain, batch + sequences));
  EXPECT_NO_THROW(load(plain, batch + ragged + buckets));
}

TEST_F(TorchScriptModelTest, WorkThatHangsOnTheSizesOfTensorsAlone) {
  const auto is_bounded = [&](const std::string& arguments, const std::string& body) {
    return load(module(arguments, body))->signature().has_bounded_work;
  };
  const std::string loop = "    while float(x.sum()) > 0:\n                x = x - 1\n";
  EXPECT_TRUE(is_bounded("x: Tensor", "return x * 2"));
  EXPECT_TRUE(is_bounded("x: Tensor", "if x.size(0) > 2:\n            x = x * 2\n        return x"));
  EXPECT_FALSE(is_bounded("x: Tensor", "while float(x.sum()) > 0:\n            x = x - 1\n        return x"));
  EXPECT_FALSE(is_bounded("x: Tensor", "if x.size(0) > 2:\n        " + loop + "        return x"));
  EXPECT_FALSE(is_bounded("x: Tensor, times: int", "return x * times"));
}

TEST_F(TorchScriptModelTest, AListOfResponses) {
  const std::string config = "model_transaction_policy { decoupled: true }";
  const auto model = load(module("x: Tensor", "return [x, x + 1]", "List[Tensor]"), config);
  const InferTensor x = float_tensor("x", {1}, {2});
  const RunResult result = run(*model, {&x});
  ASSERT_EQ(result.responses.size(), 2u);
  EXPECT_THAT(values_of(result.responses[1].at(0)), ElementsAre(3));
  EXPECT_THAT(refusal(module("x: Tensor", "return x"), config),
              HasSubstr("forward returns Tensor, but must return a list with an item for each response"));
}

TEST_F(TorchScriptModelTest, WhatIsSavedInTrainingModeIsSaid) {
  const auto warnings = [&](const std::string& arguments, const std::string& body) {
    return load(module(arguments, body))->warnings();
  };
  const auto acts = [](const char* name) { return ElementsAre(HasSubstr(concat("(", name, " acts so)"))); };
  EXPECT_THAT(warnings("x: Tensor", "return torch.dropout(x, 0.5, True)"), acts("aten::dropout"));
  EXPECT_THAT(warnings("x: Tensor", "return torch.dropout(x, 0.5, False)"), IsEmpty());
  EXPECT_THAT(warnings("x: Tensor", "return torch.dropout(x, 0.0, True)"), IsEmpty());
  EXPECT_THAT(warnings("x: Tensor, p: float", "return torch.dropout(x, p, True)"), acts("aten::dropout"));
  EXPECT_THAT(warnings("x: Tensor, train: bool", "return torch.dropout(x, 0.5, train)"), IsEmpty());
  EXPECT_THAT(warnings("x: Tensor", "return torch.native_dropout(x, 0.5, None)[0]"), IsEmpty());
  EXPECT_THAT(warnings("x: Tensor", "return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)"),
              acts("aten::batch_norm"));
  EXPECT_THAT(
      warnings("x: Tensor",
               "return torch.batch_norm(torch.dropout(x, 0.5, True), None, None, x, x, False, 0.1, 1e-5, False)"),
      acts("aten::dropout"));
  const auto gru = [](const char* dropout) {
    return concat("return torch.gru(x, x, [x, x, x, x], True, 1, ", dropout, ", True, False, False)[0]");
  };
  EXPECT_THAT(warnings("x: Tensor", gru("0.5")), acts("aten::gru"));
  EXPECT_THAT(warnings("x: Tensor", gru("0.0")), IsEmpty());
  EXPECT_THAT(warnings("x: Tensor", "return torch.norm(x, None, [1], False)"), IsEmpty()) << "a p that is not a number";
  // A nested branch after harmless ones.
  EXPECT_THAT(
      warnings("x: Tensor",
               "if x.size(0) > 2:\n            if x.size(0) > 3:\n                x = x + 1\n            else:\n"
               "                x = torch.dropout(x, 0.5, True)\n        return x"),
      acts("aten::dropout"));
}

TEST_F(TorchScriptModelTest, PlansForBatchesOfAllSizes) {
  const auto after = [&](int default_size, int64_t max_batch_size, int64_t shapes, const std::string& more = "") {
    const auto model = load(module("x: Tensor", "return x * 2"), concat("max_batch_size: ", max_batch_size, "\n", more),
                            {.plan_cache_size = default_size});
    const auto session = model->make_session();
    for (int64_t rows = 1; rows <= shapes; ++rows) {
      const InferTensor x = float_tensor("x", {rows}, {});
      const InferTensor* const inputs[] = {&x};
      session->run(inputs, {.is_cancelled = kNever});
    }
    return model->plan_counts();
  };
  EXPECT_EQ(after(1, 2, 5).evictions, 1u);
  EXPECT_EQ(after(1, 2, 5).plans, 4u);
  EXPECT_EQ(after(5, 2, 5).plans, 5u);
  EXPECT_EQ(after(0, 2, 5).plans, 0u);
  EXPECT_FALSE(after(0, 2, 5).are_made);
  EXPECT_TRUE(after(5, 2, 5).are_made);
  EXPECT_EQ(after(5, 2, 5, R"(parameters { key: "plan_cache_size" value: { string_value: "3" } })").plans, 3u);
  EXPECT_EQ(after(1, 4096, 1026).plans, 1024u);
}

// A torch.export program describes its tensors.
TEST_F(TorchScriptModelTest, WhatAFileSaysOfItsTensors) {
  const std::string file = concat(tests_folder(), "/pt2/data/dtypes.pt2");
  const auto load_with = [&](const std::string& config) {
    return load_torchscript_model({file}, parse_model_config(config, "config.pbtxt"), {});
  };
  const Signature signature = load_with("")->signature();
  ASSERT_EQ(signature.inputs.size(), 2u);
  EXPECT_EQ(signature.inputs[0].datatype, DataType::kFp32);
  EXPECT_EQ(signature.inputs[1].datatype, DataType::kInt32);
  EXPECT_EQ(signature.inputs[0].shape, (Dims{3, 4}));
  EXPECT_EQ(signature.outputs.at(0).datatype, DataType::kFp16);
  EXPECT_EQ(signature.outputs[0].shape, (Dims{3, 4}));
  const std::string i = input("i", "data_type: TYPE_INT32 dims: [ 3, 4 ]");
  EXPECT_NO_THROW(load_with(input("x", "data_type: TYPE_FP32 dims: [ 3, 4 ]") + i));
  EXPECT_THAT(error_of([&] { load_with(input("x", "data_type: TYPE_FP64 dims: [ 3, 4 ]") + i); }).what(),
              HasSubstr("input 'x' is of type FP64, but the model takes FP32"));
}

// A run fails if the mapped weights were truncated by another process.
TEST_F(TorchScriptModelTest, AFileThatChangesUnderItIsSaid) {
  const std::string file = folder_.path() / "counter.pt";
  std::filesystem::copy_file(concat(tests_folder(), "/server/data/counter.pt"), file);
  const auto model = load_torchscript_model({file}, {}, {});
  const InferTensor one = float_tensor("x", {4}, {1, 1, 1, 1});
  EXPECT_NO_THROW(run(*model, {&one}));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(error_of([&] { run(*model, {&one}); }).what(), HasSubstr("the file was cut off while it was in use"));
}

}  // namespace
}  // namespace tensord::server::torchscript_model_test
