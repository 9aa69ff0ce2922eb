#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/jit/runtime/profile.h"
#include "core/tensor/memory/memory_checks.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

// Memory of the caller to which a result should be written directly, to avoid a copy.
struct ResultMemory {
  size_t result = 0;  // index among the method's flattened results
  Storage storage;    // writable; others may write to it at any time
};

// Options of one run. The caller owns everything; it must outlive the run.
struct RunOptions {
  // Called before every instruction and between the calls of a plan; may be null. Returning true ends the run with
  // Error{kCancelled}.
  const std::function<bool()>* is_cancelled = nullptr;
  // Results that cannot be placed there are elsewhere: the caller checks where they are.
  std::span<const ResultMemory> result_memory = {};
  Profile* profile = nullptr;        // records what the run did, with a small slowdown; may be null
  bool poison = poisons_memory();    // run plans on memory filled with NaN; for tests
  bool plans_in_background = false;  // interpret a new signature until another thread has built its plan
};

}  // namespace tensord::jit
