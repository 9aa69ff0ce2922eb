// Requests that a model processes step by step: when they join the running batch, and that this is invisible to
// clients.
#include <gmock/gmock.h>

#include <atomic>

#include "server/executor/model/generation_options.h"
#include "tests/server/executor/generation_fixture.h"

namespace tensord::server::generation_test {
namespace {

using fixtures::FakeModel;
using fixtures::FakeSink;
using fixtures::float_tensor;
using fixtures::Floats;
using fixtures::GenerationTest;
using fixtures::Inputs;
using fixtures::Seen;
using fixtures::signature_of;
using fixtures::tokens_alone;
using fixtures::values_of;

TEST_F(GenerationTest, TokensAreThoseOfAPromptAlone) {
  FakeSink sinks[6];
  const std::vector<Floats> prompts = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9}, {1, 1}, {2, 4, 6}, {9}};
  on_run = [&](size_t run) {
    if (run != 1) return;  // all the others are queued when the first step of the first one ends
    for (size_t i = 1; i < prompts.size(); ++i) ask(prompts[i], static_cast<int64_t>(3 + 2 * i), sinks[i]);
  };
  load();
  ask(prompts[0], 9, sinks[0]);
  EXPECT_EQ(tokens_of(sinks[0]), tokens_alone(prompts[0], 9));
  for (size_t i = 1; i < prompts.size(); ++i) {
    const auto count = static_cast<int64_t>(3 + 2 * i);
    EXPECT_EQ(tokens_of(sinks[i]), tokens_alone(prompts[i], count)) << i;
    EXPECT_EQ(sinks[i].results().size(), count);
    EXPECT_EQ(sinks[i].finals(), 1);
  }
  EXPECT_EQ(largest_batch(), 6);
  // Prompts of different lengths share one run.
  EXPECT_EQ(runs[2].rows, 5);
  EXPECT_EQ(runs[2].given, 5);
}

// A client's quota, shared by the sinks of all requests.
struct Quota {
  explicit Quota(uint64_t room) : max_bytes(room) {}
  void count_in(FakeSink& sink) {
    sink.hold = [this](uint64_t bytes) -> std::shared_ptr<const void> {
      if (held + bytes > max_bytes) fail(ErrorCode::kResourceExhausted, "no room for ", bytes, " bytes");
      held += bytes;
      most = std::max(most.load(), held.load());
      return std::shared_ptr<const void>(&held, [this, bytes](const void*) { held -= bytes; });
    };
  }
  const uint64_t max_bytes;
  std::atomic<uint64_t> held{0}, most{0};
};

