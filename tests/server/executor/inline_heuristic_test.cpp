#include "server/executor/strategies/inline_heuristic.h"

#include <gtest/gtest.h>

#include <limits>

namespace tensord::server::inline_heuristic_test {
namespace {

TEST(InlineHeuristic, AreThoseOfSizesThatWereShort) {
  InlineHeuristic runs;
  EXPECT_FALSE(runs.is_short(0));
  EXPECT_FALSE(runs.is_short(1 << 20));
  runs.note(100, 5'000);
  EXPECT_TRUE(runs.is_short(0));
  EXPECT_TRUE(runs.is_short(3'000));
  EXPECT_FALSE(runs.is_short(600'000));
  runs.note(600'000, 1'000'000);
  EXPECT_FALSE(runs.is_short(600'000));
  EXPECT_TRUE(runs.is_short(100));
  runs.note(std::numeric_limits<size_t>::max(), 1);
  EXPECT_TRUE(runs.is_short(std::numeric_limits<size_t>::max()));
}

TEST(InlineHeuristic, FollowWhatRunsTakeNow) {
  InlineHeuristic runs;
  runs.note(8, InlineHeuristic::kShortNs);
  EXPECT_TRUE(runs.is_short(8));
  for (int i = 0; i < 20; ++i) runs.note(8, 10 * InlineHeuristic::kShortNs);
  EXPECT_FALSE(runs.is_short(8));
  for (int i = 0; i < 100; ++i) runs.note(8, 1'000);
  EXPECT_TRUE(runs.is_short(8));
}

}  // namespace
}  // namespace tensord::server::inline_heuristic_test
