// Random numbers: elements of distributions, and counts of events.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

// Transforms a uniform number of (0, 1], or a normal one.
template <class T>
__device__ __forceinline__ T shaped(const RandomJob& job, T x) {
  const T a = static_cast<T>(job.a), b = static_cast<T>(job.b);
  constexpr T kEpsilon = sizeof(T) == 8 ? T(2.220446049250313e-16) : T(1.1920929e-07);
  switch (job.use) {
    case RandomUse::kUniform: return x * (b - a) + a;
    case RandomUse::kNormal: return x * b + a;
    case RandomUse::kLogNormal: return ::exp(x * b + a);
    case RandomUse::kExponential: return -T(1) / a * (x >= T(1) - kEpsilon / 2 ? -kEpsilon / 2 : ::log(x));
    case RandomUse::kCauchy: {
      const T inside = x > T(1) - kEpsilon ? T(1) - kEpsilon : x < kEpsilon ? kEpsilon : x;
      return a + b * ::tan(T(3.14159265358979323846) * (inside - T(0.5)));
    }
    case RandomUse::kGeometric: {
      const T steps = ::ceil(::log(x) / ::log1p(-a));
      return steps < T(1) ? T(1) : steps;
    }
    default: return x <= a ? T(1) : T(0);  // kBernoulli
  }
}

template <class T>
__global__ void draw_kernel(const __grid_constant__ RandomJob job) {
  Philox generator(job.seed, static_cast<uint64_t>(thread_index()), job.offset);
  void* const out = pointer<void>(job.out);
  const bool is_normal = job.use == RandomUse::kNormal || job.use == RandomUse::kLogNormal;
  constexpr int kCount = Numbers<T>::kCount;
  for (int64_t begin = thread_index(); begin < job.numel; begin += job.threads * kCount) {
    Numbers<T> numbers;
    is_normal ? draw_normal(generator.next(), numbers) : draw_uniform(generator.next(), numbers);
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = begin + k * job.threads;
      if (i >= job.numel) continue;
      store_element(out, job.dtype, i, shaped(job, numbers.at[k]));
      // Rounding may have given the upper end, which does not belong to the range.
      const bool is_end = job.use == RandomUse::kUniform && load_element<T>(out, job.dtype, i) >= static_cast<T>(job.b);
      if (is_end) store_element(out, job.dtype, i, static_cast<T>(job.a));
    }
  }
}

__global__ void whole_kernel(const __grid_constant__ RandomJob job) {
  Philox generator(job.seed, static_cast<uint64_t>(thread_index()), job.offset);
  const int count = job.is_wide ? 2 : 4;
  for (int64_t begin = thread_index(); begin < job.numel; begin += job.threads * count) {
    const Words words = generator.next();
    for (int k = 0; k < count; ++k) {
      const int64_t i = begin + k * job.threads;
      if (i >= job.numel) continue;
      const uint64_t bits = job.is_wide ? uint64_t{words.at[2 * k]} << 32 | words.at[2 * k + 1] : uint64_t{words.at[k]};
      const uint64_t below = job.range == 0 ? bits : bits % job.range;
      store_element(pointer<void>(job.out), job.dtype, i,
                    static_cast<int64_t>(below + static_cast<uint64_t>(job.base)));
    }
  }
}

// --- counts of events, drawn as on the CPU

class Draws {
 public:
  __device__ Draws(const RandomJob& job, int64_t element)
      : generator_(job.seed, static_cast<uint64_t>(element), job.offset) {}
  __device__ __forceinline__ double uniform() {
    if (left_ == 0) {
      words_ = generator_.next();
      left_ = 2;
    }
    --left_;
    return uniform_of(words_.at[2 * left_], words_.at[2 * left_ + 1]);
  }

 private:
  Philox generator_;
  Words words_{};
  int left_ = 0;
};

// Small rates: multiplies uniform numbers until the product is below exp(-rate). Large rates: Hörmann's transformed
// rejection (PTRS, 1993).
__device__ double draw_poisson(double rate, Draws& draws) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = ::exp(-rate);
    double count = 0;
    for (double product = draws.uniform(); product > limit; ++count) product *= draws.uniform();
    return count;
  }
  const double b = 0.931 + 2.53 * ::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draws.uniform() - 0.5, v = draws.uniform(), us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = ::log(v) + ::log(inverse_alpha) - ::log(a / (us * us) + b);
    if (left <= -rate + k * ::log(rate) - ::lgamma(k + 1)) return k;
  }
}

// Small counts: sums of geometric steps. Large counts: Hörmann's transformed rejection (BTRS, 1993). p is at most one
// half.
__device__ double draw_few(double count, double p, Draws& draws) {
  const double log_q = ::log1p(-p);
  double steps = 0;
  for (double found = 0;; ++found) {
    steps += ::ceil(::log(draws.uniform()) / log_q);
    if (steps > count) return found;
  }
}
__device__ double draw_many(double count, double p, Draws& draws) {
  const double deviation = ::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5, accepted = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, middle = ::floor((count + 1) * p);
  for (;;) {
    const double u = draws.uniform() - 0.5, v = draws.uniform(), us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || k > count) continue;
    const double left = ::log(v * alpha / (a / (us * us) + b));
    const double right = (k - middle) * ::log(odds) + ::lgamma(middle + 1) + ::lgamma(count - middle + 1) -
                         ::lgamma(k + 1) - ::lgamma(count - k + 1);
    if (left <= right) return k;
  }
}
__device__ double draw_binomial(double count, double p, Draws& draws) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  const bool is_turned = p > 0.5;
  const double q = is_turned ? 1 - p : p;
  const double found = count * q >= 10 ? draw_many(count, q, draws) : draw_few(count, q, draws);
  return is_turned ? count - found : found;
}

__device__ __forceinline__ int64_t bits_of(double value) { return __builtin_bit_cast(int64_t, value); }

__device__ double draw_for(const RandomJob& job, int64_t i) {
  Draws draws(job, i);
  const double first = pointer<double>(job.first)[i];
  if (job.use == RandomUse::kChances) {
    if (first >= 0 && first <= 1) return draws.uniform() <= first ? 1 : 0;
    note_error(job.errors, KernelError::kProbabilityOutOfRange);
    return 0;
  }
  if (job.use == RandomUse::kPoisson) {
    if (first >= 0 && first < 1e15) return draw_poisson(first, draws);
    note_error(job.errors, KernelError::kRateOutOfRange, bits_of(first));
    return 0;
  }
  const double chance = pointer<double>(job.second)[i];
  if (first < 1e15 && chance >= 0 && chance <= 1) return draw_binomial(first, chance, draws);
  note_error(job.errors, KernelError::kTrialsOutOfRange, bits_of(first), bits_of(chance));
  return 0;
}

__global__ void each_kernel(const __grid_constant__ RandomJob job) {
  for (int64_t i = thread_index(); i < job.numel; i += thread_count())
    store_element(pointer<void>(job.out), job.dtype, i, draw_for(job, i));
}

}  // namespace

void random(const RandomJob& job, cuda::StreamHandle stream) {
  const bool is_each = job.use >= RandomUse::kChances;
  const auto kernel = is_each                        ? each_kernel
                      : job.use == RandomUse::kWhole ? whole_kernel
                      : job.is_wide                  ? draw_kernel<double>
                                                     : draw_kernel<float>;
  const dim3 blocks(is_each ? blocks_for(job.numel, kRandomBlock) : static_cast<unsigned>(job.threads / kRandomBlock));
  launch(kernel, blocks, dim3(kRandomBlock), 0, stream, job);
}

}  // namespace tensord::kernels