// The state is four bytes a token.
TEST_F(GenerationTest, WhatARowKeepsIsHeldAtItsClientsExpense) {
  Quota quota(1 << 20);
  FakeSink sink;
  quota.count_in(sink);
  std::vector<uint64_t> held;
  on_run = [&](size_t) { held.push_back(quota.held); };
  load();
  ask(Floats(10'000, 1), 3, sink);
  EXPECT_EQ(tokens_of(sink), tokens_alone(Floats(10'000, 1), 3));
  EXPECT_EQ(quota.held, 0u);  // released before the response
  // The second step's additional four bytes are reserved as a page.
  EXPECT_EQ(held, (std::vector<uint64_t>{0, 40'000, 44'096}));
}

TEST_F(GenerationTest, ARowWithoutRoomEndsAloneAndGivesUpWhatItHas) {
  Quota quota(50'000);
  FakeSink large, small;
  quota.count_in(large);
  quota.count_in(small);
  on_run = [&](size_t run) {
    if (run == 1) ask({1, 2, 3}, 6, small);
  };
  load();
  ask(Floats(20'000, 1), 6, large);
  EXPECT_EQ(large.wait().status.code(), absl::StatusCode::kResourceExhausted) << large.wait().status;
  EXPECT_THAT(large.wait().status.message(), ::testing::HasSubstr("no room for 80000 bytes"));
  EXPECT_EQ(tokens_of(small), tokens_alone({1, 2, 3}, 6));
  EXPECT_EQ(quota.held, 0u);
}

// A single response has all tokens, which are kept until then.
TEST_F(GenerationTest, TokensOfOneResponseAreHeldToo) {
  config.is_decoupled = false;
  config.sequence_batching->states[0].dims = {4};
  config.sequence_batching->states[0].initial_dims = {4};
  config.parameters.erase("generation_length_input");
  signature = signature_of({"tokens", "past"}, {"next", "new_past"});
  signature.max_batch_size = 8;
  signature.inputs[0].shape = Dims{-1, -1};
  Quota quota(1 << 20);
  FakeSink sink;
  quota.count_in(sink);
  auto model = std::make_unique<FakeModel>(signature, [](Inputs, const auto&) {
    RunResult result;
    result.outputs.push_back(float_tensor("next", {1, 3000}, Floats(3000, 1)));
    result.outputs.push_back(float_tensor("new_past", {1, 4}, Floats(4, 1)));
    return result;
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  ask({1}, 4, sink);
  EXPECT_TRUE(sink.wait().status.ok()) << sink.wait().status;
  EXPECT_EQ(quota.most, 48'000u);
  EXPECT_EQ(quota.held, 0u);
}

// Workers also poll about every second; requests must not depend on that.
TEST_F(GenerationTest, EveryRequestWakesAWorker) {
  load();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kRequests = 50;
  for (int i = 0; i < kRequests; ++i) {
    FakeSink sink;
    ask({1, 2}, 1, sink);
    EXPECT_EQ(tokens_of(sink), tokens_alone({1, 2}, 1));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kRequests / 2));
}

TEST_F(GenerationTest, RowsJoinAndLeaveBetweenSteps) {
  FakeSink first, second;
  on_run = [&](size_t run) {
    if (run == 3) ask({7, 8}, 4, second);
  };
  load();
  ask({1, 2, 3}, 6, first);
  EXPECT_EQ(tokens_of(first), tokens_alone({1, 2, 3}, 6));
  EXPECT_EQ(tokens_of(second), tokens_alone({7, 8}, 4));
  std::vector<int64_t> rows;
  for (const Seen& seen : runs) rows.push_back(seen.rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 1, 1, 1, 1, 2, 2, 1}));
  // Nothing is copied while the same rows continue.
  EXPECT_EQ(runs[2].past, pasts[1].raw_data());
  EXPECT_NE(runs[5].past, pasts[4].raw_data());
  EXPECT_EQ(runs[6].past, pasts[5].raw_data());
  // When the longer one has left, the other is as short as it would be alone.
  EXPECT_EQ(runs[7].past_length, 4);
}

TEST_F(GenerationTest, RowsOfDifferentSizesRunApartWithoutLengths) {
  config.parameters.erase("generation_length_input");
  signature = signature_of({"tokens", "past"}, {"next", "new_past"});
  signature.max_batch_size = 8;
  signature.inputs[0].shape = Dims{-1, -1};
  FakeSink sinks[3];
  auto model = std::make_unique<FakeModel>(signature, [this, &sinks](Inputs inputs, const auto&) {
    if (runs.empty()) {
      ask({4, 5}, 4, sinks[1]);
      ask({6, 7}, 4, sinks[2]);
    }
    const InferTensor* all[] = {inputs[0], inputs[1], nullptr};
    return run(all);
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  ask({1, 2, 3}, 4, sinks[0]);
  EXPECT_EQ(tokens_of(sinks[0]), tokens_alone({1, 2, 3}, 4));
  EXPECT_EQ(tokens_of(sinks[1]), tokens_alone({4, 5}, 4));
  EXPECT_EQ(tokens_of(sinks[2]), tokens_alone({6, 7}, 4));
  EXPECT_EQ(largest_batch(), 2);  // these two always have the same size
}

TEST_F(GenerationTest, EndTokenEnds) {
  const Floats expected = tokens_alone({3, 1}, 50);
  config.parameters["generation_end_token"] = std::to_string(static_cast<int>(expected[5]));
  const auto end = std::find(expected.begin(), expected.end(), expected[5]);
  load();
  FakeSink sink;
  ask({3, 1}, 0, sink);
  EXPECT_EQ(tokens_of(sink), Floats(expected.begin(), end + 1));
}

TEST_F(GenerationTest, OneResponseHasAllTokens) {
  config.is_decoupled = false;
  load();
  FakeSink sink;
  ask({3, 1}, 5, sink);
  EXPECT_EQ(tokens_of(sink), tokens_alone({3, 1}, 5));
  ASSERT_EQ(sink.results().size(), 1);
  EXPECT_EQ(sink.results()[0].outputs[0].shape, (Dims{1, 5}));
}

// The buffer has the element type of the first step.
TEST_F(GenerationTest, OneResponseHasTokensOfOneType) {
  config.is_decoupled = false;
  auto model = std::make_unique<FakeModel>(signature, [this](Inputs inputs, const auto&) {
    RunResult result = run(inputs);
    if (runs.size() > 1) {
      result.outputs[0].tensor = result.outputs[0].tensor.to(DType::kFloat64);
      result.outputs[0].datatype = DataType::kFp64;
    }
    return result;
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  FakeSink sink;
  ask({3, 1}, 5, sink);
  EXPECT_EQ(sink.wait().status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sink.wait().status.message(),
            "output 'next' of model 'm' is float64 and was float32 in the steps before: one response has one type");
  EXPECT_EQ(sink.finals(), 1);
}

TEST_F(GenerationTest, CancelledRequestLeavesTheBatch) {
  FakeSink gone, stays;
  on_run = [&](size_t run) {
    if (run == 1) ask({4, 4}, 8, stays);
    if (run == 5) gone.cancel();
  };
  load();
  ask({1, 2}, 40, gone);
  EXPECT_EQ(gone.wait().status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(gone.results().size(), 8);
  EXPECT_EQ(gone.finals(), 1);
  EXPECT_EQ(tokens_of(stays), tokens_alone({4, 4}, 8));
}

TEST_F(GenerationTest, RequestThatFailsFailsAlone) {
  FakeSink sinks[3];
  on_run = [&](size_t run) {
    if (run != 1) return;
    ask({4, 4}, 6, sinks[1]);
    ask({4, -4}, 6, sinks[2]);
  };
  load();
  ask({1, 2}, 6, sinks[0]);
  EXPECT_EQ(sinks[2].wait().status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tokens_of(sinks[0]), tokens_alone({1, 2}, 6));
  EXPECT_EQ(tokens_of(sinks[1]), tokens_alone({4, 4}, 6));
}

TEST_F(GenerationTest, MaxTokensIsAWholeNumberWithinTheModelsLimit) {
  load();
  const auto status = [&](ParameterValue value) {
    FakeSink sink;
    InferRequest request;
    request.inputs.push_back(float_tensor("tokens", {1, 1}, {1}));
    request.input_indices = {0};
    request.parameters["max_tokens"] = std::move(value);
    version->submit(std::move(request), sink);
    return sink.wait().status.code();
  };
  for (const ParameterValue& good : {ParameterValue(int64_t{1}), ParameterValue(int64_t{50}),
                                     ParameterValue(uint64_t{1}), ParameterValue(uint64_t{50})}) {
    EXPECT_EQ(status(good), absl::StatusCode::kOk);
  }
  for (const ParameterValue& bad :
       {ParameterValue(int64_t{0}), ParameterValue(int64_t{51}), ParameterValue(uint64_t{0}),
        ParameterValue(uint64_t{51}), ParameterValue(UINT64_MAX), ParameterValue(std::string("5")), ParameterValue(5.0),
        ParameterValue(true)}) {
    EXPECT_EQ(status(bad), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(GenerationTest, ARequestIsOneRow) {
  load();
  FakeSink sink;
  InferRequest request;
  request.inputs.push_back(float_tensor("tokens", {2, 1}, {1, 2}));
  request.input_indices = {0};
  request.batch_size = 2;
  version->submit(std::move(request), sink);
  EXPECT_EQ(sink.wait().status.message(),
            "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher");
  EXPECT_TRUE(runs.empty());
}

TEST_F(GenerationTest, ABatchHasAsManyRowsAsThereMayBeCandidatesAndTheModelTakes) {
  const int32_t usual = config.max_batch_size;
  for (const auto& [max_rows, candidates, expected] :
       {std::tuple(usual, 0, 5), {usual, 2, 2}, {usual, 20, 5}, {3, 20, 3}}) {
    config.max_batch_size = signature.max_batch_size = max_rows;
    config.sequence_batching->oldest_max_candidate_sequences = candidates;
    FakeSink sinks[5];
    runs.clear();
    on_run = [&](size_t run) {
      for (size_t i = 1; run == 1 && i < 5; ++i) ask({1, 2}, 3, sinks[i]);
    };
    load();
    ask({1, 2}, 9, sinks[0]);
    EXPECT_EQ(tokens_of(sinks[0]), tokens_alone({1, 2}, 9));
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(tokens_of(sinks[i]), tokens_alone({1, 2}, 3));
    EXPECT_EQ(largest_batch(), expected);
    version.reset();
  }
}

TEST_F(GenerationTest, WithoutBatchesOneResponseIsAVector) {
  config.is_decoupled = false;
  config.max_batch_size = signature.max_batch_size = 0;
  config.parameters = {{"generation_input", "tokens"}, {"generation_output", "next"}};
  config.sequence_batching->states.clear();
  signature = signature_of({"tokens"}, {"next"});
  float token = 0;
  auto model = std::make_unique<FakeModel>(signature, [&](Inputs, const auto&) {
    RunResult result;
    result.outputs.push_back(float_tensor("next", {1}, {++token}));
    return result;
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  FakeSink sink;
  InferRequest request;
  request.inputs.push_back(float_tensor("tokens", {1}, {1}));
  request.input_indices = {0};
  request.parameters["max_tokens"] = int64_t{3};
  version->submit(std::move(request), sink);
  EXPECT_EQ(sink.wait().outputs.at(0).shape, (Dims{3}));
  EXPECT_EQ(values_of(sink.wait().outputs[0]), (Floats{1, 2, 3}));
}

// A repeated run would repeat its changes to the inputs.
TEST_F(GenerationTest, AModelThatWritesToItsInputsIsNotRunAgain) {
  signature.writes_inputs = true;
  FakeSink sinks[3];
  on_run = [&](size_t run) {
    if (run != 1) return;
    ask({4, 4}, 6, sinks[1]);
    ask({4, -4}, 6, sinks[2]);
  };
  load();
  ask({1, 2}, 6, sinks[0]);
  for (FakeSink& sink : sinks) sink.wait();
  EXPECT_EQ(sinks[1].wait().status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sinks[2].wait().status.code(), absl::StatusCode::kInvalidArgument);
}

// While the first one runs, the others wait. A `timeout` only applies to queues with a policy for it.
TEST_F(GenerationTest, WaitingEndsWithTheDeadlineWhateverTheTimeoutSays) {
  config.max_batch_size = signature.max_batch_size = 1;
  constexpr int64_t kNever = kNoDeadline, kHour = int64_t{3600} * 1'000'000'000;
  struct Case {
    uint64_t timeout_us;
    int64_t deadline_ns;
    bool runs;
  };
  const int64_t now = Clock::system().now_ns();
  const Case cases[] = {{1, kNever, true},
                        {1, now + kHour, true},
                        {0, now, false},
                        {3'600'000'000, now, false},
                        {0, kNever, true},
                        {3'600'000'000, now + kHour, true},
                        {UINT64_MAX, kNever, true},
                        {UINT64_MAX / 1000, kNever, true},
                        {INT64_MAX / 1000, kNever, true}};
  FakeSink first, sinks[std::size(cases)];
  on_run = [&](size_t run) {
    for (size_t i = 0; run == 1 && i < std::size(cases); ++i) {
      InferRequest request;
      request.inputs.push_back(float_tensor("tokens", {1, 1}, {1}));
      request.input_indices = {0};
      request.queue_timeout_us = cases[i].timeout_us;
      request.deadline_ns = cases[i].deadline_ns;
      request.parameters["max_tokens"] = int64_t{2};
      version->submit(std::move(request), sinks[i]);
    }
  };
  load();
  ask({1, 2}, 2, first);
  EXPECT_EQ(tokens_of(first), tokens_alone({1, 2}, 2));
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(sinks[i].wait().status.code(),
              cases[i].runs ? absl::StatusCode::kOk : absl::StatusCode::kDeadlineExceeded)
        << i;
  }
}

TEST_F(GenerationTest, BadRequests) {
  load();
  FakeSink many, none;
  ask({1}, 51, many);
  EXPECT_EQ(many.wait().status.message(), "parameter 'max_tokens' must be a whole number from 1 to 50 for model 'm'");
  ask({1}, -1, none);
  EXPECT_EQ(none.wait().status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GenerationTest, BadConfigurations) {
  const auto error_of = [&](const std::string& key, const std::string& value) -> std::string {
    const auto before = config.parameters;
    config.parameters[key] = value;
    try {
      load();
    } catch (const Error& error) {
      config.parameters = before;
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("generation_max_steps", "0"),
            "parameter generation_max_steps must be a whole number of at least 1, got '0'");
  EXPECT_EQ(error_of("generation_speed", "9"), "parameter generation_speed is not known");
  EXPECT_EQ(error_of("generation_input", "text"), "parameter generation_input: model 'm' has no input 'text'");
  signature.keeps_state = true;
  EXPECT_EQ(error_of("generation_max_steps", "5"),
            "sequence_batching.iterative_sequence: the model keeps state in itself; it must be in "
            "sequence_batching.state");
}

TEST_F(GenerationTest, SettingsThatItDoesNotUseAreNamed) {
  EXPECT_EQ(unused_settings(*config.sequence_batching), "");
  config.sequence_batching->max_sequence_idle_us = 5;
  config.sequence_batching->oldest_max_candidate_sequences = 4;  // in use
  config.sequence_batching->oldest_preferred_batch_sizes = {4};
  EXPECT_EQ(unused_settings(*config.sequence_batching), "max_sequence_idle_microseconds, oldest.preferred_batch_size");
}

TEST_F(GenerationTest, StopLetsRunningOnesEnd) {
  FakeSink runs_on, waits;
  config.max_batch_size = signature.max_batch_size = 1;
  load();
  ask({1, 2}, 20, runs_on);
  runs_on.wait_for(2);
  ask({1, 2}, 20, waits);
  version.reset();
  EXPECT_EQ(tokens_of(runs_on), tokens_alone({1, 2}, 20));
  const InferResult& last = waits.wait();
  EXPECT_TRUE(last.status.ok() || last.status.code() == absl::StatusCode::kUnavailable);
  EXPECT_EQ(waits.finals(), 1);
}

}  // namespace
}  // namespace tensord::server::generation_test
