// Requests of sequences through a model version: batches, controls, state, errors.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/server/executor/sequence_strategy_fixture.h"

namespace tensord::server::sequence_strategy_test {
namespace {

using namespace sequence_strategy;

// A state whose size depends on the client's data counts against its quota as long as the sequence lives.
TEST_F(SequenceStrategyTest, AStateOfAnySizeIsCountedForItsClient) {
  State& state = sequences().states[0];
  state.dims = {-1};
  state.has_initial_state = true;
  state.initial_dims = {1};
  sequences().oldest_preferred_batch_sizes = {};
  sequences().oldest_max_queue_delay_us = 0;
  // The next state is ten times the input.
  load([](Inputs inputs, const auto&) {
    RunResult result;
    result.outputs.push_back(float_tensor("y", inputs[0]->shape, values_of(*inputs[0])));
    const auto size = static_cast<int64_t>(10 * values_of(*inputs[0]).at(0));
    result.outputs.push_back(float_tensor("sum_out", {1, size}, Floats(static_cast<size_t>(size), 1)));
    return result;
  });
  std::atomic<uint64_t> held{0};
  const auto ask = [&](float value, bool is_start, bool is_end) {
    FakeSink sink;
    sink.hold = [&held](uint64_t bytes) -> std::shared_ptr<const void> {
      if (held + bytes > 4000) fail(ErrorCode::kResourceExhausted, "no room for ", bytes, " bytes");
      held += bytes;
      return std::shared_ptr<const void>(&held, [bytes, &held](const void*) { held -= bytes; });
    };
    send(1, value, sink, is_start, is_end);
    return sink.wait().status;
  };
  EXPECT_TRUE(ask(1, true, false).ok());
  EXPECT_EQ(held, 40u);
  EXPECT_TRUE(ask(20, false, false).ok());
  EXPECT_EQ(held, 800u);
  // The sequence has ended: its old state may have been overwritten, and later requests would depend on it.
  EXPECT_THAT(ask(100, false, false).message(), ::testing::HasSubstr("no room for 4000 bytes"));
  EXPECT_THAT(std::string(ask(1, false, false).message()),
              ::testing::AnyOf(::testing::HasSubstr("the sequence has ended"),
                               ::testing::HasSubstr("must specify the START flag")));
  EXPECT_TRUE(ask(1, true, false).ok());
  EXPECT_TRUE(ask(1000, false, true).ok());  // nothing of it is kept
  version.reset();
  EXPECT_EQ(held, 0u);
}

// A repeated run would repeat its side effects, so neither request is run again alone.
TEST_F(SequenceStrategyTest, AModelWithStateOfItsOwnIsNotRunAgain) {
  signature.keeps_state = true;
  load();
  FakeSink good, bad;
  send(1, 1, good, /*is_start=*/true);
  send(2, 13, bad, /*is_start=*/true);
  for (FakeSink* sink : {&good, &bad})
    EXPECT_THAT(sink->wait().status.message(), ::testing::HasSubstr("13 is refused"));
  EXPECT_TRUE(runs.empty());
}

TEST_F(SequenceStrategyTest, AModelThatWritesToItsInputsIsNotRunAgain) {
  signature.writes_inputs = true;
  load();
  FakeSink good, bad;
  send(1, 1, good, /*is_start=*/true);
  send(2, 13, bad, /*is_start=*/true);
  for (FakeSink* sink : {&good, &bad})
    EXPECT_THAT(sink->wait().status.message(), ::testing::HasSubstr("13 is refused"));
}

TEST_F(SequenceStrategyTest, StateGoesFromRequestToRequest) {
  load();
  EXPECT_EQ(version->signature().inputs.size(), 1);
  EXPECT_EQ(version->signature().outputs.size(), 1);
  FakeSink first[3], second[3];
  for (int i = 0; i < 3; ++i) {
    send(1, 1, first[i], i == 0, i == 2);
    send(2, 10, second[i], i == 0, i == 2);
    EXPECT_EQ(answer(first[i]), 1.0F * static_cast<float>(i + 1));
    EXPECT_EQ(answer(second[i]), 10.0F * static_cast<float>(i + 1));
  }
  ASSERT_EQ(runs.size(), 3);
  EXPECT_EQ(runs[2].inputs[0], (Floats{1, 10}));
  EXPECT_EQ(runs[2].inputs[1], (Floats{2, 20}));
}

TEST_F(SequenceStrategyTest, UnchangedBatchIsNotCopied) {
  load();
  FakeSink sinks[6];
  for (int i = 0; i < 3; ++i) {
    send(1, 1, sinks[2 * i], i == 0);
    send(2, 10, sinks[2 * i + 1], i == 0);
    answer(sinks[2 * i]);
    answer(sinks[2 * i + 1]);
  }
  ASSERT_EQ(runs.size(), 3);
  EXPECT_EQ(runs[1].state, outputs[0].raw_data());
  EXPECT_EQ(runs[2].state, outputs[1].raw_data());
}

TEST_F(SequenceStrategyTest, RequestsThatFailFailAlone) {
  load();
  FakeSink sinks[4];
  send(1, 1, sinks[0], true);
  send(2, 13, sinks[1], true);
  EXPECT_EQ(answer(sinks[0]), 1);
  EXPECT_EQ(sinks[1].wait().status.code(), absl::StatusCode::kInvalidArgument);
  send(1, 1, sinks[2]);
  send(2, 5, sinks[3]);
  EXPECT_EQ(answer(sinks[2]), 2);
  EXPECT_EQ(answer(sinks[3]), 5);  // its state is unchanged
}

TEST_F(SequenceStrategyTest, BadRequests) {
  load();
  FakeSink none, late, wide;
  send(0, 1, none, true);
  EXPECT_EQ(none.wait().status.message(),
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID");
  send(3, 1, late);
  EXPECT_EQ(late.wait().status.message(),
            "inference request for sequence 3 to model 'm' must specify the START flag on the first request of the "
            "sequence");
  InferRequest request;
  request.sequence.number = 4;
  request.is_sequence_start = true;
  request.batch_size = 2;
  version->submit(std::move(request), wide);
  EXPECT_EQ(wide.wait().status.message(),
            "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher");
  EXPECT_EQ(wide.wait().status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(runs.empty());
}

TEST_F(SequenceStrategyTest, DirectSendsControls) {
  sequences().strategy = SequenceBatchingConfig::Strategy::kDirect;
  sequences().direct_minimum_slot_utilization = 0.5;
  sequences().direct_max_queue_delay_us = 2000;
  sequences().controls = {Control{.name = "START", .kind = ControlKind::kStart, .datatype = "FP32", .off = -1, .on = 1},
                          Control{.name = "END", .kind = ControlKind::kEnd, .datatype = "FP32", .off = 0, .on = 7},
                          Control{.name = "READY", .kind = ControlKind::kReady, .datatype = "FP32", .off = 0, .on = 1},
                          Control{.name = "CORRID", .kind = ControlKind::kCorrelationId, .datatype = "UINT64"}};
  signature = signature_of({"x", "sum_in", "START", "END", "READY", "CORRID"}, {"y", "sum_out"});
  signature.max_batch_size = 4;
  load();
  EXPECT_EQ(version->signature().inputs.size(), 1);
  FakeSink sinks[4];
  send(5, 1, sinks[0], true);
  send(6, 2, sinks[1], true);
  EXPECT_EQ(answer(sinks[0]), 1);
  EXPECT_EQ(answer(sinks[1]), 2);
  send(6, 3, sinks[2], false, true);
  EXPECT_EQ(answer(sinks[2]), 5);
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].inputs, (std::vector<Floats>{{1, 2}, {0, 0}, {1, 1}, {0, 0}, {1, 1}, {5, 6}}));
  // The first row has a sequence, but no request.
  EXPECT_EQ(runs[1].inputs, (std::vector<Floats>{{0, 3}, {0, 2}, {-1, -1}, {0, 7}, {0, 1}, {0, 6}}));
  send(5, 4, sinks[3]);
  EXPECT_EQ(answer(sinks[3]), 5);
}

TEST_F(SequenceStrategyTest, TextsAreCorrelationIdsToo) {
  sequences().oldest_preferred_batch_sizes = {1};
  load();
  FakeSink sinks[2];
  for (int i = 0; i < 2; ++i) {
    InferRequest request;
    request.inputs.push_back(float_tensor("x", {1, 1}, {2}));
    request.input_indices = {0};
    request.sequence.text = "alpha";
    request.is_sequence_start = i == 0;
    version->submit(std::move(request), sinks[i]);
    EXPECT_EQ(answer(sinks[i]), 2 * (i + 1));
  }
}

TEST_F(SequenceStrategyTest, InitialStateComesFromAFile) {
  const std::string file = (std::filesystem::temp_directory_path() / concat("tensord_state_", getpid())).string();
  const float value = 40;
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&value), sizeof(value));
  State& state = sequences().states[0];
  state.has_initial_state = true;
  state.initial_is_zero = false;
  state.initial_file = file;
  state.initial_dims = {1};
  sequences().oldest_preferred_batch_sizes = {1};
  load();
  FakeSink sink, other;
  send(1, 2, sink, true, true);
  EXPECT_EQ(answer(sink), 42);
  send(2, 3, other, true, true);
  EXPECT_EQ(answer(other), 43);
  std::ofstream(file, std::ios::binary | std::ios::app) << "more";
  EXPECT_THROW(load(), Error);
  std::filesystem::remove(file);
}

