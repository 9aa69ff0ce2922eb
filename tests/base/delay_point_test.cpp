#include "core/base/delay_point.h"

#include <gtest/gtest.h>

namespace tensord::delay_point_test {
namespace {

TEST(DelayPoint, ReadsTheEntryOfItsName) {
  const std::string text = "queue.pop=5,queue.push=70,swap=1000000";
  EXPECT_EQ(DelayPoint::longest_us(text, "queue.pop"), 5u);
  EXPECT_EQ(DelayPoint::longest_us(text, "queue.push"), 70u);
  EXPECT_EQ(DelayPoint::longest_us(text, "swap"), 1000000u);
  EXPECT_EQ(DelayPoint::longest_us(text, "queue"), 0u);
  EXPECT_EQ(DelayPoint::longest_us(text, "queue.pop2"), 0u);
}

TEST(DelayPoint, PassesOverWhatItCannotRead) {
  for (const char* text : {"", ",", "a", "a=", "=", "a=x", "a=1x", "a=1000001", "a=-1", "a=99999999999999999999"}) {
    EXPECT_EQ(DelayPoint::longest_us(text, "a"), 0u) << text;
  }
  EXPECT_EQ(DelayPoint::longest_us(",,a=x,a=3", "a"), 3u);
}

TEST(DelayPoint, WaitsOnlyWhereTheEnvironmentSaysSo) {
  setenv("TENSORD_DELAYS", "here=2000", 1);
  DelayPoint here("here"), there("there");
  unsetenv("TENSORD_DELAYS");
  const auto time_of = [](DelayPoint& point) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 50; ++i) point.pass();
    return std::chrono::steady_clock::now() - start;
  };
  // 50 pauses of 1 ms on average: their sum is far from both ends of the possible range.
  EXPECT_GT(time_of(here), std::chrono::milliseconds(15));
  EXPECT_EQ(DelayPoint::longest_us("there"), 0u);
  there.pass();
}

}  // namespace
}  // namespace tensord::delay_point_test
