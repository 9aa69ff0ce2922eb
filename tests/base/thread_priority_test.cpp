#include "core/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <thread>

namespace tensord {
namespace {

struct Priority {
  int nice = 0, policy = 0;
  bool operator==(const Priority&) const = default;
};

Priority priority_of_this_thread() {
  return {getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), sched_getscheduler(0)};
}

TEST(ThreadPriorityTest, IsOfTheThreadAndThoseThatItStarts) {
  const Priority before = priority_of_this_thread();
  ASSERT_LT(before.nice, 17);
  Priority own, started;
  run_with_nice(17, [&] {
    let_others_run();
    own = priority_of_this_thread();
    std::thread([&] {
      let_others_run();
      started = priority_of_this_thread();
    }).join();
  });
  EXPECT_EQ(own, (Priority{17, SCHED_BATCH}));
  EXPECT_EQ(started, own);
  EXPECT_EQ(priority_of_this_thread(), before);
}

TEST(ThreadPriorityTest, ZeroChangesNothing) {
  const Priority before = priority_of_this_thread();
  Priority inside;
  run_with_nice(0, [&] { inside = priority_of_this_thread(); });
  EXPECT_EQ(inside, before);
}

TEST(ThreadPriorityTest, ErrorsComeThrough) {
  EXPECT_THROW(run_with_nice(5, [] { throw std::runtime_error("no"); }), std::runtime_error);
}

// Of the calling thread, in nanoseconds; 0 where the system does not say.
uint64_t turn_of_this_thread() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 ? attributes.runtime_ns : 0;
}

void work_for_a_turn() {
  const auto now_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  };
  const auto end_ns = now_ns() + 100'000;
  while (now_ns() < end_ns) {
  }
}

TEST(ThreadPriorityTest, LetsThoseRunThatWaitForItsCore) {
  if (turn_of_this_thread() == 0) GTEST_SKIP() << "this system has no turns of a thread's own";
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &core);
  const auto stay = [&] { return sched_setaffinity(0, sizeof(core), &core) == 0; };
  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> steps{0};
  std::thread busy([&] {
    if (!stay()) return;
    while (!is_done.load(std::memory_order_relaxed)) steps.fetch_add(1, std::memory_order_relaxed);
  });
  uint64_t turn = 0;
  int pieces = 0, gave_way = 0;
  run_with_nice(10, [&] {
    turn = turn_of_this_thread();
    if (!stay()) return;
    while (steps.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    for (; pieces < 100; ++pieces) {
      work_for_a_turn();
      const uint64_t before = steps.load(std::memory_order_relaxed);
      let_others_run();
      if (steps.load(std::memory_order_relaxed) != before) ++gave_way;
    }
  });
  is_done = true;
  busy.join();
  EXPECT_EQ(turn, 100'000u);  // with longer ones it would hardly get on
  EXPECT_EQ(pieces, 100);
  // Some 20 of them: a thread that has had its share by then has lost the core already. Without the call it is none.
  EXPECT_GE(gave_way, 5);
}

}  // namespace
}  // namespace tensord
