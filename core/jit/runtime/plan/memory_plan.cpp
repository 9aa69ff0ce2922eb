#include "core/jit/runtime/plan/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tensord::jit {

namespace {

size_t aligned(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool overlaps(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// The start of the smallest gap of at least `bytes` between the placed pieces, which are sorted by offset.
size_t find_gap(const std::vector<size_t>& placed, const std::vector<Lifetime>& pieces,
                const std::vector<size_t>& offsets, const Lifetime& piece) {
  const size_t bytes = aligned(piece.bytes);
  size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
  for (const size_t other : placed) {
    if (!overlaps(pieces[other], piece)) continue;
    if (offsets[other] >= end + bytes && offsets[other] - end < best_gap) {
      best = end;
      best_gap = offsets[other] - end;
    }
    end = std::max(end, offsets[other] + aligned(pieces[other].bytes));
  }
  return best == SIZE_MAX ? end : best;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& pieces, bool is_shared) {
  MemoryPlan plan;
  plan.offsets.resize(pieces.size());
  std::vector<size_t> order(pieces.size()), placed;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pieces[a].bytes > pieces[b].bytes; });
  for (const size_t piece : order) {
    const size_t offset = is_shared ? find_gap(placed, pieces, plan.offsets, pieces[piece]) : plan.arena_bytes;
    plan.offsets[piece] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + aligned(pieces[piece].bytes));
    const auto after = std::upper_bound(placed.begin(), placed.end(), piece,
                                        [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    placed.insert(after, piece);
  }
  return plan;
}

}  // namespace tensord::jit
