#include "core/jit/runtime/plan/plan_contents.h"

#include <iterator>

namespace tensord::jit {

void PlanContents::write(int64_t begin, int64_t end, int32_t value) {
  if (begin >= end) return;
  spoil(begin, end);
  pieces_.emplace(begin, Piece{end, value, begin});
}

void PlanContents::spoil(int64_t begin, int64_t end) {
  if (begin >= end) return;
  auto at = pieces_.lower_bound(begin);
  if (at != pieces_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != pieces_.end() && at->first < end) {
    const int64_t first = at->first;
    const Piece piece = at->second;
    at = pieces_.erase(at);
    if (first < begin) pieces_.emplace(first, Piece{begin, piece.value, piece.base});
    if (piece.end > end) pieces_.emplace(end, Piece{piece.end, piece.value, piece.base});
  }
}

bool PlanContents::holds(int64_t begin, int64_t end, int32_t value, int64_t base) const {
  auto at = pieces_.upper_bound(begin);
  if (at == pieces_.begin()) return false;
  const Piece& piece = std::prev(at)->second;
  return piece.end >= end && piece.value == value && piece.base == base;
}

}  // namespace tensord::jit
