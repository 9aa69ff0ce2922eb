// Matrix times vector in f32 for matrices of f32 or halves, compiled for each instruction set and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "kernels/gemm/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V LoadWide(const float* at) { return hn::LoadU(D(), at); }
HWY_INLINE V LoadWide(const BFloat16* at) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<uint16_t, D> halves;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(at));
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
constexpr bool kLoadsHalf = true;
HWY_INLINE V LoadWide(const Half* at) {
  const hn::Rebind<hwy::float16_t, D> halves;
  return hn::PromoteTo(D(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(at)));
}
#else
constexpr bool kLoadsHalf = false;  // only F16C's conversions treat every number as IEEE does
#endif

// Four rows at once: x is loaded once for them, and four sums hide the latency of the FMA.
template <class T>
void RowsOf(const T* w, int64_t ld, const float* x, float* y, int64_t begin, int64_t end, int64_t k) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t n = begin;
  for (; n + 4 <= end; n += 4) {
    const T *w0 = w + n * ld, *w1 = w0 + ld, *w2 = w1 + ld, *w3 = w2 + ld;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + lanes <= k; i += lanes) {
      const V v = hn::LoadU(d, x + i);
      s0 = hn::MulAdd(v, LoadWide(w0 + i), s0);
      s1 = hn::MulAdd(v, LoadWide(w1 + i), s1);
      s2 = hn::MulAdd(v, LoadWide(w2 + i), s2);
      s3 = hn::MulAdd(v, LoadWide(w3 + i), s3);
    }
    float t[4] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                  hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
    for (; i < k; ++i) {
      t[0] += x[i] * w0[i];
      t[1] += x[i] * w1[i];
      t[2] += x[i] * w2[i];
      t[3] += x[i] * w3[i];
    }
    std::copy(t, t + 4, y + n);
  }
  for (; n < end; ++n) {
    V s = hn::Zero(d);
    int64_t i = 0;
    for (; i + lanes <= k; i += lanes) s = hn::MulAdd(hn::LoadU(d, x + i), LoadWide(w + n * ld + i), s);
    float t = hn::GetLane(hn::SumOfLanes(d, s));
    for (; i < k; ++i) t += x[i] * w[n * ld + i];
    y[n] = t;
  }
}

// Columns in groups of four vectors, whose sums stay in registers for all of k.
template <class T>
void ColumnsOf(const T* w, int64_t ld, const float* x, float* y, int64_t begin, int64_t end, int64_t k) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t n = begin;
  for (; n + 4 * lanes <= end; n += 4 * lanes) {
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const T* row = w + n;
    for (int64_t i = 0; i < k; ++i, row += ld) {
      const V v = hn::Set(d, x[i]);
      s0 = hn::MulAdd(v, LoadWide(row), s0);
      s1 = hn::MulAdd(v, LoadWide(row + lanes), s1);
      s2 = hn::MulAdd(v, LoadWide(row + 2 * lanes), s2);
      s3 = hn::MulAdd(v, LoadWide(row + 3 * lanes), s3);
    }
    hn::StoreU(s0, d, y + n);
    hn::StoreU(s1, d, y + n + lanes);
    hn::StoreU(s2, d, y + n + 2 * lanes);
    hn::StoreU(s3, d, y + n + 3 * lanes);
  }
  for (; n < end; ++n) {
    float t = 0;
    for (int64_t i = 0; i < k; ++i) t += x[i] * w[i * ld + n];
    y[n] = t;
  }
}

bool LoadsHalf() { return kLoadsHalf; }

// Calls `run` with the matrix in its own element type.
template <class Run>
void WithElements(DType dtype, const void* w, Run&& run) {
  if (dtype == DType::kBFloat16) return run(static_cast<const BFloat16*>(w));
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  if (dtype == DType::kFloat16) return run(static_cast<const Half*>(w));
#endif
  run(static_cast<const float*>(w));
}

void Rows(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t begin, int64_t end, int64_t k) {
  WithElements(dtype, w, [&](const auto* elements) { RowsOf(elements, ld, x, y, begin, end, k); });
}

void Columns(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t begin, int64_t end, int64_t k) {
  WithElements(dtype, w, [&](const auto* elements) { ColumnsOf(elements, ld, x, y, begin, end, k); });
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(LoadsHalf);
HWY_EXPORT(Rows);
HWY_EXPORT(Columns);

namespace {

// With fewer multiply-adds, a thread costs more than it saves.
constexpr int64_t kWorkPerThread = 32 * 1024;

bool is_loaded(DType dtype) { return dtype != DType::kFloat16 || HWY_DYNAMIC_DISPATCH(LoadsHalf)(); }

}  // namespace

bool gemv_rows(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k) {
  if (!is_loaded(dtype)) return false;
  parallel_for(n, std::max<int64_t>(4, kWorkPerThread / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Rows)(dtype, w, ld, x, y, begin, end, k);
  });
  return true;
}

bool gemv_columns(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k) {
  if (!is_loaded(dtype)) return false;
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);  // a narrow part would read as much memory
  parallel_for(n, std::max<int64_t>(64, kWorkPerThread / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(Columns)(dtype, w, ld, x, y, begin, end, k);
  });
  return true;
}

void gemv_rows(const float* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k) {
  gemv_rows(DType::kFloat32, w, ld, x, y, n, k);
}
void gemv_columns(const float* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k) {
  gemv_columns(DType::kFloat32, w, ld, x, y, n, k);
}

}  // namespace tensord::kernels
#endif
