// One step of a generating model, without threads: which rows share it, what the model gets, when a row ends.
#include "server/executor/strategies/generation_step.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::generation_step_test {
namespace {

using fixtures::float_tensor;
using fixtures::signature_of;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Inputs = std::span<const InferTensor* const>;

class GenerationStepTest : public ::testing::Test {
 protected:
  GenerationStepTest() {
    config.max_batch_size = signature.max_batch_size = 4;
    config.sequence_batching = SequenceBatchingConfig();
    config.sequence_batching->is_iterative = true;
    config.parameters = {{"generation_input", "tokens"}, {"generation_output", "next"}};
  }

  void add_state(std::vector<int64_t> dims) {
    SequenceBatchingConfig::State state;
    state.input_name = "past";
    state.output_name = "new_past";
    state.datatype = "FP32";
    state.dims = std::move(dims);
    config.sequence_batching->states = {state};
  }
  void pad() { config.parameters["generation_length_input"] = "length"; }
  void drop_batches() { config.max_batch_size = signature.max_batch_size = 0; }

  std::string refusal() {
    try {
      GenerationStep("m", config, signature);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  }

  // A row with these tokens after `steps` steps.
  static GenerationRow row_with(InferTensor tokens, int64_t max_steps = 5, int64_t steps = 0) {
    GenerationRow row;
    row.inputs = {std::move(tokens)};
    row.input_indices = {0};
    row.max_steps = max_steps;
    row.steps = steps;
    return row;
  }
  static GenerationRow row_with(const Dims& shape, int64_t steps = 0) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return row_with(float_tensor("tokens", shape, Floats(static_cast<size_t>(count), 1)), 5, steps);
  }
  // Runs a step of one row whose model returns these outputs.
  void run(GenerationRow& row, std::vector<InferTensor> outputs) {
    const GenerationStep step("m", config, signature);
    GenerationRow* rows[] = {&row};
    step.run(rows, [&](Inputs inputs) {
      for (const InferTensor* input : inputs) seen.push_back(input ? *input : InferTensor());
      RunResult result;
      result.outputs = std::move(outputs);
      return result;
    });
  }

