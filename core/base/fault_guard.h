#pragma once

#include <cstddef>

namespace tensord {

// Keeps the process alive when a mapping loses its memory: another process truncates the file, or a tmpfs is full.
// Access to such a page raises SIGBUS. The handler then replaces the whole guarded range by zeros and the thread
// continues; has_faulted() tells the user of the range that its contents are invalid. A guard costs nothing as long as
// no fault occurs. Thread-safe. Faults outside guarded ranges keep their usual effect.
class FaultGuard {
 public:
  // The range consists of whole pages of a mapping that outlives the guard. Throws Error{kResourceExhausted} when too
  // many guards exist.
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
