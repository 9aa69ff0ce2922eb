#pragma once

// What AddressSanitizer and ThreadSanitizer have to be told, for the builds of the emulated devices with one of them:
// kernels are built with it, the machine that runs them is not. Without them these functions do nothing.
//   TENSORD_EMULATED_ADDRESS   bounds of tensors (with TENSORD_GUARD=1 of each), of shared memory and of stacks
//   TENSORD_EMULATED_THREAD    races: a CUDA thread is a thread, a barrier orders those that reach it
#include <cstddef>

#if defined(TENSORD_EMULATED_ADDRESS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(TENSORD_EMULATED_THREAD)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* at);
void __tsan_release(void* at);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace tensord::cuda::emulated::sanitizer {

struct Stack {
  const void* bottom = nullptr;
  size_t size = 0;
};

#if defined(TENSORD_EMULATED_ADDRESS)
inline constexpr bool kChecksBounds = true;
inline void close(const void* data, size_t size) { __asan_poison_memory_region(data, size); }
inline void open(const void* data, size_t size) { __asan_unpoison_memory_region(data, size); }
inline void begin_switch(void** kept, Stack to) { __sanitizer_start_switch_fiber(kept, to.bottom, to.size); }
// `from`: the stack that was left, if the caller wants to know it.
inline void end_switch(void* kept, Stack* from) {
  Stack left;
  __sanitizer_finish_switch_fiber(kept, &left.bottom, &left.size);
  if (from) *from = left;
}
#else
inline constexpr bool kChecksBounds = false;
inline void close(const void*, size_t) {}
inline void open(const void*, size_t) {}
inline void begin_switch(void**, Stack) {}
inline void end_switch(void*, Stack*) {}
#endif

#if defined(TENSORD_EMULATED_THREAD)
inline constexpr bool kFindsRaces = true;
inline void* this_thread() { return __tsan_get_current_fiber(); }
inline void* make_thread() { return __tsan_create_fiber(0); }
inline void become(void* thread) { __tsan_switch_to_fiber(thread, 1); }  // 1: orders nothing
inline void release(void* at) { __tsan_release(at); }
inline void acquire(void* at) { __tsan_acquire(at); }
// What is written within is nobody's.
struct Unseen {
  Unseen() { __tsan_ignore_thread_begin(); }
  ~Unseen() { __tsan_ignore_thread_end(); }
};
#else
inline constexpr bool kFindsRaces = false;
inline void* this_thread() { return nullptr; }
inline void* make_thread() { return nullptr; }
inline void become(void*) {}
inline void release(void*) {}
inline void acquire(void*) {}
struct Unseen {
  Unseen() {}
};
#endif

}  // namespace tensord::cuda::emulated::sanitizer
