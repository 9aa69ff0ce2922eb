#include "server/commands/machine_peak.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/base/clock.h"
#include "core/base/cpu_isa.h"
#include "core/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/commands/machine_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::server::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains hide the latency of two FMA units and leave registers for the factors. `numbers` has
// fourteen different values, so that the compiler cannot merge chains. Returns the number of operations.
double multiply_add(int64_t rounds, float* numbers) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, numbers[12]), y = hn::Set(d, numbers[13]);
  auto a0 = hn::Set(d, numbers[0]), a1 = hn::Set(d, numbers[1]), a2 = hn::Set(d, numbers[2]);
  auto a3 = hn::Set(d, numbers[3]), a4 = hn::Set(d, numbers[4]), a5 = hn::Set(d, numbers[5]);
  auto a6 = hn::Set(d, numbers[6]), a7 = hn::Set(d, numbers[7]), a8 = hn::Set(d, numbers[8]);
  auto a9 = hn::Set(d, numbers[9]), a10 = hn::Set(d, numbers[10]), a11 = hn::Set(d, numbers[11]);
  for (int64_t round = 0; round < rounds; ++round) {
    a0 = hn::MulAdd(a0, x, y), a1 = hn::MulAdd(a1, x, y), a2 = hn::MulAdd(a2, x, y), a3 = hn::MulAdd(a3, x, y);
    a4 = hn::MulAdd(a4, x, y), a5 = hn::MulAdd(a5, x, y), a6 = hn::MulAdd(a6, x, y), a7 = hn::MulAdd(a7, x, y);
    a8 = hn::MulAdd(a8, x, y), a9 = hn::MulAdd(a9, x, y), a10 = hn::MulAdd(a10, x, y), a11 = hn::MulAdd(a11, x, y);
  }
  const auto b0 = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), b1 = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
  const auto sum = hn::Add(hn::Add(b0, b1), hn::Add(hn::Add(a8, a9), hn::Add(a10, a11)));
  numbers[0] = hn::GetLane(hn::SumOfLanes(d, sum));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

// Sums `count` floats, a multiple of four vectors. Limited by memory bandwidth.
float add_up(const float* data, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, data + i));
    b = hn::Add(b, hn::Load(d, data + i + lanes));
    c = hn::Add(c, hn::Load(d, data + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, data + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace tensord::server::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#if HWY_TARGETS & HWY_AVX3
#include <immintrin.h>
#endif

namespace tensord::server {

namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(add_up);

using ChainFn = double (*)(int64_t rounds, float* numbers);

#if HWY_TARGETS & HWY_AVX3

// Like multiply_add, for dot products of bfloat16 pairs and of four bytes.
__attribute__((target("avx512f,avx512bf16"))) double dot_bf16(int64_t rounds, float* numbers) {
  const auto x = reinterpret_cast<__m512bh>(_mm512_set1_ps(numbers[12]));
  __m512 a[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) a[i] = _mm512_set1_ps(numbers[i]);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) a[i] = _mm512_dpbf16_ps(a[i], x, x);
  }
  __m512 sum = a[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) sum = _mm512_add_ps(sum, a[i]);
  numbers[0] = _mm512_cvtss_f32(sum);
  return static_cast<double>(rounds) * 12 * 2 * 32;
}

__attribute__((target("avx512f,avx512vnni"))) double dot_int8(int64_t rounds, float* numbers) {
  const __m512i x = _mm512_castps_si512(_mm512_set1_ps(numbers[12]));
  __m512i a[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) a[i] = _mm512_castps_si512(_mm512_set1_ps(numbers[i]));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) a[i] = _mm512_dpbusd_epi32(a[i], x, x);
  }
  __m512i sum = a[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) sum = _mm512_add_epi32(sum, a[i]);
  numbers[0] = _mm512_cvtss_f32(_mm512_castsi512_ps(sum));
  return static_cast<double>(rounds) * 12 * 2 * 64;
}

#endif

ChainFn chain_for([[maybe_unused]] ops::Precision precision, const char** unit) {
#if HWY_TARGETS & HWY_AVX3
  // Does not ask hwy::SupportedTargets(), which would reset Highway's disabled targets.
  const std::optional<CpuIsa> limit = max_cpu_isa();
  if (__builtin_cpu_supports("avx512bw") && (!limit || *limit == CpuIsa::kAvx512)) {
    if (precision == ops::Precision::kBf16 && __builtin_cpu_supports("avx512bf16")) {
      *unit = "bf16 dot product";
      return dot_bf16;
    }
    if (precision == ops::Precision::kInt8 && __builtin_cpu_supports("avx512vnni")) {
      *unit = "int8 dot product";
      return dot_int8;
    }
  }
#endif
  *unit = "f32 multiply-add";
  return [](int64_t rounds, float* numbers) { return HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, numbers); };
}

double seconds_since(int64_t start_ns) { return static_cast<double>(Clock::system().now_ns() - start_ns) / 1e9; }

// Runs chains of about 2 ms on all threads and returns the best of `tries`.
double peak_gflops(ChainFn chain, int threads, int tries) {
  constexpr int64_t kRounds = 500'000;
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    std::vector<double> done(static_cast<size_t>(threads));
    const int64_t start_ns = Clock::system().now_ns();
    parallel_run(threads, [&](int part) {
      float numbers[14];
      for (int k = 0; k < 14; ++k) numbers[k] = 1.0f + 1e-3f * static_cast<float>(k);
      numbers[12] = 0.5f;
      done[static_cast<size_t>(part)] = chain(kRounds, numbers);
    });
    const double seconds = seconds_since(start_ns);
    double total = 0;
    for (const double operations : done) total += operations;
    best = std::max(best, total / seconds / 1e9);
  }
  return best;
}

// Reads far more than the caches hold, one part per thread.
double peak_read_gbs(int threads, int tries) {
  constexpr int64_t kFloats = int64_t{24} << 20;
  const auto size = static_cast<size_t>(kFloats) * sizeof(float);
  struct Free {
    void operator()(float* data) const { ::operator delete(data, std::align_val_t(4096)); }
  };
  const std::unique_ptr<float, Free> memory(static_cast<float*>(::operator new(size, std::align_val_t(4096))));
  const int64_t part_floats = kFloats / threads / 1024 * 1024;
  parallel_run(threads, [&](int part) { std::fill_n(memory.get() + part * part_floats, part_floats, 1.0f); });
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    std::vector<float> sums(static_cast<size_t>(threads));
    const int64_t start_ns = Clock::system().now_ns();
    parallel_run(threads, [&](int part) {
      sums[static_cast<size_t>(part)] = HWY_DYNAMIC_DISPATCH(add_up)(memory.get() + part * part_floats, part_floats);
    });
    const double bytes = static_cast<double>(part_floats * threads) * sizeof(float);
    if (sums[0] > 0) best = std::max(best, bytes / seconds_since(start_ns) / 1e9);
  }
  return best;
}

}  // namespace

MachinePeak measure_peak(ops::Precision precision, int threads) {
  MachinePeak peak;
  const ChainFn chain = chain_for(precision, &peak.unit);
  peak.gflops = peak_gflops(chain, threads, 40);
  peak.read_gbs = peak_read_gbs(threads, 15);
  return peak;
}

}  // namespace tensord::server

#endif  // HWY_ONCE
