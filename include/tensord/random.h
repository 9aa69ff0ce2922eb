#pragma once

// The generator of random numbers of a thread, and its seed.
#include "tensord/tensor.h"
//
#include "core/ops/generator.h"

namespace tensord {

// Starts the process's generator anew, as PyTorch's manual_seed does. Waits for whoever draws from it.
inline void manual_seed(uint64_t seed) {
  ops::Generator& generator = ops::default_generator();
  const auto lock = generator.lock();
  generator.set_seed(seed);
}

}  // namespace tensord
