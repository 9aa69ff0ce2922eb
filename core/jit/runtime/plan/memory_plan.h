#pragma once

#include <cstddef>
#include <vector>

namespace tensord::jit {

// A block of memory that is needed from one step to another, inclusive.
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // of each block, aligned to kArenaAlignment
  size_t arena_bytes = 0;
};

inline constexpr size_t kArenaAlignment = 64;

// Places the blocks so that those with overlapping lifetimes do not overlap in memory: largest first, each into the
// smallest gap that fits (greedy by size, Pisarchyk and Lee, 2020). If `is_shared` is false, no memory is reused.
MemoryPlan plan_memory(const std::vector<Lifetime>& pieces, bool is_shared = true);

}  // namespace tensord::jit
