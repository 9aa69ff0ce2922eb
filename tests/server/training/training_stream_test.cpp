#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "core/base/thread.h"
#include "server/training/data/batch_stream.h"
#include "server/training/jobs/training_job.h"
#include "server/training/ranks/stream_broadcaster.h"

namespace tensord::server::training_stream_test {
namespace {

using Arrays = std::vector<std::pair<std::string, Tensor>>;
using namespace std::chrono_literals;

Arrays batch(int64_t rows, int64_t columns = 4, DType dtype = DType::kFloat32) {
  return {{"x", Tensor::empty(Dims{rows, columns}, dtype)}, {"y", Tensor::empty(Dims{rows}, DType::kInt64)}};
}

template <class Action>
std::pair<ErrorCode, std::string> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "none"};
}

TEST(BatchStreamTest, BatchesComeInOrder) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  for (int64_t rows : {1, 2, 3}) EXPECT_TRUE(stream.push({}, batch(rows)));
  stream.detach(true);
  StreamedBatch got;
  for (int64_t number : {0, 1, 2}) {
    ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
    EXPECT_EQ(got.number, number);
    EXPECT_EQ(got.arrays[0].second.size(0), number + 1);
  }
  EXPECT_EQ(stream.pop(0ms, got), BatchStream::Popped::kComplete);
  EXPECT_EQ(error_of([&] { stream.attach(); }).first, ErrorCode::kFailedPrecondition);
}

TEST(BatchStreamTest, ABatchIsUsedOnceAndNoneIsLeftOut) {
  BatchStream stream(1 << 20, 5);  // the job has had 0 to 4
  stream.attach();
  EXPECT_FALSE(stream.push(3, batch(1)));
  EXPECT_TRUE(stream.push(5, batch(1)));
  EXPECT_FALSE(stream.push(5, batch(1)));
  const auto [code, text] = error_of([&] { stream.push(7, batch(1)); });
  EXPECT_EQ(code, ErrorCode::kOutOfRange);
  EXPECT_NE(text.find("needs batch 6"), std::string::npos) << text;
  EXPECT_EQ(stream.next(), 6);
}

TEST(BatchStreamTest, WhatWasTakenIsThereAgain) {
  BatchStream stream(1 << 20, 5, /*keeps=*/true);
  for (int64_t rows : {1, 2, 3, 4}) stream.push({}, batch(rows));
  StreamedBatch got;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  stream.forget(6);
  EXPECT_FALSE(stream.rewind(5));
  EXPECT_FALSE(stream.rewind(9));
  ASSERT_TRUE(stream.rewind(6));
  stream.detach(true);
  for (int64_t number : {6, 7, 8}) {
    ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
    EXPECT_EQ(got.number, number);
    EXPECT_EQ(got.arrays[0].second.size(0), number - 4);
  }
  EXPECT_EQ(stream.pop(0ms, got), BatchStream::Popped::kComplete);
  // The end is replayed too.
  ASSERT_TRUE(stream.rewind(8));
  ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  EXPECT_EQ(got.number, 8);
  EXPECT_EQ(stream.pop(0ms, got), BatchStream::Popped::kComplete);
  ASSERT_TRUE(stream.rewind(9));  // nothing of it
}

TEST(BatchStreamTest, MoreIsForgottenThanIsKept) {
  BatchStream stream(1 << 20, 0, /*keeps=*/true);
  StreamedBatch got;
  for (int i = 0; i < 2; ++i) stream.push({}, batch(1));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  stream.forget(1000);
  EXPECT_FALSE(stream.rewind(1));
  EXPECT_TRUE(stream.rewind(2));
}

TEST(BatchStreamTest, WhatIsCompleteStaysSo) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  stream.detach(true);
  stream.detach(false);
  StreamedBatch got;
  EXPECT_EQ(stream.pop(0ms, got), BatchStream::Popped::kComplete);
}

