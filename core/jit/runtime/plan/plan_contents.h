#pragma once

#include <cstdint>
#include <map>

namespace tensord::jit {

// What lies in one memory while a plan's calls are walked through: which value, and where it began. A value is a
// number; its views lie within its bytes. Written over in part, a value keeps the bytes on either side.
class PlanContents {
 public:
  struct Piece {
    int64_t end = 0;
    int32_t value = 0;
    int64_t base = 0;  // where the value's first element lies, or lay
  };

  void write(int64_t begin, int64_t end, int32_t value);
  // Nothing that can be told lies there from now on.
  void spoil(int64_t begin, int64_t end);
  // Whether all of the bytes are of `value` as it was written at `base`.
  bool holds(int64_t begin, int64_t end, int32_t value, int64_t base) const;
  // By first byte.
  const std::map<int64_t, Piece>& pieces() const { return pieces_; }

 private:
  std::map<int64_t, Piece> pieces_;
};

}  // namespace tensord::jit
