// What the server fills in and keeps for sequence models: control inputs, ids, state, and which inputs are refused.
#include "server/executor/model/sequence_model.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::sequence_model_test {
namespace {

using fixtures::float_tensor;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Control = SequenceBatchingConfig::Control;
using ControlKind = SequenceBatchingConfig::ControlKind;

class SequenceModelTest : public ::testing::Test {
 protected:
  SequenceModelTest() {
    config.sequence_batching = SequenceBatchingConfig();
    signature = fixtures::signature_of({"x", "ID", "sum_in"}, {"y", "sum_out"});
    signature.max_batch_size = config.max_batch_size = 4;
  }

  SequenceBatchingConfig& sequences() { return *config.sequence_batching; }
  SequenceBatchingConfig::State& add_state(std::vector<int64_t> dims, const std::string& datatype = "FP32") {
    SequenceBatchingConfig::State state;
    state.input_name = "sum_in";
    state.output_name = "sum_out";
    state.datatype = datatype;
    state.dims = std::move(dims);
    sequences().states.push_back(state);
    return sequences().states.back();
  }
  SequenceModel model() const { return {"m", config, signature}; }
  void drop_batches() { signature.max_batch_size = config.max_batch_size = 0; }

  std::string id_refusal(const std::string& datatype, const CorrelationId& id) {
    sequences().controls = {Control{.name = "ID", .kind = ControlKind::kCorrelationId, .datatype = datatype}};
    try {
      model().check_correlation_id(id);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  }

  ModelConfig config;
  Signature signature;
  uint64_t copied_bytes = 0;
};

TEST_F(SequenceModelTest, IdsMustFitIntoTheirControl) {
  struct Case {
    std::string datatype;
    uint64_t largest;
  };
  for (const Case& c : {Case{"INT32", INT32_MAX}, Case{"UINT32", UINT32_MAX}, Case{"INT64", INT64_MAX}}) {
    EXPECT_EQ(id_refusal(c.datatype, {.number = c.largest, .text = ""}), "") << c.datatype;
    EXPECT_THAT(id_refusal(c.datatype, {.number = c.largest + 1, .text = ""}),
                HasSubstr("does not fit into data_type " + c.datatype));
    EXPECT_THAT(id_refusal(c.datatype, {.number = 0, .text = "a"}), HasSubstr("data-type is 'BYTES', but"));
  }
  EXPECT_EQ(id_refusal("UINT64", {.number = UINT64_MAX, .text = ""}), "");
  EXPECT_EQ(id_refusal("BYTES", {.number = 0, .text = "a"}), "");
  EXPECT_THAT(id_refusal("BYTES", {.number = 7, .text = ""}), HasSubstr("data-type is 'UINT64', but"));
  // Other controls accept any id.
  sequences().controls = {Control{.name = "ID", .kind = ControlKind::kStart, .datatype = "INT32"}};
  EXPECT_NO_THROW(model().check_correlation_id({.number = UINT64_MAX, .text = ""}));
}

TEST_F(SequenceModelTest, ControlsAreFilledForEachRow) {
  sequences().controls = {
      Control{.name = "ID", .kind = ControlKind::kCorrelationId, .datatype = "INT32"},
      Control{.name = "x", .kind = ControlKind::kStart, .datatype = "FP32", .off = -1, .on = 0.5},
      Control{.name = "sum_in", .kind = ControlKind::kEnd, .datatype = "BOOL"},
  };
  const CorrelationId id{.number = 7, .text = ""};
  const SequenceModel::RowControls rows[] = {{.sequence = &id, .is_start = true, .is_end = false, .is_ready = true},
                                             {},
                                             {.sequence = &id, .is_start = false, .is_end = true, .is_ready = true}};
  std::vector<InferTensor> inputs;
  std::vector<size_t> indices;
  model().add_controls(rows, inputs, indices);
  EXPECT_THAT(indices, ElementsAre(1, 0, 2));
  ASSERT_EQ(inputs.size(), 3);
  for (const InferTensor& input : inputs) EXPECT_EQ(input.shape, (Dims{3, 1}));
  EXPECT_THAT(values_of(inputs[0]), ElementsAre(7, 0, 7));
  EXPECT_THAT(values_of(inputs[1]), ElementsAre(0.5, -1, -1));
  EXPECT_THAT(values_of(inputs[2]), ElementsAre(0, 0, 1));
  drop_batches();
  inputs.clear();
  model().add_controls(std::span(rows).first(1), inputs, indices);
  for (const InferTensor& input : inputs) EXPECT_EQ(input.shape, (Dims{1}));
}

TEST_F(SequenceModelTest, IdsAsTexts) {
  sequences().controls = {Control{.name = "ID", .kind = ControlKind::kCorrelationId, .datatype = "BYTES"}};
  const CorrelationId text{.number = 0, .text = "alpha"}, number{.number = 7, .text = ""};
  const SequenceModel::RowControls rows[] = {{.sequence = &text}, {}, {.sequence = &number}};
  std::vector<InferTensor> inputs;
  std::vector<size_t> indices;
  model().add_controls(rows, inputs, indices);
  EXPECT_THAT(std::vector<std::string>(inputs[0].strings.begin(), inputs[0].strings.end()),
              ElementsAre("alpha", "", "7"));
}

TEST_F(SequenceModelTest, OnlyAReadyControlTellsRowsApart) {
  for (const ControlKind kind : {ControlKind::kStart, ControlKind::kEnd, ControlKind::kCorrelationId}) {
    sequences().controls = {Control{.name = "ID", .kind = kind, .datatype = "INT32"}};
    EXPECT_FALSE(model().has_ready_control());
  }
  sequences().controls.push_back(Control{.name = "x", .kind = ControlKind::kReady, .datatype = "INT32"});
  EXPECT_TRUE(model().has_ready_control());
}

TEST_F(SequenceModelTest, RequestsSeeNoneOfTheServersTensors) {
  sequences().controls = {Control{.name = "ID", .kind = ControlKind::kStart, .datatype = "INT32"}};
  add_state({1});
  const SequenceModel hidden = model();
  ASSERT_EQ(hidden.request_signature().inputs.size(), 1);
  EXPECT_EQ(hidden.request_signature().inputs[0].name, "x");
  ASSERT_EQ(hidden.request_signature().outputs.size(), 1);
  EXPECT_EQ(hidden.model_input(0), 0);
  EXPECT_FALSE(hidden.states()[0].is_sent);
  ModelConfig::TensorConfig listed;
  listed.name = "sum_out";
  config.outputs = {listed};
  EXPECT_EQ(model().request_signature().outputs.size(), 2);
  EXPECT_TRUE(model().states()[0].is_sent);
  EXPECT_TRUE(server_tensors(config).outputs.empty());
  config.outputs.clear();
  EXPECT_EQ(server_tensors(config).outputs.size(), 1);
  config.sequence_batching.reset();
  EXPECT_EQ(request_signature(signature, config).inputs.size(), 3);
  EXPECT_EQ(request_signature(signature, config).outputs.size(), 2);
  EXPECT_TRUE(server_tensors(config).inputs.empty());
}

TEST_F(SequenceModelTest, WhatTheModelDoesNotHaveIsRefused) {
  sequences().controls = {Control{.name = "GONE", .kind = ControlKind::kStart, .datatype = "INT32"}};
  EXPECT_THAT(error_of([&] { model(); }).what(), HasSubstr("has no input 'GONE', which config.pbtxt names"));
  sequences().controls = {Control{.name = "ID", .kind = ControlKind::kStart, .datatype = "INT3"}};
  EXPECT_THAT(error_of([&] { model(); }).what(), HasSubstr("control_input 'ID': data_type INT3 is not supported"));
  sequences().controls.clear();
  for (const char* datatype : {"UINT64", "BYTES", "FP3"}) {
    sequences().states.clear();
    add_state({1}, datatype);
    EXPECT_THAT(error_of([&] { model(); }).what(), HasSubstr("is not supported: no tensor has it")) << datatype;
  }
}

TEST_F(SequenceModelTest, InitialStateIsZerosOfTheSizesThatAreKnown) {
  add_state({2, -1});
  const SequenceModel batches = model();
  EXPECT_EQ(batches.states()[0].dims, (Dims{1, 2, -1}));
  const Tensor initial = batches.initial_state().at(0);
  EXPECT_EQ(initial.sizes(), (Dims{1, 2, 1}));
  EXPECT_FALSE(initial.storage()->is_writable());
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(initial.data<float>()[i], 0);
  sequences().states[0].has_initial_state = true;
  sequences().states[0].initial_dims = {2, 0};
  EXPECT_EQ(model().initial_state().at(0).sizes(), (Dims{1, 2, 0}));
  drop_batches();
  EXPECT_EQ(model().initial_state().at(0).sizes(), (Dims{2, 0}));
  EXPECT_EQ(model().states()[0].dims, (Dims{2, -1}));
}

TEST_F(SequenceModelTest, AFileOfInitialStateHasItsSizeExactly) {
  const fixtures::TemporaryFolder folder("initial_state");
  SequenceBatchingConfig::State& state = add_state({2});
  state.has_initial_state = true;
  state.initial_is_zero = false;
  state.initial_dims = {2};
  state.initial_file = (folder.path() / "state").string();
  EXPECT_THAT(error_of([&] { model(); }).what(), HasSubstr("cannot be read"));
  const float values[] = {3, 4, 5};
  for (const size_t size : {size_t{4}, size_t{7}, size_t{9}, size_t{12}, size_t{8}}) {
    std::ofstream(state.initial_file, std::ios::binary)
        .write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(size));
    if (size == 8) break;
    EXPECT_THAT(error_of([&] { model(); }).what(), HasSubstr(concat(" has ", size, " bytes, expected 8")));
  }
  EXPECT_EQ(model().initial_state().at(0).data<float>()[1], 4);
}

TEST_F(SequenceModelTest, StateOfAnotherKindIsRefused) {
  add_state({2, -1});
  const SequenceModel batches = model();
  const auto take = [&](InferTensor state, size_t rows) {
    state.name = "sum_out";
    std::vector<InferTensor> outputs = {float_tensor("y", {1}, {1}), std::move(state)};
    const std::vector<Tensor> states = batches.take_states(outputs, rows, {}, &copied_bytes);
    EXPECT_EQ(outputs.size(), 1);  // not visible to requests
    return states.at(0);
  };
  EXPECT_EQ(take(float_tensor("", {3, 2, 5}, std::vector<float>(30)), 3).sizes(), (Dims{3, 2, 5}));
  EXPECT_EQ(take(float_tensor("", {3, 2, 0}, {}), 3).sizes(), (Dims{3, 2, 0}));
  InferTensor texts, doubles = float_tensor("", {3, 2, 5}, std::vector<float>(30));
  texts.datatype = DataType::kBytes;
  doubles.tensor = doubles.tensor.to(DType::kFloat64);
  for (const InferTensor& wrong :
       {float_tensor("", {2, 2, 5}, std::vector<float>(20)), float_tensor("", {3, 1, 5}, std::vector<float>(15)),
        float_tensor("", {3, 2}, std::vector<float>(6)), float_tensor("", {3, 2, 5, 1}, std::vector<float>(30)), texts,
        doubles}) {
    const Error error = error_of([&] { take(wrong, 3); });
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("expected float32 [3, 2, -1]"));
  }
  std::vector<InferTensor> none = {float_tensor("y", {1}, {1})};
  EXPECT_THAT(error_of([&] { batches.take_states(none, 3, {}, &copied_bytes); }).what(),
              HasSubstr("did not return state 'sum_out'"));
}