  ModelConfig config;
  Signature signature = signature_of({"tokens", "past", "length"}, {"next", "new_past"});
  std::vector<InferTensor> seen;
};

TEST_F(GenerationStepTest, ConfigurationsThatCannotBe) {
  EXPECT_EQ(refusal(), "");
  signature.inputs[0].is_optional = true;
  EXPECT_THAT(refusal(), HasSubstr("'tokens' must be a tensor that every request has"));
  signature.inputs[0].is_optional = false;
  signature.inputs[0].takes_bytes = true;
  EXPECT_THAT(refusal(), HasSubstr("'tokens' must be a tensor that every request has"));
  signature.inputs[0].takes_bytes = false;
  add_state({-1, -1});
  EXPECT_EQ(refusal(), "");
  pad();
  EXPECT_THAT(refusal(), HasSubstr("sequence_batching.state 'past': only one dim may be -1 with"));
  add_state({-1, 2});
  EXPECT_EQ(refusal(), "");
  config.parameters["generation_length_input"] = "gone";
  EXPECT_THAT(refusal(), HasSubstr("has no input 'gone'"));
  signature.keeps_state = true;
  EXPECT_THAT(refusal(), HasSubstr("the model keeps state in itself"));
}

TEST_F(GenerationStepTest, ParametersThatCannotBe) {
  using Parameters = std::map<std::string, std::string>;
  for (const auto& [parameters, message] : std::vector<std::pair<Parameters, std::string>>{
           {{{"generation_input", "tokens"}}, "generation_input and generation_output need each other"},
           {{{"generation_output", "next"}}, "generation_input and generation_output need each other"},
           {{{"generation_end_token", "1"}}, "generation_end_token needs generation_output"},
           {{{"generation_length_input", "length"}}, "generation_length_input needs generation_input"},
           {{{"generation_end_output", ""}}, "parameter generation_end_output is empty"},
           {{{"generation_max_steps", "0"}}, "must be a whole number of at least 1, got '0'"},
           {{{"generation_max_steps", "5x"}}, "must be a whole number of at least 1, got '5x'"},
           {{{"generation_max_steps", "x"}}, "must be a whole number of at least 1, got 'x'"},
           {{{"generation_speed", "5"}}, "generation_speed is not known"}}) {
    config.parameters = parameters;
    EXPECT_THAT(error_of([&] { generation_options(config); }).what(), HasSubstr(message));
  }
  config.parameters = {{"generation_max_steps", "1"}, {"other", ""}};
  EXPECT_EQ(generation_options(config).max_steps, 1);
  config.sequence_batching->is_iterative = false;
  EXPECT_THAT(error_of([&] { generation_options(config); }).what(),
              HasSubstr("needs sequence_batching.iterative_sequ"));
  config.sequence_batching.reset();
  EXPECT_THAT(error_of([&] { generation_options(config); }).what(),
              HasSubstr("needs sequence_batching.iterative_sequ"));
}

TEST_F(GenerationStepTest, SettingsWithoutAUseAreNamedOneByOne) {
  const SequenceBatchingConfig plain;
  using Change = void (*)(SequenceBatchingConfig&);
  for (const auto& [change, name] : std::vector<std::pair<Change, std::string>>{
           {[](SequenceBatchingConfig& it) { it.max_sequence_idle_us = 5; }, "max_sequence_idle_microseconds"},
           {[](SequenceBatchingConfig& it) { it.direct_max_queue_delay_us = 5; },
            "direct.max_queue_delay_microseconds"},
           {[](SequenceBatchingConfig& it) { it.direct_minimum_slot_utilization = 0.5F; },
            "direct.minimum_slot_utilization"},
           {[](SequenceBatchingConfig& it) { it.oldest_preferred_batch_sizes = {4}; }, "oldest.preferred_batch_size"},
           {[](SequenceBatchingConfig& it) { it.oldest_max_queue_delay_us = 5; },
            "oldest.max_queue_delay_microseconds"},
           {[](SequenceBatchingConfig& it) { it.oldest_preserves_ordering = true; }, "oldest.preserve_ordering"},
           {[](SequenceBatchingConfig&) {}, ""}}) {
    SequenceBatchingConfig changed = plain;
    change(changed);
    EXPECT_EQ(unused_settings(changed), name);
  }
}

// Rows are grouped by their keys: a different size in any dimension that is not padded gives a different key.
TEST_F(GenerationStepTest, OnlyRowsThatFitShareAStep) {
  const GenerationStep plain("m", config, signature);
  std::set<std::string> keys;
  const std::vector<Dims> shapes = {{1, 2}, {1, 3}, {1}, {1, 2, 5}, {1, 3, 4}, {1, 2, 4}, {1, 2, 4, 1}};
  for (const Dims& shape : shapes) keys.insert(plain.key(row_with(shape)));
  EXPECT_EQ(keys.size(), shapes.size());
  pad();
  const GenerationStep padded("m", config, signature);
  const auto key = [&](const Dims& shape) { return padded.key(row_with(shape)); };
  EXPECT_EQ(key({1, 2}), key({1, 3}));
  EXPECT_EQ(key({1, 2, 4}), key({1, 3, 4}));
  EXPECT_NE(key({1, 2, 5}), key({1, 3, 4}));
  EXPECT_NE(key({1, 2}), key({1, 2, 1}));
  EXPECT_NE(key({1}), key({1, 1}));
  EXPECT_NE(key({1, 2}), padded.key(row_with(Dims{1, 2}, /*steps=*/1)));
  GenerationRow doubles = row_with({1, 2});
  doubles.inputs[0].datatype = DataType::kFp64;
  EXPECT_NE(key({1, 2}), padded.key(doubles));
  GenerationRow without = row_with({1, 2});
  without.inputs.clear();
  without.input_indices.clear();
  EXPECT_NE(key({1, 2}), padded.key(without));
}

// Only inputs that are fed back are padded.
TEST_F(GenerationStepTest, OtherInputsShareAStepInEqualSizes) {
  signature = signature_of({"tokens", "image", "length"}, {"next"});
  signature.max_batch_size = 4;
  pad();
  const GenerationStep step("m", config, signature);
  const auto key = [&](const Dims& image) {
    GenerationRow row = row_with({1, 2});
    row.inputs.push_back(float_tensor("image", image, {}));
    row.input_indices.push_back(1);
    return step.key(row);
  };
  EXPECT_EQ(key({1, 3}), key({1, 3}));
  EXPECT_NE(key({1, 3}), key({1, 4}));
}

// A state longer than the used positions is cut, also in a row without a batch dimension.
TEST_F(GenerationStepTest, AStateThatIsLongerThanWhatCountsIsCut) {
  drop_batches();
  add_state({-1});
  pad();
  GenerationRow row = row_with(Dims{2});
  row.length = 1;
  row.state = {float_tensor("", {3}, {1, 2, 3}).tensor};
  run(row, {float_tensor("next", {1}, {7}), float_tensor("new_past", {3}, {1, 2, 3})});
  EXPECT_THAT(values_of(seen.at(1)), ElementsAre(3));
}

TEST_F(GenerationStepTest, TextsEndNoRow) {
  config.parameters["generation_end_output"] = "end";
  InferTensor texts;
  texts.name = "end";
  texts.datatype = DataType::kBytes;
  texts.shape = {1, 1};
  texts.strings = {"done"};
  GenerationRow row = row_with({1, 1});
  run(row, {float_tensor("next", {1, 1}, {7}), texts});
  EXPECT_FALSE(row.is_done);
}

TEST_F(GenerationStepTest, StatesOfOtherSizesRunApartWithoutLengths) {
  add_state({-1, 2});
  GenerationRow a = row_with({1, 1}, 1), b = a;
  a.state = {float_tensor("", {1, 3, 2}, Floats(6)).tensor};
  b.state = {float_tensor("", {1, 4, 2}, Floats(8)).tensor};
  const GenerationStep plain("m", config, signature);
  EXPECT_NE(plain.key(a), plain.key(b));
  pad();
  const GenerationStep padded("m", config, signature);
  EXPECT_EQ(padded.key(a), padded.key(b));
}

TEST_F(GenerationStepTest, TheLengthsCountThePositionsOfThisStepToo) {
  pad();
  const GenerationStep step("m", config, signature);
  GenerationRow a = row_with({1, 3}), b = row_with({1, 1});
  a.length = 2;
  GenerationRow* rows[] = {&a, &b};
  step.run(rows, [&](Inputs inputs) {
    EXPECT_THAT(values_of(*inputs[2]), ElementsAre(5, 1));
    EXPECT_EQ(inputs[2]->shape, (Dims{2, 1}));
    EXPECT_EQ(inputs[0]->shape, (Dims{2, 3}));
    RunResult result;
    result.outputs = {float_tensor("next", {2, 1}, {7, 8})};
    return result;
  });
  EXPECT_EQ(a.length, 5);
  EXPECT_EQ(b.length, 1);
  EXPECT_THAT(values_of(b.inputs[0]), ElementsAre(8));
  EXPECT_EQ(b.inputs[0].name, "tokens");
}

TEST_F(GenerationStepTest, WithoutBatchesAndWithoutFeedback) {
  drop_batches();
  pad();
  GenerationRow row = row_with(Dims{3});
  run(row, {float_tensor("next", {1}, {7})});
  EXPECT_EQ(row.length, 3);
  EXPECT_EQ(seen[2].shape, (Dims{1}));
  EXPECT_THAT(values_of(seen[2]), ElementsAre(3));
  config.parameters.erase("generation_length_input");
  GenerationRow scalar = row_with(Dims{});
  run(scalar, {float_tensor("next", {}, {7})});
  EXPECT_EQ(scalar.length, 1);
  config.parameters.clear();
  GenerationRow same = row_with(Dims{3});
  run(same, {float_tensor("next", {1}, {7})});
  EXPECT_EQ(same.length, 1);
  EXPECT_EQ(same.inputs[0].shape, (Dims{3}));  // the request's again
}

TEST_F(GenerationStepTest, WhatIsFedBackMustFit) {
  signature.inputs[0].datatype = DataType::kFp32;
  signature.inputs[0].shape = Dims{-1, -1};
  GenerationRow row = row_with({1, 3});
  run(row, {float_tensor("next", {1}, {7})});  // without a dimension of its own
  EXPECT_EQ(row.inputs[0].shape, (Dims{1, 1}));
  EXPECT_EQ(row.inputs[0].tensor.sizes(), (Dims{1, 1}));
  run(row, {float_tensor("next", {1, 2}, {7, 8})});
  EXPECT_EQ(row.inputs[0].shape, (Dims{1, 2}));
  EXPECT_EQ(row.steps, 2);
  InferTensor doubles = float_tensor("next", {1, 1}, {7}), texts;
  doubles.datatype = DataType::kFp64;
  texts.name = "next";
  texts.datatype = DataType::kBytes;
  const auto error = [&](std::vector<InferTensor> outputs) { return error_of([&] { run(row, std::move(outputs)); }); };
  EXPECT_THAT(error({doubles}).what(),
              HasSubstr("has data-type FP64, but input 'tokens' that it is fed back to has F"));
  signature.inputs[0].datatype.reset();
  EXPECT_THAT(error({texts}).what(), HasSubstr("cannot be fed back: it is BYTES"));
  EXPECT_EQ(error({float_tensor("other", {1, 1}, {7})}).code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error({float_tensor("next", {2, 1}, {7, 8})}).what(), HasSubstr("its first dimension should be that of"));
  EXPECT_EQ(row.steps, 2);  // unchanged
  EXPECT_EQ(row.inputs[0].shape, (Dims{1, 2}));
}

// The tensor is also being sent to the client: the model must not write to it, nor to tensors that later steps get
// again.
TEST_F(GenerationStepTest, WhatIsReadAgainIsNotTheModelsOwn) {
  GenerationRow row = row_with({1, 3});
  row.inputs[0].is_own = true;
  bool is_own = false;
  const auto look = [&](Inputs inputs) {
    is_own = is_own || inputs[0]->is_own;
    RunResult result;
    result.outputs = {float_tensor("next", {1, 1}, {7})};
    result.outputs[0].is_own = true;
    return result;
  };
  GenerationRow* const rows[] = {&row};
  const GenerationStep step("m", config, signature);
  for (int i = 0; i < 2; ++i) step.run(rows, look);
  EXPECT_FALSE(is_own);
  EXPECT_EQ(row.inputs[0].tensor.raw_data(), row.outputs[0].tensor.raw_data());
}

TEST_F(GenerationStepTest, WhatEveryStepGetsLiesInTheBatchFromThenOn) {
  config.parameters.clear();
  const GenerationStep step("m", config, signature);
  GenerationRow a = row_with({1, 3}), b = row_with({1, 3});
  GenerationRow* rows[] = {&a, &b};
  const auto nothing = [](Inputs) {
    RunResult result;
    result.outputs = {float_tensor("next", {2, 1}, {7, 8})};
    return result;
  };
  EXPECT_EQ(step.run(rows, nothing), 24);
  EXPECT_EQ(step.run(rows, nothing), 0);
}

TEST_F(GenerationStepTest, WhatEndsARow) {
  struct Case {
    std::string end_output, end_token;
    Floats next, end;
    int64_t max_steps;
    bool is_done;
  };
  for (const Case& c :
       {Case{"", "", {7}, {}, 2, false}, Case{"", "", {7}, {}, 1, true}, Case{"", "7", {7}, {}, 5, true},
        Case{"", "7", {6}, {}, 5, false}, Case{"", "7", {7, 6}, {}, 5, false}, Case{"", "7", {6, 7}, {}, 5, true},
        Case{"", "7", {}, {}, 5, false}, Case{"end", "", {7}, {0, 0}, 5, false}, Case{"end", "", {7}, {1, 0}, 5, true},
        Case{"end", "", {7}, {0, -0.5F}, 5, true}, Case{"end", "", {7}, {}, 5, false},
        Case{"end", "7", {7}, {0}, 5, true}}) {
    config.parameters = {{"generation_input", "tokens"}, {"generation_output", "next"}};
    if (!c.end_output.empty()) config.parameters["generation_end_output"] = c.end_output;
    if (!c.end_token.empty()) config.parameters["generation_end_token"] = c.end_token;
    GenerationRow row = row_with(float_tensor("tokens", {1, 1}, {1}), c.max_steps);
    const auto size = [](const Floats& values) { return static_cast<int64_t>(values.size()); };
    run(row, {float_tensor("next", {1, size(c.next)}, c.next), float_tensor("end", {1, size(c.end)}, c.end)});
    EXPECT_EQ(row.is_done, c.is_done) << ::testing::PrintToString(c.next) << ::testing::PrintToString(c.end);
  }
  config.parameters["generation_end_output"] = "gone";
  GenerationRow row = row_with({1, 1});
  EXPECT_THAT(error_of([&] {
                run(row, {float_tensor("next", {1, 1}, {7})});
              }).what(),
              HasSubstr("model 'm' did not return output 'gone'"));
}

}  // namespace
}  // namespace tensord::server::generation_step_test
