#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "core/ops/run.h"

namespace tensord::clock_test {
namespace {

// A script that reads it twice sees time advance, in nanoseconds.
TEST(TimePoint, IsTheMonotonicClock) {
  const int64_t before = Clock::system().now_ns();
  const auto first = ops::call_by_name<int64_t>("prim::TimePoint");
  const auto second = ops::call_by_name<int64_t>("prim::TimePoint");
  EXPECT_LE(before, first);
  EXPECT_LE(first, second);
  EXPECT_LE(second, Clock::system().now_ns());
}

}  // namespace
}  // namespace tensord::clock_test
