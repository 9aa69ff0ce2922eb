#pragma once

#include <optional>
#include <type_traits>

#include "python/binding/python.h"
#include "core/base/cancellation.h"

namespace tensord::python {

// During its lifetime on Python's main thread, long work of the engine polls for Ctrl-C and ends with KeyboardInterrupt
// (or the exception of the signal handler).
class InterruptScope {
 public:
  InterruptScope();

 private:
  std::optional<CancellationScope> scope_;
};

// without_gil for long work that Ctrl-C may end. It throws the Python exception raised meanwhile, even if the engine
// replaced it by an error of its own.
template <class Fn>
auto interruptible(Fn&& function) {
  const auto run = [&] {
    const nb::gil_scoped_release release;
    const InterruptScope scope;
    return function();
  };
  const auto throw_raised = [] {
    if (PyErr_Occurred()) throw nb::python_error();
  };
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    throw_raised();
  } else {
    auto result = run();
    throw_raised();
    return result;
  }
}

// Gives the calling thread a signal stack if it has none. oneDNN's matrix products sometimes point the stack pointer
// into their own memory; a signal handler on that stack would overwrite the memory next to it.
void use_signal_stack();

// Polled by long work; checks at most every 50 ms, and only on the main thread.
bool is_interrupted();

}  // namespace tensord::python
