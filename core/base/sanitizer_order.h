#pragma once

// Tells the thread sanitizer about synchronization inside libraries that are built without it. Everything before
// sanitizer_release(address) happens before everything after sanitizer_acquire(address).
#ifdef TENSORD_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tensord {

#ifdef TENSORD_THREAD_SANITIZER
inline void sanitizer_release(void* address) { __tsan_release(address); }
inline void sanitizer_acquire(void* address) { __tsan_acquire(address); }
// For a function that hands over memory itself, together with the two calls.
#define TENSORD_NOT_THREAD_SANITIZED __attribute__((no_sanitize("thread")))
#else
#define TENSORD_NOT_THREAD_SANITIZED
inline void sanitizer_release(void*) {}
inline void sanitizer_acquire(void*) {}
#endif

}  // namespace tensord