TEST(BatchStreamTest, OnlySoManyBytesAreKept) {
  const uint64_t each = 16 * 4 * 4 + 16 * 8;
  BatchStream stream(3 * each, 0, /*keeps=*/true);
  StreamedBatch got;
  for (int i = 0; i < 10; ++i) {
    stream.push({}, batch(16));
    ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  }
  EXPECT_FALSE(stream.rewind(6));
  EXPECT_TRUE(stream.rewind(7));
  // Replayed batches count as waiting.
  bool has_room = false;
  stream.when_room([&] { has_room = true; });
  EXPECT_FALSE(has_room);
  ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  EXPECT_TRUE(has_room);
  stream.close(ErrorCode::kUnavailable, "closed");
  EXPECT_TRUE(stream.rewind(0));
  EXPECT_EQ(stream.pop(0ms, got), BatchStream::Popped::kNothing);
}

TEST(BatchStreamTest, WithoutKeepingNothingIsThereAgain) {
  BatchStream stream(1 << 20, 0);
  stream.push({}, batch(1));
  StreamedBatch got;
  ASSERT_EQ(stream.pop(0ms, got), BatchStream::Popped::kBatch);
  EXPECT_FALSE(stream.rewind(0));
  EXPECT_TRUE(stream.rewind(1));
}

// A stream as rank 0's process sees it.
class FedStream {
 public:
  explicit FedStream(std::shared_ptr<BatchStream> stream, int64_t first) : seen(/*max_bytes=*/1, first) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_ = std::make_unique<FileDescriptor>(ends[0]);
    far_ = std::make_unique<FileDescriptor>(ends[1]);
    reader_ = Thread("reader", [this] { read_streamed(far_->get(), seen); });
    broadcaster_ = std::make_unique<StreamBroadcaster>(std::move(stream), near_->get());
  }
  ~FedStream() {
    broadcaster_.reset();
    near_.reset();
    // The reader may be waiting for room.
    seen.close(ErrorCode::kUnavailable, "the end");
    reader_.join();
  }

  BatchStream seen;

 private:
  std::unique_ptr<FileDescriptor> near_, far_;
  Thread reader_;
  std::unique_ptr<StreamBroadcaster> broadcaster_;
};

TEST(StreamBroadcasterTest, BringsBatchesClientAndEnd) {
  const auto stream = std::make_shared<BatchStream>(1 << 20, 7, /*keeps=*/true);
  FedStream fed(stream, 7);
  stream->attach();
  while (!fed.seen.has_client()) std::this_thread::sleep_for(1ms);
  stream->detach(false);
  while (fed.seen.has_client()) std::this_thread::sleep_for(1ms);
  stream->attach();
  for (int64_t rows : {3, 1, 2}) {
    auto arrays = batch(rows);
    arrays[0].second.data<float>()[0] = static_cast<float>(rows);
    stream->push({}, arrays);
  }
  stream->detach(true);
  StreamedBatch got;
  for (int64_t number = 7; const int64_t rows : {3, 1, 2}) {
    ASSERT_EQ(fed.seen.pop(60s, got), BatchStream::Popped::kBatch);
    EXPECT_EQ(got.number, number++);
    ASSERT_EQ(got.arrays.size(), 2u);
    EXPECT_EQ(got.arrays[0].first, "x");
    EXPECT_EQ(got.arrays[0].second.sizes(), (Dims{rows, 4}));
    EXPECT_EQ(got.arrays[0].second.data<float>()[0], static_cast<float>(rows));
    EXPECT_EQ(got.arrays[1].second.dtype(), DType::kInt64);
  }
  EXPECT_EQ(fed.seen.pop(60s, got), BatchStream::Popped::kComplete);
}

