#pragma once

// The random number generator of a thread, and its seed.
#include "tensord/tensor.h"
//
#include "core/ops/generator.h"

namespace tensord {

// Seeds the process's default generator, as PyTorch's manual_seed does. Waits for threads that draw from it.
inline void manual_seed(uint64_t seed) {
  ops::Generator& generator = ops::default_generator();
  const auto lock = generator.lock();
  generator.set_seed(seed);
}

}  // namespace tensord
