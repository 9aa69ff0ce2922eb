#include "core/base/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <thread>

namespace {
thread_local int yields = 0;
}

// Interposes the library's function, to count calls.
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace tensord::thread_priority_test {
namespace {

struct Priority {
  int nice = 0, policy = 0;
  bool operator==(const Priority&) const = default;
};

Priority priority_of_this_thread() {
  return {getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())), sched_getscheduler(0)};
}

// Independent of the priority of the test run itself: 19 is the lowest.
TEST(ThreadPriorityTest, IsOfTheThreadAndThoseThatItStarts) {
  const Priority before = priority_of_this_thread();
  Priority own, started;
  run_with_nice(19, [&] {
    let_others_run();
    own = priority_of_this_thread();
    std::thread([&] {
      let_others_run();
      started = priority_of_this_thread();
    }).join();
  });
  EXPECT_EQ(own, (Priority{19, SCHED_BATCH}));
  EXPECT_EQ(started, own);
  EXPECT_EQ(priority_of_this_thread(), before);
}

TEST(ThreadPriorityTest, AThreadThatIsLowerAlreadyStaysThere) {
  Priority inside;
  run_with_nice(19, [&] { run_with_nice(3, [&] { inside = priority_of_this_thread(); }); });
  EXPECT_EQ(inside, (Priority{19, SCHED_BATCH}));
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

// The time slice of the calling thread, in nanoseconds; 0 if the system does not report it.
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

// The scheduler decides which thread gets a yielded core, so the test only checks the yielding.
TEST(ThreadPriorityTest, GivesItsCoreAwayBetweenPieces) {
  if (turn_of_this_thread() == 0) GTEST_SKIP() << "this system has no turns of a thread's own (Linux from 6.12 on)";
  uint64_t turn = 0;
  int low = 0, started = 0;
  const auto yields_of = [](int calls) {
    const int before = yields;
    for (int i = 0; i < calls; ++i) let_others_run();
    return yields - before;
  };
  run_with_nice(10, [&] {
    turn = turn_of_this_thread();
    low = yields_of(3);
    std::thread([&] { started = yields_of(2); }).join();
  });
  EXPECT_EQ(turn, 100'000u);  // with longer time slices it would hardly progress
  EXPECT_EQ(low, 3);
  EXPECT_EQ(started, 2);
  EXPECT_EQ(yields_of(1), 0) << "threads of usual priority keep their core";
}

}  // namespace
}  // namespace tensord::thread_priority_test
