#include "core/base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"

namespace tensord::thread_test {
namespace {

std::atomic<int> failures{0};

void count_failures(LogLevel level, std::string_view, std::initializer_list<LogField>, const std::source_location&) {
  failures += level == LogLevel::kError;
}

class ThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink(count_failures);
    failures = 0;
  }
};

TEST_F(ThreadTest, AnExceptionEndsTheThreadAlone) {
  Thread thread("throws", [] { throw std::runtime_error("nobody catches this"); });
  thread.join();
  Thread other("throws", [] { throw 1; });
  other.join();
  EXPECT_EQ(failures, 2);
}

TEST_F(ThreadTest, WorkAfterAnExceptionGoesOn) {
  EXPECT_FALSE(run_logged("work", [] { throw Error(ErrorCode::kInternal, "x"); }));
  EXPECT_TRUE(run_logged("work", [] {}));
  EXPECT_EQ(failures, 1);
}

TEST_F(ThreadTest, RunOnThreadThrowsAsItsFunction) {
  int ran = 0;
  run_on_thread("runs", [&] { ++ran; });
  EXPECT_EQ(ran, 1);
  EXPECT_THROW(run_on_thread("runs", [] { fail(ErrorCode::kNotFound, "x"); }), Error);
  EXPECT_EQ(failures, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take all the available address space
// Root may start any number of threads, so the test exhausts the memory for their stacks.
TEST_F(ThreadTest, AThreadThatCannotBeHadIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const rlimit memory{size_t{300} << 20, size_t{300} << 20};
    setrlimit(RLIMIT_AS, &memory);
    std::atomic<bool> is_over{false};
    int code = 1;
    std::vector<Thread> threads;
    try {
      for (int i = 0; i < 1000; ++i) threads.emplace_back("waits", [&] { is_over.wait(false); });
    } catch (const Error& error) {
      code = error.code() == ErrorCode::kResourceExhausted ? 0 : 2;
    }
    is_over = true;
    is_over.notify_all();
    for (Thread& thread : threads) thread.join();
    _exit(code);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace tensord::thread_test