TEST_F(SequenceModelTest, WithoutBatchesTheFirstSizeIsTheStates) {
  drop_batches();
  add_state({2});
  const SequenceModel single = model();
  std::vector<InferTensor> good = {float_tensor("sum_out", {2}, {1, 2})};
  EXPECT_EQ(single.take_states(good, 1, {}, &copied_bytes).at(0).sizes(), (Dims{2}));
  std::vector<InferTensor> bad = {float_tensor("sum_out", {1}, {1})};
  EXPECT_THAT(error_of([&] { single.take_states(bad, 1, {}, &copied_bytes); }).what(),
              HasSubstr("expected float32 [2]"));
}

// The output for the state 'sum_out' with and without its input among the run's, beside outputs that share memory with
// it and outputs that do not.
class OwnStates : public SequenceModelTest {
 protected:
  void SetUp() override {
    SequenceModelTest::SetUp();
    add_state({1});
    inputs = {float_tensor("sum_in", {1, 1}, {1}), float_tensor("x", {1, 1}, {1})};
    inputs[0].is_own = true;
  }
  Tensor take(bool is_written, InferTensor state) {
    signature.inputs[model().states()[0].input].is_written = is_written;
    state.name = "sum_out";
    InferTensor same = state, apart = float_tensor("z", {1, 1}, {2}), texts;
    same.name = "y";
    texts.datatype = DataType::kBytes;
    apart_data = apart.tensor.raw_data();
    outputs = {same, apart, texts, state};
    copied_bytes = 0;
    return model().take_states(outputs, 1, inputs, &copied_bytes).at(0);
  }

