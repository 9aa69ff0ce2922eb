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

// Asked by long work: looks at most every 20 ms, and only on the main thread.
bool is_interrupted();

}  // namespace tensord::python
