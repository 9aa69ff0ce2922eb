#include "server/executor/model/configured_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "server/config/pbtxt/model_config_text.h"
#include "tests/server/error_of.h"

namespace tensord::server::configured_outputs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorSpec spec_of(const std::string& name) {
  TensorSpec spec;
  spec.name = name;
  return spec;
}

InferTensor result(const std::string& name, const Dims& shape, float value = 0) {
  InferTensor out;
  out.name = name;
  out.datatype = DataType::kFp32;
  out.shape = shape;
  out.tensor = Tensor::empty(shape, DType::kFloat32);
  for (int64_t i = 0; i < out.tensor.numel(); ++i) out.tensor.data<float>()[i] = value;
  return out;
}

// For results `names`; `is_open`: a run may return others.
ConfiguredOutputs configured(const std::string& config, const std::vector<std::string>& names, bool is_open = false) {
  std::vector<TensorSpec> own;
  for (const std::string& name : names) own.push_back(spec_of(name));
  return {"m.pt", std::move(own), !is_open, parse_model_config(config, "config.pbtxt")};
}

// Names and values of the remaining outputs, for results "a" = 1, "b" = 2 …
std::vector<std::string> applied(const ConfiguredOutputs& outputs, const std::vector<std::string>& names) {
  std::vector<InferTensor> results;
  for (const std::string& name : names) results.push_back(result(name, {1}, static_cast<float>(results.size() + 1)));
  outputs.apply(results);
  std::vector<std::string> out;
  for (const InferTensor& one : results) out.push_back(concat(one.name, "=", *one.tensor.data<float>()));
  return out;
}

TEST(ConfiguredOutputs, WithoutAListAllThereIs) {
  const ConfiguredOutputs outputs = configured("", {"OUTPUT__0", "OUTPUT__1"});
  EXPECT_THAT(applied(outputs, {"OUTPUT__0", "OUTPUT__1"}), ElementsAre("OUTPUT__0=1", "OUTPUT__1=2"));
  EXPECT_THAT(applied(configured("", {}, true), {"x", "y"}), ElementsAre("x=1", "y=2"));
  EXPECT_FALSE(configured("", {}, true).is_complete());
}

TEST(ConfiguredOutputs, NamesByPlaceNumberAndField) {
  EXPECT_THAT(applied(configured(R"(output [ { name: "sum" }, { name: "rest" } ])", {"OUTPUT__0", "OUTPUT__1"}),
                      {"OUTPUT__0", "OUTPUT__1"}),
              ElementsAre("sum=1", "rest=2"));
  EXPECT_THAT(applied(configured(R"(output [ { name: "r__1" }, { name: "r__0" } ])", {"OUTPUT__0", "OUTPUT__1"}),
                      {"OUTPUT__0", "OUTPUT__1"}),
              ElementsAre("r__1=2", "r__0=1"));
  EXPECT_THAT(
      applied(configured(R"(output [ { name: "total" }, { name: "count" } ])", {"count", "total"}), {"count", "total"}),
      ElementsAre("total=2", "count=1"));
}

TEST(ConfiguredOutputs, ANameComesBeforeWhatOthersAnswerTo) {
  std::vector<TensorSpec> specs{spec_of("x"), spec_of("INPUT__0"), spec_of("y"), spec_of("z")};
  for (size_t i = 0; i < specs.size(); ++i) specs[i].aliases = {concat("INPUT__", i), "all"};
  keep_names_apart(specs);
  EXPECT_THAT(specs[0].aliases, ElementsAre("all"));
  EXPECT_THAT(specs[1].aliases, ElementsAre("INPUT__1"));
  EXPECT_THAT(specs[2].aliases, ElementsAre("INPUT__2"));
  // Likewise by configuration: the name given to one output is removed from another.
  std::vector<TensorSpec> own{spec_of("a"), spec_of("b")};
  own[1].aliases = {"c"};
  const ConfiguredOutputs outputs("m.pt", own, true,
                                  parse_model_config(R"(output [ { name: "b" }, { name: "x__0" } ])", "c"));
  EXPECT_THAT(outputs.specs()[0].aliases, ElementsAre("c"));
  EXPECT_THAT(outputs.specs()[1].aliases, ElementsAre("a"));
}

