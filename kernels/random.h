#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

namespace tensord::kernels {

// Source of random numbers: the Mersenne Twister with PyTorch's ways of drawing from it,
// so that one seed gives the same numbers. Hold lock() while drawing.
class Generator {
 public:
  explicit Generator(uint64_t seed) { set_seed(seed); }
  void set_seed(uint64_t seed) {
    engine_.seed(static_cast<uint32_t>(seed));
    seed_ = seed;
    next_normal_.reset();
  }
  uint64_t seed() const { return seed_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  uint32_t bits32() { return engine_(); }
  uint64_t bits64() {
    const uint64_t high = engine_();
    return high << 32 | engine_();
  }
  // In [0, 1): `digits` of 24 for float, 11 for half, 8 for bfloat16.
  float uniform_float(int digits = 24);
  double uniform_double();
  // Mean 0, deviation 1. Two are made at a time and one is kept.
  double normal();

 private:
  std::mutex mutex_;
  std::mt19937 engine_;
  uint64_t seed_ = 0;
  std::optional<double> next_normal_;
};

// The process-wide generator that torch.manual_seed sets.
Generator& default_generator();

}  // namespace tensord::kernels