// However many batches are received.
TEST(StreamBroadcasterTest, AClientThatStaysIsThereOnce) {
  const auto stream = std::make_shared<BatchStream>(1 << 20, 0);
  FedStream fed(stream, 0);
  stream->attach();
  StreamedBatch got;
  for (int i = 0; i < 4; ++i) {
    stream->push({}, batch(1));
    ASSERT_EQ(fed.seen.pop(60s, got), BatchStream::Popped::kBatch);
    EXPECT_TRUE(fed.seen.has_client()) << i;
  }
}

struct EndOfThread {
  ~EndOfThread() {
    if (is_over != nullptr) *is_over = true;
  }
  std::atomic<bool>* is_over = nullptr;
};

TEST(StreamBroadcasterTest, EndsWithTheFirstBatchThatCannotBeWritten) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor near(ends[0]);
  close(ends[1]);
  std::atomic<bool> took_second{false}, is_over{false};
  // Calls the function on the thread that releases the batch.
  const auto account = [](std::function<void()> call) {
    return std::shared_ptr<const void>(nullptr, [call = std::move(call)](const void*) { call(); });
  };
  const auto stream = std::make_shared<BatchStream>(1 << 20, 0);
  stream->push({}, batch(1), account([&] {
                 static thread_local EndOfThread end;
                 end.is_over = &is_over;
               }));
  stream->push({}, batch(1), account([&] { took_second = true; }));
  const StreamBroadcaster broadcaster(stream, near.get());
  while (!took_second && !is_over) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(took_second);
}

TEST(StreamBroadcasterTest, EndsWhereNobodyReads) {
  const auto stream = std::make_shared<BatchStream>(1 << 30, 0);
  FedStream fed(stream, 0);
  // More than the socket and the reader buffer.
  for (int i = 0; i < 8; ++i) stream->push({}, batch(1 << 16));
}

TEST(BatchStreamTest, OneClientAtATime) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  EXPECT_EQ(error_of([&] { stream.attach(); }).first, ErrorCode::kFailedPrecondition);
  stream.detach(false);
  EXPECT_FALSE(stream.has_client());
  stream.attach();
  EXPECT_TRUE(stream.has_client());
}

TEST(BatchStreamTest, BatchesMustBeAlike) {
  BatchStream stream(1 << 30, 317);
  stream.attach();
  stream.push({}, batch(8));
  const std::pair<Arrays, const char*> cases[] = {
      {batch(8, 5), "batch 318: 'x' has shape [8, 5]"},
      {batch(8, 4, DType::kFloat64), "batch 318: 'x' is float64"},
      {{batch(8)[0]}, "batch 318 has no 'y'"},
      {{batch(8)[0], batch(7)[1]}, "batch 318: 'y' has 7 rows"},
      {{batch(8)[0], batch(8)[1], {"z", batch(8)[1].second}}, "batch 318 has 3 arrays"},
      {{batch(8)[0], batch(8)[0]}, "appears twice"},
      {{{"x", Tensor::scalar(1.0f)}}, "single number"},
      {{}, "no arrays"},
  };
  for (const auto& [arrays, text] : cases) {
    const auto [code, message] = error_of([&, refused = arrays] { stream.push({}, refused); });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  }
  EXPECT_TRUE(stream.push({}, batch(3)));  // nothing was lost
  EXPECT_EQ(stream.next(), 319);
}

TEST(BatchStreamTest, AFullStreamHoldsItsClientBack) {
  BatchStream stream(batch(8)[0].second.size_bytes(), 0);
  stream.attach();
  int called = 0;
  stream.when_room([&] { ++called; });
  EXPECT_EQ(called, 1);
  stream.push({}, batch(8));
  stream.when_room([&] { ++called; });
  EXPECT_EQ(called, 1);
  StreamedBatch got;
  stream.pop(0ms, got);
  EXPECT_EQ(called, 2);
  stream.push({}, batch(8));
  stream.when_room([&] { ++called; });
  stream.close(ErrorCode::kFailedPrecondition, "the job is FAILED");
  EXPECT_EQ(called, 3);
  EXPECT_NE(error_of([&] { stream.push({}, batch(1)); }).second.find("FAILED"), std::string::npos);
}