// If results have names, a configured name selects one by position only if it contains a number.
TEST(ConfiguredOutputs, NamesThatResultsDoNotHave) {
  const auto refusal = [](const std::string& names, bool has_own_names) -> std::string {
    const auto configure = [&] {
      ConfiguredOutputs("m.onnx", {spec_of("difference"), spec_of("sum")}, true, parse_model_config(names, "c"),
                        "OUTPUT__", has_own_names);
    };
    return error_of(configure).what();
  };
  for (const bool has_own_names : {false, true}) {
    EXPECT_EQ(refusal(R"(output [ { name: "sum" }, { name: "total" } ])", has_own_names),
              "m.onnx: config.pbtxt names output 'total', but the model's outputs are 'difference', 'sum'");
  }
  EXPECT_THAT(refusal(R"(output [ { name: "total__1" } ])", true), HasSubstr("names output 'total__1'"));
  for (const char* name : {"OUTPUT__1", "sum"}) {
    const ConfiguredOutputs outputs("m.onnx", {spec_of("difference"), spec_of("sum")}, true,
                                    parse_model_config(concat("output [ { name: \"", name, "\" } ]"), "c"), "OUTPUT__",
                                    true);
    EXPECT_EQ(outputs.own_index(0), 1) << name;
  }
}

TEST(ConfiguredOutputs, PartsOfAResultThatTheFileNames) {
  const ConfiguredOutputs outputs("m.onnx", {}, false, parse_model_config(R"(output [ { name: "one" } ])", "c"),
                                  "parts.");
  EXPECT_THAT(applied(outputs, {"parts.0", "parts.1"}), ElementsAre("one=1"));
}

TEST(ConfiguredOutputs, OnlyWhatIsListed) {
  const ConfiguredOutputs outputs = configured(R"(output [ { name: "OUTPUT__1" } ])", {"OUTPUT__0", "OUTPUT__1"});
  EXPECT_THAT(applied(outputs, {"OUTPUT__0", "OUTPUT__1"}), ElementsAre("OUTPUT__1=2"));
  ASSERT_EQ(outputs.specs().size(), 1U);
  EXPECT_EQ(outputs.own_index(0), 1);
}

TEST(ConfiguredOutputs, KeysThatOnlyARunTells) {
  const ConfiguredOutputs keys = configured(R"(output [ { name: "boxes" }, { name: "scores" } ])", {}, true);
  EXPECT_TRUE(keys.is_complete());
  EXPECT_EQ(keys.own_index(0), -1);
  EXPECT_THAT(applied(keys, {"scores", "labels", "boxes"}), ElementsAre("boxes=3", "scores=1"));
  EXPECT_THAT(error_of([&] {
                applied(keys, {"scores", "box"});
              }).what(),
              HasSubstr("config.pbtxt lists output 'boxes', but the model returned 'scores', 'box'"));
  // A list has no names of its own: free names are assigned by position.
  const ConfiguredOutputs list = configured(R"(output [ { name: "first" }, { name: "second" } ])", {}, true);
  EXPECT_THAT(applied(list, {"OUTPUT__0", "OUTPUT__1", "OUTPUT__2"}), ElementsAre("first=1", "second=2"));
}