TEST_F(SequenceStrategyTest, StateMustBeAsConfigured) {
  sequences().states[0].datatype = "INT32";
  sequences().oldest_preferred_batch_sizes = {1};
  load();
  FakeSink sink;
  send(1, 2, sink, true);
  EXPECT_EQ(sink.wait().status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sink.wait().status.message(), "model 'm' returned state 'sum_out' of float32[1, 1], expected int32 [1, 1]");
}

TEST_F(SequenceStrategyTest, AnswersAreNotWrittenToByLaterRuns) {
  sequences().oldest_preferred_batch_sizes = {1};
  signature.writes_inputs = signature.inputs[1].is_written = true;
  auto model = std::make_unique<FakeModel>(signature, [](Inputs inputs, const auto&) {
    InferTensor sum = *inputs[1];
    if (!sum.tensor.storage()->is_writable()) sum.tensor = sum.tensor.clone();
    *sum.tensor.data<float>() += values_of(*inputs[0])[0];
    RunResult result;
    result.outputs = {sum, sum};
    result.outputs[0].name = "y";
    result.outputs[1].name = "sum_out";
    return result;
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  FakeSink first, second, other;
  send(1, 1, first, true);
  first.wait();
  send(1, 1, second);
  second.wait();
  EXPECT_EQ(answer(first), 1);
  EXPECT_EQ(answer(second), 2);
  send(2, 7, other, true);  // nor is the initial state, which all sequences share
  EXPECT_EQ(answer(other), 7);
}

TEST_F(SequenceStrategyTest, StopAnswersWhatWaits) {
  load();
  FakeSink sink, cancelled;
  send(1, 1, cancelled, true);
  cancelled.cancel();
  version->record_cancelled();
  EXPECT_EQ(cancelled.wait().status.code(), absl::StatusCode::kCancelled);
  send(2, 1, sink, true);
  version.reset();
  EXPECT_EQ(sink.wait().status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(runs.empty());
}

TEST_F(SequenceStrategyTest, LateRequestsAreAnsweredWhileTheModelRuns) {
  sequences().oldest_preferred_batch_sizes = {1};
  config.max_batch_size = signature.max_batch_size = 1;
  std::mutex mutex;
  std::condition_variable changed;
  bool may_end = false;
  auto model = std::make_unique<FakeModel>(signature, [&](Inputs inputs, const auto&) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return may_end; });
    return run(inputs);
  });
  version = std::make_unique<ModelVersion>("m", 1, std::move(model), config, ModelVersion::Options{},
                                           metrics.model("m", "1"));
  FakeSink busy, patient, late;
  send(1, 1, busy, true);
  const auto send_until = [&](uint64_t sequence, int64_t wait_ns, FakeSink& sink) {
    InferRequest request;
    request.inputs.push_back(float_tensor("x", {1, 1}, {1}));
    request.input_indices = {0};
    request.sequence.number = sequence;
    request.is_sequence_start = request.is_sequence_end = true;
    request.deadline_ns = Clock::system().now_ns() + wait_ns;
    version->submit(std::move(request), sink);
  };
  // The timer thread sleeps for an hour by then.
  send_until(2, int64_t{3600} * 1'000'000'000, patient);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  send_until(3, 5'000'000, late);
  EXPECT_EQ(late.wait().status.code(), absl::StatusCode::kDeadlineExceeded);
  {
    const std::lock_guard lock(mutex);
    may_end = true;
  }
  changed.notify_all();
  EXPECT_EQ(answer(busy), 1);
  EXPECT_EQ(answer(patient), 1);
}

// Workers also poll about every second; requests must not depend on that.
TEST_F(SequenceStrategyTest, EveryRequestWakesAWorker) {
  sequences().oldest_preferred_batch_sizes = {1};
  sequences().oldest_max_queue_delay_us = 0;
  load();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kRequests = 50;
  for (int i = 0; i < kRequests; ++i) {
    FakeSink sink;
    send(1, 1, sink, /*is_start=*/i == 0);
    EXPECT_EQ(answer(sink), static_cast<float>(i + 1));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kRequests / 2));
}

}  // namespace
}  // namespace tensord::server::sequence_strategy_test
