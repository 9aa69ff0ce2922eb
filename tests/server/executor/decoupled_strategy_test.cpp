// Requests to decoupled models through a model version: their responses, and how they end.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/log.h"
#include "server/executor/model/model_version.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::decoupled_strategy_test {
namespace {

using fixtures::FakeModel;
using fixtures::FakeSink;
using fixtures::float_tensor;
using fixtures::signature_of;
using fixtures::values_of;
using Floats = std::vector<float>;
using Inputs = std::span<const InferTensor* const>;

// A decoupled model that its client cancels.
TEST(DecoupledStrategyTest, ARunEndsWithItsRequest) {
  Metrics metrics("test");
  ModelConfig config;
  config.is_decoupled = true;
  std::atomic<int> begun = 0;
  auto model = std::make_unique<FakeModel>(
      signature_of({"x"}, {"y"}), [&](Inputs, const std::function<bool()>& is_cancelled) -> RunResult {
        ++begun;
        for (int i = 0; i < 20'000 && !is_cancelled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        fail(is_cancelled() ? ErrorCode::kCancelled : ErrorCode::kInternal, "the run ended");
      });
  ModelVersion version("m", 1, std::move(model), config, {}, metrics.model("m", "1"));
  const auto ask = [&](FakeSink& sink, int64_t deadline_ns) {
    InferRequest request;
    request.inputs.push_back(float_tensor("x", {1}, {1}));
    request.input_indices = {0};
    request.deadline_ns = deadline_ns;
    version.submit(std::move(request), sink);
  };
  FakeSink late, cancelled;
  ask(late, Clock::system().now_ns() + 300'000'000);
  EXPECT_EQ(late.wait().status, absl::DeadlineExceededError("Request timeout expired"));
  EXPECT_EQ(begun, 1);
  ask(cancelled, kNoDeadline);
  while (begun < 2) std::this_thread::yield();
  cancelled.cancel();
  EXPECT_EQ(cancelled.wait().status.code(), absl::StatusCode::kCancelled);
}

// A decoupled model: sends as many responses as x says.
TEST(DecoupledStrategyTest, ItemsAreResponses) {
  Metrics metrics("test");
  ModelConfig config;
  config.is_decoupled = true;
  auto model = std::make_unique<FakeModel>(signature_of({"x"}, {"y"}), [](Inputs inputs, const auto&) {
    RunResult result;
    const auto count = static_cast<int>(values_of(*inputs[0])[0]);
    if (count < 0) fail(ErrorCode::kScriptRaised, "below zero");
    for (int i = 0; i < count; ++i) {
      result.responses.push_back({float_tensor("y", {1}, {static_cast<float>(i)})});
    }
    return result;
  });
  ModelVersion version("m", 1, std::move(model), config, {}, metrics.model("m", "1"));
  const auto ask = [&](float count, FakeSink& sink) {
    InferRequest request;
    request.inputs.push_back(float_tensor("x", {1}, {count}));
    request.input_indices = {0};
    version.submit(std::move(request), sink);
    sink.wait();
  };
  FakeSink three, none, bad;
  ask(3, three);
  ASSERT_EQ(three.results().size(), 3);
  EXPECT_EQ(values_of(three.results()[2].outputs[0]), Floats{2});
  EXPECT_FALSE(three.results()[2].is_empty);
  ask(0, none);
  ASSERT_EQ(none.results().size(), 1);
  EXPECT_TRUE(none.results()[0].is_empty);
  ask(-1, bad);
  ASSERT_EQ(bad.results().size(), 1);
  EXPECT_EQ(bad.results()[0].status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecoupledStrategyTest, BatchesThatAreNotMadeAreSaid) {
  static std::atomic<int> said;
  said = 0;
  set_log_sink([](LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
    if (message == "no batches are made: the model is decoupled") ++said;
  });
  Metrics metrics("test");
  for (const bool joins : {false, true}) {
    for (const int64_t rows : {0, 1, 2}) {
      ModelConfig config;
      config.is_decoupled = true;
      config.max_batch_size = rows;
      if (joins) config.dynamic_batching.emplace();
      ModelVersion version("m", 1, fixtures::identity_model(rows), config, {}, metrics.model("m", "1"));
      EXPECT_EQ(said.exchange(0), joins && rows == 2 ? 1 : 0) << rows;
    }
  }
}

}  // namespace
}  // namespace tensord::server::decoupled_strategy_test
