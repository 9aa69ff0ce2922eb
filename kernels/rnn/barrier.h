#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace tensord::kernels {

// Where the threads of a team meet between two steps that take microseconds. A thread may stand for
// several parties, when the team is smaller than the work was cut for.
// REQUIRES: all parties are on threads of their own that run at once (one parallel_for).
class StepBarrier {
 public:
  explicit StepBarrier(int parties) : parties_(parties) {}

  // Returns when all parties have come; what they wrote before is seen after.
  void wait(int parties) {
    if (parties == parties_) return;
    const uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(parties, std::memory_order_acq_rel) + parties == parties_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    // Steps are short, so the others come soon, or else they have no processor: then give up ours.
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < kSpins)
        pause();
      else
        sched_yield();
    }
  }

 private:
  static constexpr int kSpins = 1024;
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const int parties_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
};

}  // namespace tensord::kernels
