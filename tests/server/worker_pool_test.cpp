#include "server/scheduler/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "core/base/parallel.h"

namespace tensord::server {
namespace {

TEST(WorkerPool, ThreadsAreMadeWhenThoseThatAreThereAreBusy) {
  WorkerPool pool(4);
  EXPECT_EQ(pool.threads(), 1u);
  std::latch all_run(3), over(1), done(3);
  for (int i = 0; i < 3; ++i) {
    pool.post([&] {
      all_run.count_down();
      over.wait();
      done.count_down();
    });
  }
  all_run.wait();
  EXPECT_LE(pool.threads(), 4u);
  over.count_down();
  done.wait();
}

TEST(WorkerPool, BeyondTheMostWorkWaitsItsTurn) {
  WorkerPool pool(1);
  std::promise<void> release, started;
  pool.post([&] {
    started.set_value();
    release.get_future().wait();
  });
  started.get_future().wait();
  EXPECT_FALSE(pool.is_waited_for());
  std::promise<void> second;
  pool.post([&] { second.set_value(); });
  EXPECT_TRUE(pool.is_waited_for());
  EXPECT_EQ(pool.threads(), 1u);
  release.set_value();
  second.get_future().wait();
  EXPECT_FALSE(pool.is_waited_for());
}

TEST(WorkerPool, WorkAfterAnExceptionRuns) {
  WorkerPool pool(1);
  pool.post([] { throw std::runtime_error("nobody catches this"); });
  std::promise<void> second;
  pool.post([&] { second.set_value(); });
  second.get_future().wait();
}

// Blocks so many threads of the pool at once, and lets them go.
void keep_busy(WorkerPool& pool, size_t threads) {
  std::latch all_run(static_cast<std::ptrdiff_t>(threads)), over(1), done(static_cast<std::ptrdiff_t>(threads));
  for (size_t i = 0; i < threads; ++i) {
    pool.post([&] {
      all_run.count_down();
      over.wait();
      done.count_down();
    });
  }
  all_run.wait();
  over.count_down();
  done.wait();
}

// Ten seconds, nearly all of them asleep.
TEST(WorkerPool, ThreadsThatWereIdleForLongEndAndAreReplaced) {
  const size_t kept = static_cast<size_t>(std::max(1, available_cores())), most = kept + 2;
  WorkerPool pool(most);
  keep_busy(pool, most);
  EXPECT_EQ(pool.threads(), most);
  while (pool.threads() > kept) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pool.threads(), kept) << "as many as there are cores stay";
  keep_busy(pool, most);  // only ends where those that are over count no more
  EXPECT_EQ(pool.threads(), most);
}

TEST(WorkerPool, AlarmsRingInTheirOrderAndOnce) {
  WorkerPool pool;
  std::promise<void> late;
  std::atomic<int> early_rang{0}, never_rang{0};
  WorkerPool::Alarm never(pool, [&] { ++never_rang; });
  WorkerPool::Alarm early(pool, [&] { ++early_rang; });
  WorkerPool::Alarm last(pool, [&] { late.set_value(); });
  never.set(50'000'000);
  last.set(20'000'000);
  early.set(1'000'000);
  never.set(INT64_MAX);
  late.get_future().wait();
  EXPECT_EQ(early_rang, 1);
  EXPECT_EQ(never_rang, 0);
}

TEST(WorkerPool, AStoppedAlarmHasRungOut) {
  WorkerPool pool;
  std::promise<void> rings;
  std::atomic<bool> has_ended{false};
  WorkerPool::Alarm alarm(pool, [&] {
    rings.set_value();
    std::this_thread::yield();
    has_ended = true;
  });
  alarm.set(0);
  rings.get_future().wait();
  alarm.stop();
  EXPECT_TRUE(has_ended);
  alarm.set(0);  // does nothing any more
}

}  // namespace
}  // namespace tensord::server