// Steps of a generation need outputs that clients do not get.
TEST(ConfiguredOutputs, WhatAGenerationNeedsStays) {
  const auto with = [](const std::string& parameters) {
    return concat(R"(output [ { name: "text" } ] sequence_batching { iterative_sequence: true } )", parameters);
  };
  const std::string feedback = R"(parameters { key: "generation_output" value: { string_value: "next" } }
                                  parameters { key: "generation_input" value: { string_value: "tokens" } })";
  const ConfiguredOutputs known = configured(with(feedback), {"text", "next", "more"});
  EXPECT_THAT(applied(known, {"text", "next", "more"}), ElementsAre("text=1", "next=2"));
  EXPECT_EQ(known.own_index(1), 1);
  const ConfiguredOutputs open = configured(with(feedback), {}, true);
  EXPECT_THAT(applied(open, {"more", "next", "text"}), ElementsAre("text=3", "next=2"));
  EXPECT_EQ(open.own_index(1), -1);
  EXPECT_EQ(configured(with(feedback), {"text", "more"}).specs().size(), 1u) << "there is no such result";
  EXPECT_EQ(configured(with(""), {"text", "next"}).specs().size(), 1u);
}

TEST(ConfiguredOutputs, AReshapeNeedsToKnowTheShapeItGoesTo) {
  const auto shape = [](const std::string& dims) {
    const ConfiguredOutputs outputs =
        configured(concat(R"(output [ { name: "a" reshape { shape: [ 2, 3 ] } )", dims, " } ]"), {"a"});
    std::vector<InferTensor> results{result("a", {2, 3})};
    outputs.apply(results);
    return results[0].shape;
  };
  EXPECT_EQ(shape("dims: [ 6 ]"), (Dims{6}));
  EXPECT_EQ(shape(""), (Dims{2, 3}));
}

TEST(ConfiguredOutputs, ARunThatReturnsNothing) {
  const ConfiguredOutputs outputs = configured(R"(output [ { name: "a" } ])", {}, true);
  EXPECT_THAT(error_of([&] { applied(outputs, {}); }).what(), HasSubstr("but the model returned nothing"));
}

TEST(ConfiguredOutputs, WhatCannotBeIsRefused) {
  EXPECT_THAT(error_of([] { configured(R"(output [ { name: "a" }, { name: "b" } ])", {"OUTPUT__0"}); }).what(),
              HasSubstr("config.pbtxt names output 'b', but forward returns 1"));
  EXPECT_THAT(error_of([] {
                configured(R"(output [ { name: "x__1" }, { name: "y" } ])", {"OUTPUT__0", "OUTPUT__1"});
              }).what(),
              HasSubstr("two outputs for result OUTPUT__1, 'x__1' and 'y'"));
  const ConfiguredOutputs typed = configured(R"(output [ { name: "a" data_type: TYPE_INT64 } ])", {"OUTPUT__0"});
  EXPECT_THAT(error_of([&] { applied(typed, {"OUTPUT__0"}); }).what(),
              HasSubstr("output 'a' is of type FP32, but config.pbtxt says INT64"));
}

