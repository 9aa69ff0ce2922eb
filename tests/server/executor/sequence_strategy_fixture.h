#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

// A model that sums up each sequence's requests, in batches of two.
namespace tensord::server::sequence_strategy {

using fixtures::FakeModel;
using fixtures::FakeSink;
using fixtures::float_tensor;
using fixtures::signature_of;
using fixtures::values_of;
using Control = SequenceBatchingConfig::Control;
using ControlKind = SequenceBatchingConfig::ControlKind;
using State = SequenceBatchingConfig::State;
using Inputs = std::span<const InferTensor* const>;

// A run as the model saw it: the values of each input, and where the state was stored.
struct Seen {
  std::vector<std::vector<float>> inputs;
  const void* state = nullptr;
};

class SequenceStrategyTest : public ::testing::Test {
 protected:
  SequenceStrategyTest() {
    config.max_batch_size = 4;
    SequenceBatchingConfig sequences;
    sequences.strategy = SequenceBatchingConfig::Strategy::kOldest;
    sequences.oldest_max_candidate_sequences = 8;
    sequences.oldest_preferred_batch_sizes = {2};
    sequences.oldest_max_queue_delay_us = 60'000'000;  // batches of two, whatever the threads do
    State sum;
    sum.input_name = "sum_in";
    sum.output_name = "sum_out";
    sum.datatype = "FP32";
    sum.dims = {1};
    sequences.states = {sum};
    config.sequence_batching = sequences;
    signature = signature_of({"x", "sum_in"}, {"y", "sum_out"});
    signature.max_batch_size = 4;
  }

  SequenceBatchingConfig& sequences() { return *config.sequence_batching; }

  // y = sum of the sequence's requests so far; 13 is refused.
  void load() {
    load([this](Inputs inputs, const auto&) { return run(inputs); });
  }
  void load(fixtures::RunFn function) {
    auto model = std::make_unique<FakeModel>(signature, std::move(function));
    version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                             metrics.model("m", "1"));
  }

  RunResult run(Inputs inputs) {
    Seen seen;
    for (const InferTensor* input : inputs) seen.inputs.push_back(values_of(*input));
    seen.state = inputs[1]->tensor.raw_data();
    std::vector<float> sums = seen.inputs[1];
    for (size_t i = 0; i < sums.size(); ++i) {
      if (seen.inputs[0][i] == 13) fail(ErrorCode::kScriptRaised, "13 is refused");
      sums[i] += seen.inputs[0][i];
    }
    RunResult result;
    result.outputs.push_back(float_tensor("y", inputs[0]->shape, sums));
    result.outputs.push_back(float_tensor("sum_out", inputs[1]->shape, sums));
    runs.push_back(std::move(seen));
    outputs.push_back(result.outputs[1].tensor);
    return result;
  }

  void send(uint64_t sequence, float value, FakeSink& sink, bool is_start = false, bool is_end = false) {
    InferRequest request;
    request.inputs.push_back(float_tensor("x", {1, 1}, {value}));
    request.input_indices = {0};
    request.sequence.number = sequence;
    request.is_sequence_start = is_start;
    request.is_sequence_end = is_end;
    version->submit(std::move(request), sink);
  }

  static float answer(FakeSink& sink) {
    const InferResult& result = sink.wait();
    EXPECT_TRUE(result.status.ok()) << result.status;
    if (!result.status.ok() || result.outputs.size() != 1) return -1;
    EXPECT_EQ(result.outputs[0].name, "y");
    EXPECT_EQ(result.outputs[0].shape, (Dims{1, 1}));
    return values_of(result.outputs[0]).at(0);
  }

  Metrics metrics{"test"};
  ModelConfig config;
  Signature signature;
  std::vector<Seen> runs;       // written by the only worker; read when it has responded
  std::vector<Tensor> outputs;  // the returned states
  std::unique_ptr<ModelVersion> version;
};

using Floats = std::vector<float>;

}  // namespace tensord::server::sequence_strategy
