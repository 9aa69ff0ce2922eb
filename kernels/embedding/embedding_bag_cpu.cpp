// Sums, means and maxima of table rows, compiled for each instruction set and chosen at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding/embedding_bag_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/embedding/embedding_bag.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The table is larger than the caches, so rows are prefetched this many ahead, also across the ends of bags.
constexpr int64_t kAhead = 8;

template <class T, class I>
HWY_INLINE void PrefetchRow(const BagArgs<T, I>& args, int64_t i) {
  if (i >= args.index_count) return;
  const char* row = reinterpret_cast<const char*>(args.table + static_cast<int64_t>(args.indices[i]) * args.row_stride);
  const int64_t bytes = std::min<int64_t>(args.width * static_cast<int64_t>(sizeof(T)), 512);
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

// kVectors vectors of the bag's sum, from element `at` on.
template <int kVectors, class T, class I>
HWY_INLINE void SumVectors(const BagArgs<T, I>& args, int64_t begin, int64_t end, T factor, int64_t at, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  for (int64_t i = begin; i < end; ++i) {
    if (at == 0) PrefetchRow(args, i + kAhead);
    const auto index = static_cast<int64_t>(args.indices[i]);
    if (index == args.padding_idx) continue;
    const T* row = args.table + index * args.row_stride + at;
    if (args.weights) {
      const auto weight = hn::Set(d, args.weights[i]);
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(hn::LoadU(d, row + v * lanes), weight, sums[v]);
    } else {
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, row + v * lanes));
    }
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(hn::Mul(sums[v], hn::Set(d, factor)), d, out + at + v * lanes);
}

// Elements of the bag's sum from `at` on, one by one.
template <class T, class I>
void SumRest(const BagArgs<T, I>& args, int64_t begin, int64_t end, T factor, int64_t at, T* out) {
  std::fill(out + at, out + args.width, T(0));
  for (int64_t i = begin; i < end; ++i) {
    if (at == 0) PrefetchRow(args, i + kAhead);
    const auto index = static_cast<int64_t>(args.indices[i]);
    if (index == args.padding_idx) continue;
    const T* row = args.table + index * args.row_stride;
    const T weight = args.weights ? args.weights[i] : T(1);
    for (int64_t k = at; k < args.width; ++k) out[k] += row[k] * weight;
  }
  for (int64_t k = at; k < args.width; ++k) out[k] *= factor;
}

// For a mean the sum is multiplied by the factor.
template <class T, class I>
void SumBag(const BagArgs<T, I>& args, int64_t begin, int64_t end, T factor, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t at = 0;
  for (; at + 4 * lanes <= args.width; at += 4 * lanes) SumVectors<4>(args, begin, end, factor, at, out);
  for (; at + lanes <= args.width; at += lanes) SumVectors<1>(args, begin, end, factor, at, out);
  // The last vector may overlap the one before it.
  if (at < args.width && args.width >= lanes)
    SumVectors<1>(args, begin, end, factor, args.width - lanes, out);
  else if (at < args.width)
    SumRest(args, begin, end, factor, at, out);
}

template <class T, class I>
void MaxBag(const BagArgs<T, I>& args, int64_t begin, int64_t end, T* out, I* from) {
  std::fill_n(out, args.width, T(0));
  if (from) std::fill_n(from, args.width, I(0));
  bool is_first = true;
  for (int64_t i = begin; i < end; ++i) {
    PrefetchRow(args, i + kAhead);
    const auto index = static_cast<int64_t>(args.indices[i]);
    if (index == args.padding_idx) continue;
    const T* row = args.table + index * args.row_stride;
    for (int64_t k = 0; k < args.width; ++k) {
      if (!is_first && !(row[k] > out[k])) continue;
      out[k] = row[k];
      if (from) from[k] = static_cast<I>(index);
    }
    is_first = false;
  }
}

template <class T, class I>
void Bags(const BagArgs<T, I>& args, int64_t begin_bag, int64_t end_bag) {
  for (int64_t bag = begin_bag; bag < end_bag; ++bag) {
    const int64_t begin = args.first(bag), end = args.last(bag);
    T* out = args.out + bag * args.width;
    int64_t rows = end - begin;
    if (args.padding_idx >= 0) rows -= std::count(args.indices + begin, args.indices + end, I(args.padding_idx));
    if (args.bag_sizes) args.bag_sizes[bag] = static_cast<I>(rows);
    if (args.mode == BagMode::kMax)
      MaxBag(args, begin, end, out, args.max_indices ? args.max_indices + bag * args.width : nullptr);
    else
      SumBag(args, begin, end, args.mode == BagMode::kMean && rows > 0 ? T(1) / static_cast<T>(rows) : T(1), out);
  }
}

void BagsF32I64(const BagArgs<float, int64_t>& args, int64_t begin, int64_t end) { Bags(args, begin, end); }
void BagsF32I32(const BagArgs<float, int32_t>& args, int64_t begin, int64_t end) { Bags(args, begin, end); }
void BagsF64I64(const BagArgs<double, int64_t>& args, int64_t begin, int64_t end) { Bags(args, begin, end); }
void BagsF64I32(const BagArgs<double, int32_t>& args, int64_t begin, int64_t end) { Bags(args, begin, end); }

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(BagsF32I64);
HWY_EXPORT(BagsF32I32);
HWY_EXPORT(BagsF64I64);
HWY_EXPORT(BagsF64I32);

template <>
void sum_bags(const BagArgs<float, int64_t>& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BagsF32I64)(args, begin, end);
}
template <>
void sum_bags(const BagArgs<float, int32_t>& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BagsF32I32)(args, begin, end);
}
template <>
void sum_bags(const BagArgs<double, int64_t>& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BagsF64I64)(args, begin, end);
}
template <>
void sum_bags(const BagArgs<double, int32_t>& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(BagsF64I32)(args, begin, end);
}

}  // namespace tensord::kernels
#endif
