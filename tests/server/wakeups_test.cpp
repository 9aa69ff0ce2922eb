// Threads that wait, with nobody else to wake them: each hand-over is one that a lost wake-up would never end. Pauses
// and timeouts are longer than any test, so that they cannot stand in for it; what hangs is ended by tests/support.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/work_thread.h"
#include "server/repository/demand_loads.h"
#include "server/repository/periodic_thread.h"
#include "server/training/batch_stream.h"

namespace tensord::server {
namespace {

using std::chrono::hours;

// So often that the other thread has gone to sleep in between at least once, however the two are scheduled.
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
}  // namespace tensord::server
