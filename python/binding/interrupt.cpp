#include "python/binding/interrupt.h"

#include <signal.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

namespace tensord::python {
namespace {

const std::thread::id main_thread = std::this_thread::get_id();

}  // namespace

bool is_interrupted() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last_look;
  if (std::this_thread::get_id() != main_thread) return false;
  const auto now = Clock::now();
  if (now - last_look < std::chrono::milliseconds(50)) return false;
  last_look = now;
  const nb::gil_scoped_acquire gil;
  // The error stays set, and the caller receives it (set_error).
  const bool is_raised = PyErr_Occurred() || PyErr_CheckSignals() != 0;
  if (is_raised) last_look = {};  // the next check reports it again
  return is_raised;
}

void use_signal_stack() {
  constexpr size_t kBytes = size_t{1} << 18;
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || !(stack.ss_flags & SS_DISABLE)) return;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  if (sigaltstack(&stack, nullptr) != 0) munmap(memory, kBytes);
}

InterruptScope::InterruptScope() { scope_.emplace(is_interrupted); }

}  // namespace tensord::python
