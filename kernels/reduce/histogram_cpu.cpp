// The loops of histc.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;

struct Range {
  double low, high;
};

// The given range, or the data's if both ends are equal; never empty.
Range value_range(const Tensor& x, Range given, const char* name) {
  if (given.low == given.high && x.numel() > 0) {
    given = {ops::min(x).item_double(), ops::max(x).item_double()};
  }
  if (given.low == given.high) given = {given.low - 1, given.high + 1};
  check(std::isfinite(given.low) && std::isfinite(given.high), name, ": range of [", given.low, ", ", given.high,
        "] is not finite");
  check(given.low < given.high, name, ": max must be larger than min");
  return given;
}

template <class T>
void count_values(const Tensor& x, const Range& given, const Tensor& counts) {
  const Range range = value_range(x, given, "histc");
  const T low = static_cast<T>(range.low), high = static_cast<T>(range.high);
  const int64_t bins = counts.numel();
  T* count = counts.data<T>();
  std::fill_n(count, bins, T(0));
  const Tensor dense = x.contiguous();
  for (const T value : std::span(dense.data<T>(), static_cast<size_t>(dense.numel()))) {
    if (!(value >= low && value <= high)) continue;  // also true for NaN
    const auto at = static_cast<int64_t>((value - low) / (high - low) * static_cast<T>(bins));
    count[std::min(at, bins - 1)] += 1;
  }
}

void histc_kernel(const KernelContext&, const Tensor& x, int64_t bins, const Scalar& min, const Scalar& max,
                  Tensor& out) {
  const Tensor counts = Tensor::empty(Dims{bins}, x.dtype());
  const Range given{min.to_double(), max.to_double()};
  x.dtype() == DType::kFloat32 ? count_values<float>(x, given, counts) : count_values<double>(x, given, counts);
  out.copy_from(counts);
}

IMPL("aten::histc", kCPU, histc_kernel);

}  // namespace
}  // namespace tensord::kernels
