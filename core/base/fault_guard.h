#pragma once

#include <cstddef>

namespace tensord {

// Keeps the process alive when a mapping loses the memory behind it: a file that its owner cut shorter, a full tmpfs.
// Touching such a page raises SIGBUS. While a guard lives, its whole range is then replaced by zeros, the thread goes
// on, and has_faulted() tells whoever used the range that what was read and written there means nothing. Costs nothing
// as long as nothing happens. Thread-safe. Faults outside of guarded ranges are as before.
class FaultGuard {
 public:
  // The range is whole pages of a mapping that outlives the guard. Throws Error{kResourceExhausted} when there are
  // too many guards.
  FaultGuard(void* data, size_t size_bytes);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
  bool has_faulted() const;

 private:
  struct Range;
  struct Table;
  Range* range_;
};

}  // namespace tensord
