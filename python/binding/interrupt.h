#pragma once

#include <optional>
#include <type_traits>

#include "python/binding/python.h"
#include "core/base/cancellation.h"

namespace tensord::python {

// While one lives on Python's main thread, long work of the engine looks for Ctrl-C now and then and ends with
// KeyboardInterrupt (or what else the signal's handler raised).
class InterruptScope {
 public:
  InterruptScope();

 private:
  std::optional<CancellationScope> scope_;
};

// without_gil for what may take long: Ctrl-C ends it. What was raised meanwhile is thrown, even where the engine has
// made do with an error of its own.
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

// Gives the calling thread a stack for signals, unless it has one. oneDNN's products let the stack pointer point into
// memory of theirs now and then; what the kernel puts below it for a signal's handler would write over what lies beside
// that memory.
void use_signal_stack();

// Asked by long work: looks at most every 50 ms, and only on the main thread.
bool is_interrupted();

}  // namespace tensord::python
