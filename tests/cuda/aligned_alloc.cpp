// Loaded before a sanitizer's library, which refuses sizes that are no multiples of the alignment. glibc takes them,
// and PocketFFT asks for them.
#include <cstdlib>

extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
  void* data = nullptr;
  return posix_memalign(&data, alignment, size) == 0 ? data : nullptr;
}
