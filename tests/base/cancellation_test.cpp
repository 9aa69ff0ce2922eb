#include "core/base/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "core/base/cancellable_wait.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/base/thread_priority.h"

namespace tensord::cancellation_test {
namespace {

ErrorCode code_of_check() {
  try {
    check_work_cancelled();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;  // no error
}

TEST(Cancellation, InnerWorkEndsWithTheOuterOne) {
  EXPECT_FALSE(is_work_cancelled());
  bool is_cancelled = false;
  const CancellationScope outer([&] { return is_cancelled; });
  {
    const CancellationScope inner([] { return false; });
    EXPECT_EQ(code_of_check(), ErrorCode::kInternal);
    is_cancelled = true;
    EXPECT_EQ(code_of_check(), ErrorCode::kCancelled);
    EXPECT_TRUE(is_work_cancelled());
  }
  is_cancelled = false;
  EXPECT_FALSE(is_work_cancelled());
}

TEST(Cancellation, HasADeadline) {
  const CancellationScope over({}, Clock::system().now_ns());
  EXPECT_EQ(code_of_check(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(is_work_cancelled());
}

TEST(Cancellation, PiecesAreLookedAfter) {
  int64_t done = 0;
  const CancellationScope scope([&] { return done >= 30; });
  const auto take = [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin, done);
    done = end;
  };
  in_pieces(25, 10, take);
  EXPECT_EQ(done, 25);
  done = 0;
  EXPECT_THROW(in_pieces(100, 10, take), Error);
  EXPECT_EQ(done, 30);
  done = 0;
  in_pieces(0, 10, take);
  EXPECT_EQ(done, 0);
}

TEST(Cancellation, WaitsEnd) {
  Mutex mutex;
  CondVar changed;
  std::atomic<bool> is_cancelled{false};
  const CancellationScope scope([&] { return is_cancelled.load(); });
  MutexLock lock(mutex);
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(120); };
  EXPECT_FALSE(cancellable_wait(changed, lock, soon(), [] { return false; }));
  EXPECT_TRUE(cancellable_wait(changed, lock, soon(), [] { return true; }));
  is_cancelled = true;
  EXPECT_THROW(cancellable_wait(changed, lock, std::chrono::steady_clock::time_point::max(), [] { return false; }),
               Error);
}

TEST(Cancellation, ThreadsThatAreWaitedForShareIt) {
  std::atomic<bool> is_cancelled{true};
  const CancellationScope scope([&] { return is_cancelled.load(); });
  EXPECT_THROW(run_on_thread("works", [] { check_work_cancelled(); }), Error);
  EXPECT_THROW(run_with_nice(0, [] { check_work_cancelled(); }), Error);
  Thread other("other", [] { EXPECT_FALSE(is_work_cancelled()); });
  other.join();
}

}  // namespace
}  // namespace tensord::cancellation_test
