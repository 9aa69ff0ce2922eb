#pragma once

#include <optional>

#include "clients/engine/binding/python.h"
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

// Gives the calling thread a stack for signals, unless it has one. oneDNN's products let the stack pointer point into
// memory of theirs now and then; what the kernel puts below it for a signal's handler would write over what lies beside
// that memory.
void use_signal_stack();

// Asked by long work: looks at most every 20 ms, and only on the main thread.
bool is_interrupted();

}  // namespace tensord::python
