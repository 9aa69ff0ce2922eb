#include "server/scheduler/worker_pool.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "core/base/parallel.h"

namespace {

std::atomic<bool> has_no_threads = false;

}  // namespace

// Interposes the C library's function for the whole program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return has_no_threads ? EAGAIN : real(thread, attributes, run, argument);
}

namespace tensord::server::worker_pool_test {
namespace {

TEST(WorkerPool, WithoutAThreadThereIsNoPool) {
  has_no_threads = true;
  try {
    WorkerPool pool(4);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  }
  has_no_threads = false;
}

TEST(WorkerPool, WorkThatNoThreadCanBeMadeForWaitsForAnother) {
  WorkerPool pool(4);
  has_no_threads = true;
  std::promise<void> release, started, second;
  pool.post([&] {
    started.set_value();
    release.get_future().wait();
  });
  started.get_future().wait();
  pool.post([&] { second.set_value(); });
  has_no_threads = false;
  EXPECT_EQ(pool.threads(), 1u);
  release.set_value();
  second.get_future().wait();
}

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

// Blocks this many threads of the pool at once, then releases them.
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

TEST(WorkerPool, ThreadsThatWereIdleForLongEndAndAreReplaced) {
  const size_t kept = static_cast<size_t>(std::max(1, available_cores())), max = kept + 2;
  WorkerPool pool(max, std::chrono::milliseconds(20));
  for (int round = 0; round < 3; ++round) {
    keep_busy(pool, max);  // from the second round on it ends only if finished threads no longer count
    while (pool.threads() > kept) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(pool.threads(), kept) << "as many as there are cores stay";
  }
}

constexpr int64_t kHourNs = 3'600'000'000'000;

TEST(WorkerPool, AnEarlierAlarmDoesNotWaitForALaterOne) {
  WorkerPool pool;
  std::promise<void> early_rings, late_rings;
  std::atomic<bool> late_rang{false};
  WorkerPool::Alarm late(pool, [&] {
    late_rang = true;
    late_rings.set_value();
  });
  WorkerPool::Alarm early(pool, [&] { early_rings.set_value(); });
  late.set(kHourNs);
  early.set(1'000'000);
  early_rings.get_future().wait();
  EXPECT_FALSE(late_rang);
  late.set(0);
  late_rings.get_future().wait();
}

TEST(WorkerPool, ALaterCallTakesThePlaceOfAnEarlierOne) {
  WorkerPool pool;
  std::promise<void> holds, goes_on, last_rings;
  std::atomic<int> never_rang{0}, twice_rang{0};
  WorkerPool::Alarm holder(pool, [&] {
    holds.set_value();
    goes_on.get_future().wait();
  });
  WorkerPool::Alarm never(pool, [&] { ++never_rang; });
  WorkerPool::Alarm twice(pool, [&] { ++twice_rang; });
  WorkerPool::Alarm last(pool, [&] { last_rings.set_value(); });
  holder.set(0);
  holds.get_future().wait();  // nothing fires until all are set
  never.set(0);
  never.set(INT64_MAX);
  twice.set(0);
  twice.set(1);
  twice.set(-kHourNs);  // at once
  last.set(2);
  goes_on.set_value();
  last_rings.get_future().wait();
  EXPECT_EQ(never_rang, 0);
  EXPECT_EQ(twice_rang, 1);
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
  alarm.set(0);  // has no effect any more
}

// A thread that stops a firing alarm sleeps until its callback has ended. Repeated, so that it slept at least once.
TEST(WorkerPool, StoppingARingingAlarmIsWoken) {
  for (int round = 0; round < 50; ++round) {
    WorkerPool pool;
    std::latch rings(1), goes_on(1);
    WorkerPool::Alarm alarm(pool, [&] {
      rings.count_down();
      goes_on.wait();
    });
    alarm.set(0);
    rings.wait();
    auto stopped = std::async(std::launch::async, [&] { alarm.stop(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    goes_on.count_down();
    stopped.get();
  }
}

TEST(WorkerPool, HasAThreadHoweverFewAreAllowed) {
  WorkerPool pool(0);
  std::latch done(2);
  for (int i = 0; i < 2; ++i) pool.post([&] { done.count_down(); });
  done.wait();
  EXPECT_EQ(pool.threads(), 1u);
}

}  // namespace
}  // namespace tensord::server::worker_pool_test
