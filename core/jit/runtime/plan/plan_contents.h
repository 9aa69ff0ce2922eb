#pragma once

#include <cstdint>
#include <map>

namespace tensord::jit {

// Tracks the contents of one block of memory while a plan's calls are walked: which value each byte belongs to, and
// where that value starts. Values are numbered; views lie within a value's bytes. A value that is partially overwritten
// keeps the bytes on either side.
class PlanContents {
 public:
  struct Piece {
    int64_t end = 0;
    int32_t value = 0;
    int64_t base = 0;  // position of the value's first element, even if overwritten
  };

  void write(int64_t begin, int64_t end, int32_t value);
  // Marks the contents as unknown.
  void spoil(int64_t begin, int64_t end);
  // Whether all bytes belong to `value` as written at `base`.
  bool holds(int64_t begin, int64_t end, int32_t value, int64_t base) const;
  // Keyed by first byte.
  const std::map<int64_t, Piece>& pieces() const { return pieces_; }

 private:
  std::map<int64_t, Piece> pieces_;
};

}  // namespace tensord::jit
