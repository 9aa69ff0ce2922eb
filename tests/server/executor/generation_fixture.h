#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::fixtures {

using Floats = std::vector<float>;
using Inputs = std::span<const InferTensor* const>;

// The model's next token after these tokens.
inline float next_token(const Floats& seen) {
  float sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) sum += seen[i] * static_cast<float>(i + 1);
  return std::fmod(sum, 97.0F);
}

inline Floats tokens_alone(Floats prompt, int64_t count) {
  Floats out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(next_token(prompt));
    prompt.push_back(out.back());
  }
  return out;
}

struct Seen {
  int64_t rows = 0, given = 0, past_length = 0;
  const void* past = nullptr;
};

class GenerationTest : public ::testing::Test {
 protected:
  GenerationTest() {
    config.max_batch_size = 8;
    config.is_decoupled = true;
    SequenceBatchingConfig sequences;
    sequences.is_iterative = true;
    SequenceBatchingConfig::State past;
    past.input_name = "past";
    past.output_name = "new_past";
    past.datatype = "FP32";
    past.dims = {-1};
    past.has_initial_state = true;
    past.initial_dims = {0};
    sequences.states = {past};
    config.sequence_batching = sequences;
    config.parameters = {{"generation_input", "tokens"},
                         {"generation_output", "next"},
                         {"generation_length_input", "length"},
                         {"generation_max_steps", "50"}};
    signature = signature_of({"tokens", "past", "length"}, {"next", "new_past"});
    signature.max_batch_size = 8;
    signature.inputs[0].shape = Dims{-1, -1};
  }

  void load() {
    auto model = std::make_unique<FakeModel>(signature, [this](Inputs inputs, const auto&) { return run(inputs); });
    version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                             metrics.model("m", "1"));
  }

  // Its state is all tokens so far; only the last `length` of them are used.
  RunResult run(Inputs inputs) {
    const int64_t rows = inputs[0]->shape[0], given = inputs[0]->shape[1], before = inputs[1]->shape[1];
    runs.push_back({.rows = rows, .given = given, .past_length = before, .past = inputs[1]->tensor.raw_data()});
    if (on_run) on_run(runs.size());
    const Floats tokens = values_of(*inputs[0]), past = values_of(*inputs[1]);
    const Floats lengths = inputs[2] != nullptr ? values_of(*inputs[2]) : Floats(static_cast<size_t>(rows), -1);
    Floats next, all;
    for (int64_t i = 0; i < rows; ++i) {
      Floats row(past.begin() + i * before, past.begin() + (i + 1) * before);
      row.insert(row.end(), tokens.begin() + i * given, tokens.begin() + (i + 1) * given);
      all.insert(all.end(), row.begin(), row.end());
      const auto length =
          lengths[static_cast<size_t>(i)] < 0 ? row.size() : static_cast<size_t>(lengths[static_cast<size_t>(i)]);
      next.push_back(next_token(Floats(row.end() - static_cast<ptrdiff_t>(length), row.end())));
      if (row.back() < 0) fail(ErrorCode::kScriptRaised, "a token below zero");
    }
    RunResult result;
    result.outputs.push_back(float_tensor("next", {rows, 1}, next));
    result.outputs.push_back(float_tensor("new_past", {rows, before + given}, all));
    pasts.push_back(result.outputs[1].tensor);
    return result;
  }

  void ask(const Floats& prompt, int64_t max_tokens, FakeSink& sink) {
    InferRequest request;
    request.inputs.push_back(float_tensor("tokens", {1, static_cast<int64_t>(prompt.size())}, prompt));
    request.input_indices = {0};
    if (max_tokens != 0) request.parameters["max_tokens"] = max_tokens;
    version->submit(std::move(request), sink);
  }

  static Floats tokens_of(FakeSink& sink) {
    sink.wait();
    Floats out;
    for (const InferResult& result : sink.results()) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      for (const InferTensor& output : result.outputs) {
        EXPECT_EQ(output.name, "next");
        for (const float token : values_of(output)) out.push_back(token);
      }
    }
    return out;
  }

  int64_t largest_batch() const {
    int64_t out = 0;
    for (const Seen& seen : runs) out = std::max(out, seen.rows);
    return out;
  }

  Metrics metrics{"test"};
  ModelConfig config;
  Signature signature;
  std::function<void(size_t run)> on_run;  // on the worker, when the model runs
  std::vector<Seen> runs;                  // written by the only worker; read when it has responded
  std::vector<Tensor> pasts;               // the returned states
  std::unique_ptr<ModelVersion> version;
};

}  // namespace tensord::server::fixtures
