// Threads that wait, with no other thread to wake them: a lost wake-up hangs the test at that hand-over. Pauses and
// timeouts are longer than any test, so that they cannot hide it. tests/support kills a test that hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/work_thread.h"
#include "server/repository/demand_loads.h"
#include "server/repository/periodic_thread.h"
#include "server/scheduler/scheduler.h"
#include "server/training/data/batch_stream.h"

namespace tensord::server::wakeups_test {
namespace {

using std::chrono::hours;

// Enough rounds that the other thread has slept in between at least once, however the two are scheduled.
constexpr int kRounds = 50;

std::vector<std::pair<std::string, Tensor>> one_row() { return {{"x", Tensor::empty(Dims{1, 2}, DType::kFloat32)}}; }

BatchStream::Popped pop(BatchStream& stream) {
  StreamedBatch batch;
  return stream.pop(hours(1), batch);
}

TEST(WakeUps, BatchesThatAreWaitedFor) {
  BatchStream stream(1 << 20, 0);
  stream.attach();
  std::atomic<int> taken = 0;
  std::thread reader([&] {
    while (pop(stream) == BatchStream::Popped::kBatch) {
      ++taken;
      taken.notify_one();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    stream.push(std::nullopt, one_row());
    taken.wait(i);
  }
  stream.detach(/*is_complete=*/true);
  reader.join();
  EXPECT_EQ(taken, kRounds);
}

TEST(WakeUps, StreamsThatAreClosed) {
  for (int i = 0; i < kRounds; ++i) {
    BatchStream stream(1 << 20, 0);
    auto popped = std::async(std::launch::async, [&] { return pop(stream); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stream.close(ErrorCode::kUnavailable, "over");
    EXPECT_EQ(popped.get(), BatchStream::Popped::kNothing);
  }
}

TEST(WakeUps, StreamsThatAreComplete) {
  for (int i = 0; i < kRounds; ++i) {
    BatchStream stream(1 << 20, 0);
    stream.attach();
    auto popped = std::async(std::launch::async, [&] { return pop(stream); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stream.detach(/*is_complete=*/true);
    EXPECT_EQ(popped.get(), BatchStream::Popped::kComplete);
  }
}

TEST(WakeUps, PeriodicThreadsThatEnd) {
  for (int i = 0; i < kRounds; ++i) {
    const PeriodicThread thread(hours(1), [] { FAIL() << "before its time"; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(WakeUps, WorkThatIsPosted) {
  std::atomic<int> done = 0;
  WorkThread work;
  for (int i = 0; i < kRounds; ++i) {
    work.post([&] {
      ++done;
      done.notify_one();
    });
    done.wait(i);
  }
  EXPECT_EQ(done, kRounds);
}

TEST(WakeUps, WorkThreadsThatEnd) {
  for (int i = 0; i < kRounds; ++i) {
    const WorkThread work(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Every second task makes two ready, which are handed out one by one.
class InPairs final : public SchedulingPolicy {
 public:
  Added add(TaskPtr& task) override {
    waiting_.push_back(std::move(task));
    if (waiting_.size() % 2 != 0) return Added::kWaits;
    ready_ = waiting_.size();
    return Added::kIsReady;
  }
  Batch next(int64_t) override {
    Batch batch;
    if (ready_ == 0) return batch;
    --ready_;
    batch.tasks.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    return batch;
  }
  Batch sweep(int64_t, bool) override { return {}; }
  int64_t next_expiry_ns() const override { return kNoDeadline; }
  bool runs_alone() const override { return false; }
  size_t size() const override { return waiting_.size(); }
  std::vector<TaskPtr> drain() override { return std::exchange(waiting_, {}); }

 private:
  std::vector<TaskPtr> waiting_;
  size_t ready_ = 0;
};

// Runs until another one runs beside it.
class Meeting final : public Task {
 public:
  Meeting(std::latch& met, std::latch& done) : met_(met), done_(done) {}
  void run(size_t, int64_t) override {
    met_.arrive_and_wait();
    done_.count_down();
  }
  void reject(ErrorCode, const char*) override { ADD_FAILURE() << "rejected"; }

 private:
  std::latch &met_, &done_;
};

// One wake-up, two tasks: the worker that takes the first one passes the wake-up on.
TEST(WakeUps, WorkersForAllThatOneTaskMadeReady) {
  Scheduler::Options options;
  options.workers = 2;
  Scheduler scheduler(std::make_unique<InPairs>(), options);
  for (int i = 0; i < kRounds; ++i) {
    std::latch met(2), done(2);
    scheduler.submit(std::make_unique<Meeting>(met, done));
    scheduler.submit(std::make_unique<Meeting>(met, done));
    done.wait();
  }
}

TEST(WakeUps, LoadsOnDemand) {
  std::atomic<int> loaded = 0, answered = 0;
  DemandLoads loads(1, 4, [&](const std::string&) { ++loaded; });
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(loads.add("model", [&] {
      ++answered;
      answered.notify_one();
    }));
    answered.wait(i);
  }
  EXPECT_EQ(loaded, kRounds);
}

TEST(WakeUps, LoadsOnDemandThatEnd) {
  for (int i = 0; i < kRounds; ++i) {
    DemandLoads loads(2, 4, [](const std::string&) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    loads.stop();
  }
}

}  // namespace
}  // namespace tensord::server::wakeups_test
