#include "core/jit/runtime/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit::memory_plan_test {
namespace {

bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

std::vector<Lifetime> random_pieces(unsigned seed, size_t count) {
  std::mt19937 generator(seed);
  std::vector<Lifetime> pieces;
  for (size_t i = 0; i < count; ++i) {
    const int first = static_cast<int>(generator() % 50);
    pieces.push_back({generator() % 5000, first, first + static_cast<int>(generator() % 8)});
  }
  return pieces;
}

// The minimum of any plan: the live bytes at the fullest step.
size_t lower_bound(const std::vector<Lifetime>& pieces) {
  size_t max = 0;
  for (int step = 0; step < 60; ++step) {
    size_t live = 0;
    for (const Lifetime& piece : pieces) live += step >= piece.first && step <= piece.last ? piece.bytes : 0;
    max = std::max(max, live);
  }
  return max;
}

TEST(MemoryPlan, PiecesThatLiveTogetherDoNotOverlap) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<Lifetime> pieces = random_pieces(seed, 80);
    const MemoryPlan plan = plan_memory(pieces);
    ASSERT_EQ(plan.offsets.size(), pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0u);
      EXPECT_LE(plan.offsets[i] + pieces[i].bytes, plan.arena_bytes);
      for (size_t k = 0; k < i; ++k) {
        if (pieces[i].first > pieces[k].last || pieces[k].first > pieces[i].last) continue;
        EXPECT_FALSE(overlap(plan.offsets[i], pieces[i].bytes, plan.offsets[k], pieces[k].bytes)) << i << " and " << k;
      }
    }
    EXPECT_GE(plan.arena_bytes, lower_bound(pieces));
    EXPECT_LE(plan.arena_bytes, 2 * lower_bound(pieces));
  }
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({640, i, i + 1});
  EXPECT_EQ(plan_memory(chain).arena_bytes, 1280u);
  EXPECT_EQ(plan_memory(chain, false).arena_bytes, 6400u);
}

TEST(MemoryPlan, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).arena_bytes, 0u);
  EXPECT_EQ(plan_memory({{0, 0, 5}}).arena_bytes, 0u);
}

TEST(PlanText, HasEveryCall) {
  Plan plan;
  for (const char* name : {"first", "second"}) {
    PlanCall& call = plan.calls.emplace_back();
    call.name = name;
  }
  const std::string text = describe_calls(plan, "");
  EXPECT_EQ(text.find("0:  = first("), 0u) << text;
  EXPECT_NE(text.find("\n1:  = second("), std::string::npos) << text;
}

}  // namespace
}  // namespace tensord::jit::memory_plan_test
