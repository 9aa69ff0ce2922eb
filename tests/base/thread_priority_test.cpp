#include "core/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
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

// Who yields all the time must get on beside one who never does, on the same core.
TEST(ThreadPriorityTest, WhoLetsOthersRunIsNotStarved) {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &core);
  std::atomic<bool> is_done{false};
  const auto stay = [&] { return sched_setaffinity(0, sizeof(core), &core) == 0; };
  std::thread busy([&] {
    if (!stay()) return;
    while (!is_done.load(std::memory_order_relaxed)) {
    }
  });
  int pieces = 0;
  run_with_nice(10, [&] {
    if (!stay()) return;
    for (; pieces < 100; ++pieces) let_others_run();
  });
  is_done = true;
  busy.join();
  EXPECT_EQ(pieces, 100);
}

}  // namespace
}  // namespace tensord
