// The loops of medians.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/ops/op.h"
#include "kernels/base/lines.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
bool is_missing(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// The index of the lower median: of a NaN if there is one, or among the other elements with `skips_nan`.
template <class T>
int64_t median_position(const T* x, int64_t step, int64_t count, bool skips_nan, std::vector<int64_t>& order) {
  order.clear();
  int64_t nan = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_missing(static_cast<ComputeType<T>>(x[i * step])))
      order.push_back(i);
    else if (nan < 0)
      nan = i;
  }
  if (nan >= 0 && (!skips_nan || order.empty())) return nan;
  const auto middle = order.begin() + static_cast<int64_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](int64_t a, int64_t b) {
    const auto left = static_cast<ComputeType<T>>(x[a * step]), right = static_cast<ComputeType<T>>(x[b * step]);
    return left < right || (left == right && a < b);
  });
  return *middle;
}

void median_all(const Tensor& in, bool skips_nan, const Tensor& out) {
  const Tensor x = in.contiguous();
  dispatch_all(in.dtype(), "median", [&]<class T>() {
    if (x.numel() == 0) {
      *out.data<T>() = std::is_floating_point_v<ComputeType<T>> ? static_cast<T>(NAN) : T(0);
      return;
    }
    std::vector<int64_t> order;
    *out.data<T>() = x.data<T>()[median_position(x.data<T>(), 1, x.numel(), skips_nan, order)];
  });
}

void median_along(const Tensor& in, int64_t dim, bool keepdim, bool skips_nan, const Tensor& values,
                  const Tensor& indices) {
  if (indices.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  keepdim = keepdim && in.ndim() > 0;
  const int64_t length = line_length(in, dim), step = line_stride(in, dim);
  const auto outer = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  dispatch_all(in.dtype(), "median", [&]<class T>() {
    for_each_line<3>(without(in.sizes(), dim), {without(in.strides(), dim), outer(indices), outer(values)}, length,
                     [&](const std::array<int64_t, 3>& offset) {
                       thread_local std::vector<int64_t> order;
                       const T* x = in.data<T>() + offset[0];
                       const int64_t position = median_position(x, step, length, skips_nan, order);
                       indices.data<int64_t>()[offset[1]] = position;
                       values.data<T>()[offset[2]] = x[position * step];
                     });
  });
}

template <bool kSkipsNan>
void median_kernel(const KernelContext&, const Tensor& in, Tensor& out) {
  median_all(in, kSkipsNan, out);
}
template <bool kSkipsNan>
void median_dim_kernel(const KernelContext&, const Tensor& in, int64_t dim, bool keepdim, Tensor& values,
                       Tensor& indices) {
  median_along(in, dim, keepdim, kSkipsNan, values, indices);
}
IMPL("aten::median", kCPU, median_kernel<false>);
IMPL("aten::median.dim", kCPU, median_dim_kernel<false>);
IMPL("aten::nanmedian", kCPU, median_kernel<true>);
IMPL("aten::nanmedian.dim", kCPU, median_dim_kernel<true>);

}  // namespace
}  // namespace tensord::kernels