// A job that was deleted while running is also stopped: its client gets the first reason.
TEST(BatchStreamTest, TheFirstReasonStays) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  stream.close(ErrorCode::kCancelled, "the job was deleted");
  stream.close(ErrorCode::kFailedPrecondition, "the job is CANCELLED");
  const auto [code, message] = error_of([&] { stream.push({}, batch(1)); });
  EXPECT_EQ(code, ErrorCode::kCancelled);
  EXPECT_NE(message.find("deleted"), std::string::npos);
}

TEST(BatchStreamTest, PopWaitsForABatch) {
  BatchStream stream(1 << 20, 0);
  StreamedBatch got;
  EXPECT_EQ(stream.pop(1ms, got), BatchStream::Popped::kNothing);
  std::thread client([&] {
    stream.attach();
    stream.push({}, batch(2));
  });
  EXPECT_EQ(stream.pop(10s, got), BatchStream::Popped::kBatch);
  client.join();
}

TEST(TrainingJobTest, CurvesStayBounded) {
  TrainingJob job(JobStatus{});
  const uint64_t before = job.revision();
  for (int64_t step = 1; step <= 20000; ++step) {
    CurvePoint point;
    point.step = step;
    if (step % 1000 == 0) point.metrics["loss"] = 1;
    job.add_point(std::move(point));
  }
  const auto points = job.points_after(0);
  EXPECT_LE(points.size(), 4096u);
  EXPECT_GT(points.size(), 1000u);
  EXPECT_EQ(points.back().step, 20000);
  EXPECT_EQ(std::count_if(points.begin(), points.end(), [](const auto& p) { return !p.metrics.empty(); }), 20);
  EXPECT_EQ(job.points_after(20000).size(), 0u);
  EXPECT_EQ(job.points_after(19999).size(), 1u);
  EXPECT_GT(job.revision(), before);
}

TEST(TrainingJobTest, CurvesOfMeasurementsAreBoundedToo) {
  TrainingJob job(JobStatus{});
  const auto add = [&](int64_t step) {
    CurvePoint point;
    point.step = step;
    point.metrics["loss"] = 1;
    job.add_point(std::move(point));
  };
  for (int64_t step = 1; step <= 4096; ++step) add(step);
  EXPECT_EQ(job.points_after(0).size(), 4096u);
  add(4097);
  const auto points = job.points_after(0);
  EXPECT_EQ(points.size(), 2049u);
  EXPECT_EQ(points.back().step, 4097);
  for (const CurvePoint& point : points) EXPECT_EQ(point.metrics.size(), 1u) << point.step;
}

// Including the first ones, and each new one when there are too many.
TEST(TrainingJobTest, MeasurementsAndTheNewestPointStay) {
  TrainingJob job(JobStatus{});
  for (int64_t step = 1; step <= 4097; ++step) {
    CurvePoint point;
    point.step = step;
    if (step <= 3) point.metrics["loss"] = 1;
    job.add_point(std::move(point));
  }
  const auto points = job.points_after(0);
  EXPECT_EQ(points.size(), 2050u);
  EXPECT_EQ(points.back().step, 4097);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(points[i].metrics.size(), 1u) << i;
}

TEST(TrainingJobTest, States) {
  for (const JobState state : {JobState::kQueued, JobState::kRunning, JobState::kPaused, JobState::kCompleted,
                               JobState::kFailed, JobState::kCancelled}) {
    EXPECT_EQ(parse_job_state(to_string(state)), state);
    EXPECT_EQ(is_at_rest(state), state != JobState::kQueued && state != JobState::kRunning);
  }
  EXPECT_THROW(parse_job_state("DONE"), Error);
}

}  // namespace
}  // namespace tensord::server::training_stream_test
