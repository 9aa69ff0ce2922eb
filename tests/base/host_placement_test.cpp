#include "core/base/host_placement.h"

#include <gmock/gmock.h>
#include <omp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/sanitizer_order.h"

namespace tensord::host_placement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<int> cores_of_this_thread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

// The cores of each thread of a team of two.
TENSORD_NOT_THREAD_SANITIZED std::set<std::vector<int>> cores_of_team() {
  std::vector<std::vector<int>> cores(2);
  sanitizer_release(&cores);
#pragma omp parallel num_threads(2)
  {
    sanitizer_acquire(&cores);
    cores[static_cast<size_t>(omp_get_thread_num())] = cores_of_this_thread();
    sanitizer_release(&cores);
  }
  sanitizer_acquire(&cores);
  return {cores.begin(), cores.end()};
}

int memory_mode() {
  int mode = -1;
  syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL);
  return mode;
}

TEST(HostPlacement, ListsOfCoresAreReadAsLinuxWritesThem) {
  EXPECT_THAT(parse_core_list("3"), ElementsAre(3));
  EXPECT_THAT(parse_core_list("8,0-2,1"), ElementsAre(0, 1, 2, 8));
  for (const char* text : {"", ",", "1,", "a", "2-1", "-1", "1-", "1--2", "0-99999", "99999999999"})
    EXPECT_THAT(error_of([&] { parse_core_list(text); }), HasSubstr("expected cores such as 0-3,8")) << text;
}

TEST(HostPlacement, CoresAndNodesThatAreNotThereAreRefused) {
  EXPECT_THAT(error_of([] { check_placement({.cores = {CPU_SETSIZE - 1}, .nodes = {}}); }),
              HasSubstr("may not use core"));
  EXPECT_THAT(error_of([] { cores_of_node(63); }), HasSubstr("no NUMA node 63"));
  EXPECT_THAT(error_of([] { cores_of_node(-1); }), HasSubstr("no NUMA node -1"));
  check_placement({.cores = cores_of_this_thread(), .nodes = {}});
}

TEST(HostPlacement, TheThreadAndItsTeamMoveAndComeBack) {
  std::thread([] {
    set_thread_budget(2);
    const std::vector<int> all = cores_of_this_thread();
    const HostPlacement last{.cores = {all.back()}, .nodes = {}}, first{.cores = {all.front()}, .nodes = {}};
    EXPECT_THAT(cores_of_team(), ElementsAre(all));
    {
      const PlacementScope scope(&last);
      EXPECT_THAT(cores_of_team(), ElementsAre(last.cores));
      place_threads(&first);
      EXPECT_THAT(cores_of_team(), ElementsAre(first.cores));
      // A new thread is where the one that started it is, until it is placed itself.
      std::thread([&] {
        EXPECT_EQ(cores_of_this_thread(), first.cores);
        place_threads(nullptr);
        EXPECT_EQ(cores_of_this_thread(), all);
      }).join();
    }
    EXPECT_THAT(cores_of_team(), ElementsAre(all));
  }).join();
}

TEST(HostPlacement, ATeamMovesWhileItsThreadHasABudgetOfOne) {
  std::thread([] {
    set_thread_budget(2);
    const std::vector<int> all = cores_of_this_thread();
    const HostPlacement last{.cores = {all.back()}, .nodes = {}};
    place_threads(&last);
    EXPECT_THAT(cores_of_team(), ElementsAre(last.cores));
    set_thread_budget(1);
    place_threads(nullptr);
    EXPECT_THAT(cores_of_team(), ElementsAre(all));
  }).join();
}

TEST(HostPlacement, MemoryComesFromTheNode) {
  const std::string refusal = error_of([] { check_placement({.cores = {}, .nodes = {0}}); });
  if (refusal != "no error") GTEST_SKIP() << refusal;
  std::thread([] {
    constexpr int kDefault = 0, kPreferred = 1;
    const HostPlacement node{.cores = {}, .nodes = {0}};
    EXPECT_EQ(memory_mode(), kDefault);
    {
      const PlacementScope scope(&node);
      EXPECT_EQ(memory_mode(), kPreferred);
    }
    EXPECT_EQ(memory_mode(), kDefault);
  }).join();
}

}  // namespace
}  // namespace tensord::host_placement_test
