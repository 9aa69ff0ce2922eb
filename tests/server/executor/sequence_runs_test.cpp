// Runs of single sequences: cancelled, refused, or endless ones.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "core/base/log.h"
#include "tests/server/executor/sequence_strategy_fixture.h"

namespace tensord::server::sequence_runs_test {
namespace {

using namespace sequence_strategy;

// One sequence at a time, without batching delay.
class SequenceRunsTest : public SequenceStrategyTest {
 protected:
  SequenceRunsTest() {
    sequences().oldest_preferred_batch_sizes.clear();
    sequences().oldest_max_queue_delay_us = 0;
  }
};

TEST_F(SequenceRunsTest, ARunThatNobodyWaitsForIsStopped) {
  std::promise<void> begun;
  load([&](Inputs, const std::function<bool()>& is_cancelled) -> RunResult {
    begun.set_value();
    for (int i = 0; i < 20'000 && !is_cancelled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fail(is_cancelled() ? ErrorCode::kCancelled : ErrorCode::kInternal, "the run ended");
  });
  FakeSink sink;
  send(1, 1, sink, /*is_start=*/true);
  begun.get_future().wait();
  sink.cancel();
  EXPECT_EQ(sink.wait().status.code(), absl::StatusCode::kCancelled);
}

// A worker that finds a cancelled request sends its response, though nothing is left to run.
TEST_F(SequenceRunsTest, AWorkerAnswersThoseThatWereGivenUp) {
  std::promise<void> begun, goes_on;
  load([&](Inputs inputs, const auto&) {
    begun.set_value();
    goes_on.get_future().wait();
    return run(inputs);
  });
  FakeSink first, second;
  send(1, 1, first, /*is_start=*/true);
  begun.get_future().wait();
  send(2, 1, second, /*is_start=*/true);
  second.cancel();
  goes_on.set_value();
  EXPECT_EQ(answer(first), 1);
  EXPECT_EQ(second.wait().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(SequenceRunsTest, OptionalInputsThatNobodySent) {
  signature = signature_of({"x", "sum_in", "more"}, {"y", "sum_out"});
  signature.inputs[2].is_optional = true;
  signature.max_batch_size = 4;
  load([&](Inputs inputs, const auto&) {
    EXPECT_EQ(inputs[2], nullptr);
    const InferTensor* const given[] = {inputs[0], inputs[1]};
    return run(given);
  });
  FakeSink sink;
  send(1, 3, sink, /*is_start=*/true);
  EXPECT_EQ(answer(sink), 3);
}

TEST_F(SequenceRunsTest, WithoutCandidatesThereAreAsManyAsRows) {
  sequences().oldest_max_candidate_sequences = 0;
  load();
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    FakeSink sink;
    send(sequence, 3, sink, /*is_start=*/true);
    EXPECT_EQ(answer(sink), 3);
  }
}

TEST_F(SequenceRunsTest, TimesBeyondTheEndOfTimeNeverCome) {
  sequences().max_sequence_idle_us = UINT64_MAX;
  load();
  FakeSink first, second;
  send(1, 1, first, /*is_start=*/true);
  EXPECT_EQ(answer(first), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  send(1, 1, second);
  EXPECT_EQ(answer(second), 2);
}

// Requests refused at once are not part of the response order.
TEST_F(SequenceRunsTest, RefusalsDoNotWaitForTheOrder) {
  sequences().oldest_preserves_ordering = true;
  load();
  FakeSink refused, good, refused_too, also_good;
  send(1, 1, refused);
  EXPECT_EQ(refused.wait().status.code(), absl::StatusCode::kInvalidArgument);
  send(1, 1, good, /*is_start=*/true);
  EXPECT_EQ(answer(good), 1);
  send(2, 1, refused_too);
  EXPECT_EQ(refused_too.wait().status.code(), absl::StatusCode::kInvalidArgument);
  send(1, 1, also_good);
  EXPECT_EQ(answer(also_good), 2);
}

TEST_F(SequenceRunsTest, InstancesThatAreNotUsedAreSaid) {
  static std::atomic<int> said;
  said = 0;
  set_log_sink([](LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
    if (message == "one instance is used: the model keeps state in itself") ++said;
  });
  for (const bool keeps_state : {false, true}) {
    for (const int workers : {0, 1, 2}) {
      signature.keeps_state = keeps_state;
      config.workers = workers;
      load();
      EXPECT_EQ(said.exchange(0), keeps_state && workers == 2 ? 1 : 0) << workers;
    }
  }
}

TEST_F(SequenceRunsTest, ADecoupledModelNeedsStepsToAnswerSeveralTimes) {
  config.is_decoupled = true;
  EXPECT_THROW(load(), Error);
}

}  // namespace
}  // namespace tensord::server::sequence_runs_test
