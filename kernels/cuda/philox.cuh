#pragma once

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) with cuRAND's use of its counter:
// one sequence for each thread, starting at an offset. Also cuRAND's conversions of its words to numbers.
#include "kernels/cuda/device.cuh"

namespace tensord::cuda {

struct Words {
  uint32_t at[4];
};

__device__ __forceinline__ Words philox(Words counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.at[0], b = uint64_t{0xCD9E8D57u} * counter.at[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.at[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.at[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

class Philox {
 public:
  __device__ Philox(uint64_t seed, uint64_t sequence, uint64_t offset)
      : seed_(seed), sequence_(sequence), next_(offset / 4) {}
  __device__ __forceinline__ Words next() {
    const Words counter{{static_cast<uint32_t>(next_), static_cast<uint32_t>(next_ >> 32),
                         static_cast<uint32_t>(sequence_), static_cast<uint32_t>(sequence_ >> 32)}};
    ++next_;
    return philox(counter, static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
  }

 private:
  uint64_t seed_, sequence_, next_;
};

// In (0, 1].
__device__ __forceinline__ float uniform_of(uint32_t word) {
  constexpr float kUnit = 2.3283064e-10f;  // 2^-32
  return static_cast<float>(word) * kUnit + kUnit / 2.0f;
}
__device__ __forceinline__ double uniform_of(uint32_t low, uint32_t high) {
  constexpr double kUnit = 1.1102230246251565e-16;  // 2^-53
  return static_cast<double>(uint64_t{low} ^ (uint64_t{high} << 21)) * kUnit + kUnit / 2.0;
}

// As many numbers as four words give.
template <class T>
struct Numbers {
  static constexpr int kCount = sizeof(T) == 8 ? 2 : 4;
  T at[kCount];
};
__device__ __forceinline__ void draw_uniform(const Words& words, Numbers<float>& out) {
  for (int i = 0; i < 4; ++i) out.at[i] = uniform_of(words.at[i]);
}
__device__ __forceinline__ void draw_uniform(const Words& words, Numbers<double>& out) {
  for (int i = 0; i < 2; ++i) out.at[i] = uniform_of(words.at[2 * i], words.at[2 * i + 1]);
}

// The Box–Muller transform: two uniform numbers give two of mean 0 and deviation 1.
__device__ __forceinline__ void draw_normal(const Words& words, Numbers<float>& out) {
  constexpr float kUnit = 2.3283064e-10f * 6.2831855f;
  for (int i = 0; i < 2; ++i) {
    const float angle = static_cast<float>(words.at[2 * i + 1]) * kUnit + kUnit / 2.0f;
    const float radius = ::sqrtf(-2.0f * ::logf(uniform_of(words.at[2 * i])));
    out.at[2 * i] = radius * ::sinf(angle);
    out.at[2 * i + 1] = radius * ::cosf(angle);
  }
}
__device__ __forceinline__ void draw_normal(const Words& words, Numbers<double>& out) {
  const double angle = 2 * 3.14159265358979323846 * uniform_of(words.at[2], words.at[3]);
  const double radius = ::sqrt(-2.0 * ::log(uniform_of(words.at[0], words.at[1])));
  out.at[0] = radius * ::sin(angle);
  out.at[1] = radius * ::cos(angle);
}

}  // namespace tensord::cuda
