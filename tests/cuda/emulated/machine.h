#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/cuda/emulated/cuda_emulated.h"

namespace tensord::cuda::emulated {

// A launch, checked already.
struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  int device = 0;
  std::function<void()> body;
};

struct Settings {
  uint64_t seed = 0;  // 0: threads and blocks in their order; 1, 4, 7 …: who became ready last goes on first
};
Settings& settings();

// Runs all threads of all blocks on this thread; used by one thread at a time. The text of a fault, else "".
std::string run_kernel(const Launch& launch);

}  // namespace tensord::cuda::emulated
