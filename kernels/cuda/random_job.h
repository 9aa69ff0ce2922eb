#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

enum class RandomUse : int8_t {
  kUniform,      // of [a, b)
  kNormal,       // mean a, deviation b
  kLogNormal,    // e to the power of a normal number
  kExponential,  // rate a
  kCauchy,       // median a, sigma b
  kGeometric,    // probability a
  kBernoulli,    // 1 with probability a
  kWhole,        // base + a number below `range`
  // One draw for each element of other tensors:
  kChances,   // bernoulli: `first`
  kPoisson,   // rates: `first`
  kBinomial,  // counts: `first`, probabilities: `second`
};

inline constexpr int kRandomBlock = 256;

// Dense elements. By PyTorch's rules each thread has its own sequence and fills elements `threads` apart: four from
// four words of 32 bits, or two if they are doubles or integers of a wide range.
struct RandomJob {
  RandomUse use = RandomUse::kUniform;
  int8_t dtype = 0;
  bool is_wide = false;  // numbers of 53 (64) bits
  int64_t numel = 0, threads = 0;
  uint64_t seed = 0, offset = 0;
  double a = 0, b = 0;
  uint64_t range = 0;
  int64_t base = 0;
  cuda::DeviceAddress out, first, second;  // `first` and `second` are double
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
