#pragma once

#include <cstddef>
#include <vector>

namespace tensord::jit {

// A piece of memory that is needed from one step to another, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // of each piece, aligned to kArenaAlignment
  size_t arena_bytes = 0;
};

inline constexpr size_t kArenaAlignment = 64;

// Places the pieces so that those that live at the same time do not overlap, largest first, each
// into the smallest gap it fits (the greedy-by-size rule of Pisarchyk and Lee, 2020). With
// `is_shared` false every piece gets memory of its own.
MemoryPlan plan_memory(const std::vector<Lifetime>& pieces, bool is_shared = true);

}  // namespace tensord::jit
