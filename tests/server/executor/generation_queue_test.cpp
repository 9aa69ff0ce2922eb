// Requests that wait for the running batch of a generating model, and how they end early.
#include <gmock/gmock.h>

#include "tests/server/executor/generation_fixture.h"

namespace tensord::server::generation_queue_test {
namespace {

using fixtures::FakeModel;
using fixtures::FakeSink;
using fixtures::float_tensor;
using fixtures::Floats;
using fixtures::Inputs;
using fixtures::signature_of;
using fixtures::tokens_alone;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerationQueueTest : public fixtures::GenerationTest {
 protected:
  // With a request that the test modifies.
  void ask_with(FakeSink& sink, const std::function<void(InferRequest&)>& change) {
    InferRequest request;
    request.inputs.push_back(float_tensor("tokens", {1, 2}, {1, 2}));
    request.input_indices = {0};
    change(request);
    version->submit(std::move(request), sink);
  }
};

TEST_F(GenerationQueueTest, AQueueHasItsSize) {
  config.max_batch_size = signature.max_batch_size = 1;
  FakeSink first, sinks[3];
  on_run = [&](size_t run) {
    for (size_t i = 0; run == 1 && i < 3; ++i) ask({1, 2}, 2, sinks[i]);
  };
  auto model = std::make_unique<FakeModel>(signature, [this](Inputs inputs, const auto&) { return run(inputs); });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{.max_queue_size = 2},
                                           metrics.model("m", "1"));
  ask({1, 2}, 2, first);
  EXPECT_EQ(sinks[2].wait().status, absl::ResourceExhaustedError("Exceeds maximum queue size"));
  for (FakeSink* sink : {&first, &sinks[0], &sinks[1]}) EXPECT_EQ(tokens_of(*sink), tokens_alone({1, 2}, 2));
}

TEST_F(GenerationQueueTest, OneThatIsCancelledWhileItWaitsIsAnsweredAtOnce) {
  config.max_batch_size = signature.max_batch_size = 1;
  FakeSink first, waits;
  on_run = [&](size_t run) {
    if (run != 1) return;
    ask({1, 2}, 2, waits);
    waits.cancel();
    version->record_cancelled();
    EXPECT_EQ(waits.finals(), 1);
  };
  load();
  ask({1, 2}, 2, first);
  EXPECT_EQ(tokens_of(first), tokens_alone({1, 2}, 2));
  EXPECT_EQ(waits.wait().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(GenerationQueueTest, AWorkerThatFoundNothingButDeadOnesGoesOn) {
  load();
  for (int i = 0; i < 3; ++i) {
    FakeSink dead, alive;
    dead.cancel();
    ask({1, 2}, 2, dead);
    EXPECT_EQ(dead.wait().status.code(), absl::StatusCode::kCancelled);
    ask({1, 2}, 2, alive);
    EXPECT_EQ(tokens_of(alive), tokens_alone({1, 2}, 2));
  }
}

TEST_F(GenerationQueueTest, ADeadlineEndsARequestBetweenSteps) {
  const int64_t deadline_ns = Clock::system().now_ns() + 200'000'000;
  on_run = [&](size_t) {
    if (runs.size() > 2)
      std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(250));
  };
  load();
  FakeSink late;
  ask_with(late, [&](InferRequest& request) { request.deadline_ns = deadline_ns; });
  EXPECT_EQ(late.wait().status, absl::DeadlineExceededError("Request timeout expired"));
  EXPECT_LT(runs.size(), 6u);
}

TEST_F(GenerationQueueTest, IdsMustFitIntoTheirControl) {
  config.sequence_batching->controls.resize(1);
  SequenceBatchingConfig::Control& control = config.sequence_batching->controls[0];
  control.name = "id";
  control.kind = SequenceBatchingConfig::ControlKind::kCorrelationId;
  control.datatype = "INT32";
  signature = signature_of({"tokens", "past", "length", "id"}, {"next", "new_past"});
  signature.max_batch_size = 8;
  load();
  FakeSink good, bad;
  ask_with(good, [](InferRequest& request) {
    request.sequence.number = INT32_MAX;
    request.parameters["max_tokens"] = int64_t{2};
  });
  EXPECT_EQ(tokens_of(good), tokens_alone({1, 2}, 2));
  ask_with(bad, [](InferRequest& request) { request.sequence.number = uint64_t{1} << 40; });
  EXPECT_THAT(std::string(bad.wait().status.message()), HasSubstr("does not fit into data_type INT32"));
}

// In one response: tokens of all steps, and the last step's score.
TEST_F(GenerationQueueTest, OnlyWhatIsFedBackIsCollected) {
  config.is_decoupled = false;
  config.parameters = {{"generation_input", "tokens"}, {"generation_output", "next"}};
  config.sequence_batching->states.clear();
  signature = signature_of({"tokens"}, {"score", "next"});
  signature.max_batch_size = 8;
  signature.inputs[0].shape = Dims{-1, -1};
  float step = 0;
  auto model = std::make_unique<FakeModel>(signature, [&](Inputs, const auto&) {
    RunResult result;
    ++step;
    result.outputs.push_back(float_tensor("score", {1, 2}, {10 * step, 11 * step}));
    result.outputs.push_back(float_tensor("next", {1, 1}, {step}));
    return result;
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  FakeSink sink;
  ask({1, 2}, 3, sink);
  const InferResult& result = sink.wait();
  ASSERT_EQ(result.outputs.size(), 2u) << result.status;
  EXPECT_THAT(values_of(result.outputs[0]), ElementsAre(30, 33));
  EXPECT_THAT(values_of(result.outputs[1]), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace tensord::server::generation_queue_test