  std::vector<InferTensor> inputs, outputs;
  const void* apart_data = nullptr;
};

TEST_F(OwnStates, StayWhereTheyAreWhenNoRunWritesToThem) {
  const InferTensor state = float_tensor("", {1, 1}, {1});
  EXPECT_EQ(take(false, state).raw_data(), state.tensor.raw_data());
  EXPECT_EQ(outputs[0].tensor.raw_data(), state.tensor.raw_data());
  EXPECT_EQ(copied_bytes, 0);
}

TEST_F(OwnStates, StayWhereTheyWereAndAnswersLeave) {
  EXPECT_EQ(take(true, inputs[0]).raw_data(), inputs[0].tensor.raw_data());
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_NE(outputs[0].tensor.raw_data(), inputs[0].tensor.raw_data());
  EXPECT_EQ(outputs[1].tensor.raw_data(), apart_data);
  EXPECT_EQ(copied_bytes, sizeof(float));
}

// A weight, or another request's input.
TEST_F(OwnStates, AreCopiedFromMemoryThatOthersMayHave) {
  for (const InferTensor& state : {float_tensor("", {1, 1}, {1}), inputs[1]}) {
    EXPECT_NE(take(true, state).raw_data(), state.tensor.raw_data());
    EXPECT_EQ(outputs[0].tensor.raw_data(), state.tensor.raw_data());
    EXPECT_EQ(copied_bytes, sizeof(float));
  }
}

}  // namespace
}  // namespace tensord::server::sequence_model_test
