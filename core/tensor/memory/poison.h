#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tensord {

// Under AddressSanitizer, free blocks of a caching allocator are marked so that a kernel
// that writes outside of its tensor is caught; otherwise these do nothing.
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
