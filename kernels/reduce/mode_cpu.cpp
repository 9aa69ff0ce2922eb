// The loops of mode: lanes in sorted order.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/ops/op.h"
#include "kernels/base/lines.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
bool comes_before(T a, T b) {          // NaNs last
  return a < b || (b != b && a == a);  // NOLINT(misc-redundant-expression)
}

// `order` is scratch.
template <class T>
int64_t mode_position(const T* row, int64_t step, int64_t length, std::vector<int64_t>& order) {
  order.resize(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](size_t i) { return row[order[i] * step]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return comes_before(row[a * step], row[b * step]); });
  int64_t best = order[0], max = 0, run = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    ++run;
    if (i + 1 < order.size() && at(i) == at(i + 1)) continue;
    if (run > max) {
      max = run;
      best = order[i];
    }
    run = 0;
  }
  return best;
}

void mode_kernel(const KernelContext&, const Tensor& in, int64_t given_dim, bool given_keepdim, Tensor& values,
                 Tensor& indices) {
  if (indices.numel() == 0) return;
  const int64_t dim = wrap_dim(given_dim, in.ndim());
  const bool keepdim = given_keepdim && in.ndim() > 0;
  const int64_t length = line_length(in, dim), step = line_stride(in, dim);
  const auto outer = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  dispatch_all(in.dtype(), "mode", [&]<class T>() {
    for_each_line<3>(without(in.sizes(), dim), {without(in.strides(), dim), outer(indices), outer(values)}, length,
                     [&](const std::array<int64_t, 3>& offset) {
                       thread_local std::vector<int64_t> order;
                       const T* x = in.data<T>() + offset[0];
                       const int64_t position = mode_position(x, step, length, order);
                       indices.data<int64_t>()[offset[1]] = position;
                       values.data<T>()[offset[2]] = x[position * step];
                     });
  });
}

IMPL("aten::mode", kCPU, mode_kernel);

}  // namespace
}  // namespace tensord::kernels