TEST(ConfiguredOutputs, TypesThatCannotBe) {
  const auto refused = [](const std::string& datatype, std::vector<TensorSpec> own, bool is_complete) {
    const ModelConfig config =
        parse_model_config(concat(R"(output [ { name: "a" data_type: )", datatype, " } ]"), "config.pbtxt");
    try {
      ConfiguredOutputs("m.pt", std::move(own), is_complete, config);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TensorSpec ints = spec_of("OUTPUT__0");
  ints.datatype = DataType::kInt64;
  EXPECT_EQ(refused("TYPE_INT64", {ints}, true), "");
  EXPECT_EQ(refused("TYPE_STRING", {spec_of("OUTPUT__0")}, true), "");
  EXPECT_EQ(refused("TYPE_INT32", {}, false), "");
  EXPECT_THAT(refused("TYPE_INT32", {ints}, true), HasSubstr("'a' is of type INT32, but forward returns INT64"));
  for (const char* unsigned_type : {"TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64"}) {
    EXPECT_THAT(refused(unsigned_type, {spec_of("OUTPUT__0")}, true), HasSubstr("is not supported: no tensor has it"));
  }
}

TEST(ConfiguredOutputs, ATypeThatNobodyKnowsIsRefused) {
  ModelConfig::TensorConfig config;
  config.name = "a";
  for (const char* datatype : {"FP8", "fp32"}) {
    config.datatype = datatype;
    TensorSpec spec = spec_of("a");
    EXPECT_THAT(error_of([&] { apply_config(config, "m.pt", false, spec); }).what(),
                HasSubstr(concat("m.pt: data_type ", datatype, " of 'a' is not supported")));
  }
  config.datatype = "BYTES";
  TensorSpec spec = spec_of("b");
  apply_config(config, "m.pt", false, spec);
  EXPECT_EQ(spec.datatype, DataType::kBytes);
  EXPECT_TRUE(spec.answers_to("a") && spec.answers_to("b"));
}

TEST(ConfiguredOutputs, OnlyANumberAtTheEndOfANameIsAPlace) {
  for (const auto& [name, place] : std::vector<std::pair<std::string, size_t>>{{"x__1", 1},
                                                                               {"a__2__3", 3},
                                                                               {"x", 7},
                                                                               {"x__", 7},
                                                                               {"x__a", 7},
                                                                               {"x__1a", 7},
                                                                               {"x_1", 7},
                                                                               {"x5", 7},
                                                                               {"x__-1", 7},
                                                                               {"x__99999999999999999999", 7},
                                                                               {"__0", 0}}) {
    EXPECT_EQ(trailing_index(name, 7), place) << name;
  }
}

TEST(ConfiguredOutputs, ReshapeGivesClientsTheDims) {
  const ConfiguredOutputs single =
      configured(R"(output [ { name: "a" dims: [ 2, 3 ] reshape { shape: [ 6 ] } } ])", {"OUTPUT__0"});
  std::vector<InferTensor> results{result("OUTPUT__0", {6})};
  single.apply(results);
  EXPECT_EQ(results[0].shape, Dims({2, 3}));
  EXPECT_EQ(results[0].tensor.sizes(), Dims({2, 3}));
  // [ ] for the model, [ 1 ] for clients: the common way to configure a model that returns a number for each row.
  const ConfiguredOutputs rows =
      configured(R"(max_batch_size: 8 output [ { name: "a" dims: [ 1 ] reshape { shape: [ ] } } ])", {"OUTPUT__0"});
  results = {result("OUTPUT__0", {5})};
  rows.apply(results);
  EXPECT_EQ(results[0].shape, Dims({5, 1}));
  results = {result("OUTPUT__0", {5, 2})};
  EXPECT_THAT(error_of([&] { rows.apply(results); }).what(), HasSubstr("reshape of 'a': expected shape"));
  // Each open dimension is preserved.
  const ConfiguredOutputs open =
      configured(R"(output [ { name: "a" dims: [ -1, 4, -1 ] reshape { shape: [ -1, 2, 2, -1 ] } } ])", {"OUTPUT__0"});
  results = {result("OUTPUT__0", {3, 2, 2, 5})};
  open.apply(results);
  EXPECT_EQ(results[0].shape, Dims({3, 4, 5}));
}

TEST(ConfiguredOutputs, StatesAndWhatGenerationNeedsStay) {
  const std::string config = R"(
    max_batch_size: 8
    input [ { name: "tokens" } ]
    output [ { name: "token" } ]
    sequence_batching {
      iterative_sequence: true
      state [ { input_name: "hidden" output_name: "new_hidden" data_type: TYPE_FP32 dims: [ 2 ] } ]
    }
    parameters { key: "generation_input" value: { string_value: "tokens" } }
    parameters { key: "generation_output" value: { string_value: "token" } }
    parameters { key: "generation_end_output" value: { string_value: "done" } })";
  const ConfiguredOutputs outputs = configured(config, {"done", "other", "new_hidden", "token"});
  std::vector<std::string> names;
  for (const TensorSpec& spec : outputs.specs()) names.push_back(spec.name);
  EXPECT_THAT(names, ElementsAre("token", "new_hidden", "done"));
}

}  // namespace
}  // namespace tensord::server::configured_outputs_test
