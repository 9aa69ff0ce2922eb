#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tensord {

// Under AddressSanitizer, free blocks of a caching allocator are poisoned, so that a kernel that writes outside of its
// tensor is caught. Otherwise these functions do nothing.
inline void poison([[maybe_unused]] void* data, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, size_bytes);
#endif
}
inline void unpoison([[maybe_unused]] void* data, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, size_bytes);
#endif
}

}  // namespace tensord
