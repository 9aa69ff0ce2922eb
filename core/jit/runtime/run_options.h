#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/jit/runtime/profile.h"
#include "core/tensor/memory/memory_checks.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

// Memory of the caller that a result of a run should lie in, so that nobody has to copy it there.
struct ResultMemory {
  size_t result = 0;  // number among what the method returns, tuples taken apart
  Storage storage;    // writable; others may write to it at any time
};

// What one run is told beside its arguments. All of it is the caller's, and outlives the run.
struct RunOptions {
  // Asked before every instruction and between the calls of a plan; may be null. True ends the run with
  // Error{kCancelled}.
  const std::function<bool()>* is_cancelled = nullptr;
  // Results that cannot be put there lie elsewhere: the caller looks where they are.
  std::span<const ResultMemory> result_memory = {};
  Profile* profile = nullptr;        // gets what the run did, which slows it down a little; may be null
  bool poison = poisons_memory();    // plans run on memory filled with NaN; for tests
  bool plans_in_background = false;  // a signature that is new is interpreted until another thread has built its plan
};

}  // namespace tensord::jit
