#include "core/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/memory_limit.h"

namespace tensord::parallel_test {
namespace {

// Counts the ranges of a call, and checks that they cover everything exactly once.
template <class Call>
int count_ranges(int64_t count, Call&& call) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  std::atomic<int> ranges{0};
  call([&](int64_t begin, int64_t end) {
    ++ranges;
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (const auto& times : seen) EXPECT_EQ(times, 1);
  return ranges;
}

class Parallel : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_budget(available_cores()); }
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take all the available address space
// OpenMP would end the process. Root may start any number of threads, so the test exhausts the memory for their stacks.
TEST_F(Parallel, ABudgetIsWhatTheSystemHas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const rlimit memory{size_t{300} << 20, size_t{300} << 20};
    setrlimit(RLIMIT_AS, &memory);
    set_thread_budget(1000);
    std::atomic<int64_t> sum{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(thread_budget() < 1000 && sum == 1000 ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST_F(Parallel, CutsByGrain) {
  for (const int threads : {1, 2, 3, 7}) {
    set_thread_budget(threads);
    EXPECT_EQ(thread_budget(), threads);
    EXPECT_EQ(count_ranges(100, [](auto fn) { parallel_for(100, 1, fn); }), threads);
    EXPECT_EQ(count_ranges(100, [](auto fn) { parallel_for(100, 51, fn); }), 1);
    EXPECT_EQ(count_ranges(2, [](auto fn) { parallel_for(2, 1, fn); }), std::min(threads, 2));
  }
}

TEST_F(Parallel, CutsByCost) {
  set_thread_budget(3);
  EXPECT_EQ(count_ranges(1000, [](auto fn) { parallel_for_cost(1000, 10, fn); }), 1);
  EXPECT_EQ(count_ranges(1000, [](auto fn) { parallel_for_cost(1000, 25, fn); }), 2);
  EXPECT_EQ(count_ranges(1000, [](auto fn) { parallel_for_cost(1000, 100, fn); }), 3);
  EXPECT_EQ(count_ranges(1, [](auto fn) { parallel_for_cost(1, 1e9, fn); }), 1);
  EXPECT_EQ(count_ranges(0, [](auto fn) { parallel_for_cost(0, 1e9, fn); }), 0);
  EXPECT_EQ(count_ranges(10, [](auto fn) { parallel_for_cost(10, 0, fn); }), 1);
}

TEST_F(Parallel, SaysHowManyPartsAreWorthIt) {
  EXPECT_EQ(parallel_parts(1000, 19, 8), 1);
  EXPECT_EQ(parallel_parts(1000, 20, 8), 2);
  EXPECT_EQ(parallel_parts(1000, 1e6, 8), 8);
  EXPECT_EQ(parallel_parts(3, 1e6, 8), 3);
  EXPECT_EQ(parallel_parts(0, 1e6, 8), 1);
  EXPECT_EQ(parallel_parts(INT64_MAX, 1e300, 2), 2);
}

TEST_F(Parallel, RunsEachPartOnce) {
  set_thread_budget(2);
  std::vector<std::atomic<int>> seen(5);
  parallel_run(5, [&](int part) { ++seen[static_cast<size_t>(part)]; });
  for (const auto& times : seen) EXPECT_EQ(times, 1);
}

TEST_F(Parallel, RunsAloneInsideOfItself) {
  set_thread_budget(3);
  parallel_for(3, 1, [](int64_t, int64_t) {
    EXPECT_EQ(thread_budget(), 1);
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(8, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
}

TEST_F(Parallel, ThrowsTheFirstError) {
  set_thread_budget(3);
  std::atomic<int> ended{0};
  EXPECT_THROW(parallel_for(3, 1,
                            [&](int64_t begin, int64_t) {
                              ++ended;
                              check(begin == 0, "not the first");
                            }),
               Error);
  EXPECT_EQ(ended, 3);
}

TEST_F(Parallel, WorkThatIsGivenUpEndsBetweenPieces) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const int threads : {1, 3}) {
    set_thread_budget(threads);
    constexpr int64_t kCount = int64_t{1} << 40;
    std::atomic<int64_t> done{0};
    std::atomic<bool> is_cancelled{false};
    // Like Ctrl-C in Python: only the calling thread is notified.
    const CancellationScope scope([&] { return is_cancelled && std::this_thread::get_id() == caller; });
    const auto run = [&](int64_t count) {
      parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        done += end - begin;
        std::this_thread::sleep_for(std::chrono::microseconds(end - begin));
        if (done > 1000) is_cancelled = true;
      });
    };
    ErrorCode code = ErrorCode::kInternal;
    try {
      run(kCount);
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_EQ(code, ErrorCode::kCancelled);
    EXPECT_LT(done, kCount / 2);
    // The next call is complete.
    is_cancelled = false;
    done = 0;
    run(500);
    EXPECT_EQ(done, 500);
  }
}

TEST_F(Parallel, WorkThatMayBeGivenUpIsDoneOnceByPieces) {
  const CancellationScope scope([] { return false; });
  for (const int threads : {1, 2}) {
    set_thread_budget(threads);
    std::atomic<int64_t> smallest{INT64_MAX};
    const auto slow = [&](auto fn) {
      parallel_for(1000, 3, [&](int64_t begin, int64_t end) {
        smallest = std::min<int64_t>(smallest, end - begin);
        std::this_thread::sleep_for(std::chrono::microseconds(200 * (end - begin)));
        fn(begin, end);
      });
    };
    EXPECT_GT(count_ranges(1000, slow), threads);
    EXPECT_GE(smallest, 3);
    EXPECT_EQ(count_ranges(90, [](auto fn) { parallel_for(90, 3, fn); }), threads);  // short because of its grain size
  }
}

TEST_F(Parallel, AnErrorEndsTheOtherThreadsWhereWorkMayBeGivenUp) {
  set_thread_budget(3);
  const CancellationScope scope([] { return false; });
  std::atomic<int64_t> done{0};
  try {
    parallel_for(int64_t{1} << 40, 1, [&](int64_t begin, int64_t end) {
      check(begin > 0, "the first");
      done += end - begin;
      std::this_thread::sleep_for(std::chrono::microseconds(end - begin));
    });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the first");
  }
  EXPECT_LT(done, int64_t{1} << 39);
}

TEST_F(Parallel, BudgetsBelongToThreads) {
  set_thread_budget(2);
  std::thread([] {
    set_thread_budget(5);
    EXPECT_EQ(count_ranges(10, [](auto fn) { parallel_for(10, 1, fn); }), 5);
  }).join();
  EXPECT_EQ(thread_budget(), 2);
}

// A tree like /sys/fs/cgroup, and a file like /proc/self/cgroup.
class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() { std::filesystem::create_directories(root_ / "memory/a/b"); }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::vector<std::string> folders(const char* controller) const {
    return cgroup_folders(controller, root_.string(), (root_ / "membership").string());
  }
  const std::filesystem::path root_ = std::filesystem::temp_directory_path() / concat("cgroup_test_", getpid());
};

TEST_F(CgroupTest, TheOwnGroupAndThoseAboveItLimit) {
  write("membership", "9:name=systemd:/x\n4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/c\n");
  EXPECT_EQ(folders("memory"),
            (std::vector<std::string>{root_, root_ / "memory/a/b", root_ / "memory/a", root_ / "memory"}));
  const size_t machine = memory_limit({});
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory_limit(folders("memory")), machine);
  write("memory/a/memory.limit_in_bytes", "300000000");
  EXPECT_EQ(memory_limit(folders("memory")), 300'000'000u);
  write("memory/a/b/memory.limit_in_bytes", "200000000");
  EXPECT_EQ(memory_limit(folders("memory")), 200'000'000u);
  write("c/memory.max", "100000000");
  EXPECT_EQ(memory_limit(folders("memory")), 100'000'000u);
  write("c/memory.max", "max");
  EXPECT_EQ(memory_limit(folders("memory")), 200'000'000u);
  // v1's quota of a parent group, and v2's.
  write("cpu/a/cpu.cfs_quota_us", "-1");
  write("cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota_cores(folders("cpu")), 0);
  write("cpu/cpu.cfs_quota_us", "350000");
  write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota_cores(folders("cpu")), 4);
  write("c/cpu.max", "max 100000");
  EXPECT_EQ(quota_cores(folders("cpu")), 4);
  write("c/cpu.max", "50000 100000");
  EXPECT_EQ(quota_cores(folders("cpu")), 1);
}

// A container has its own group mounted, whatever its path is on the host.
TEST_F(CgroupTest, PathsOfAnotherNamespaceAreNotThere) {
  write("memory/memory.limit_in_bytes", "300000000");
  for (const char* path : {"/docker/1234", "/../../elsewhere", "/"}) {
    write("membership", concat("4:memory:", path, "\n0::", path, "\n"));
    EXPECT_EQ(memory_limit(folders("memory")), 300'000'000u) << path;
  }
  std::filesystem::remove(root_ / "membership");
  EXPECT_EQ(memory_limit(folders("memory")), 300'000'000u);
}

}  // namespace
}  // namespace tensord::parallel_test
