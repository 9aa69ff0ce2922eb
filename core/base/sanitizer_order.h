#pragma once

// For hand-overs between threads in libraries that are not built for the thread sanitizer: it learns of their order
// here. What was done before sanitizer_release(address) comes before what is done after sanitizer_acquire(address).
#ifdef TENSORD_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tensord {

#ifdef TENSORD_THREAD_SANITIZER
inline void sanitizer_release(void* address) { __tsan_release(address); }
inline void sanitizer_acquire(void* address) { __tsan_acquire(address); }
// For a function that hands over memory itself, with the two calls.
#define TENSORD_NOT_THREAD_SANITIZED __attribute__((no_sanitize("thread")))
#else
#define TENSORD_NOT_THREAD_SANITIZED
inline void sanitizer_release(void*) {}
inline void sanitizer_acquire(void*) {}
#endif

}  // namespace tensord
