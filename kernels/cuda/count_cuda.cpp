// Counting values on a CUDA device: composed of other operators, which check ranges as the CPU's loops do.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/ops/op.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;

void need_counted_data(const Tensor& x, const char* op) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, op, ": the result's shape depends on the tensor's data");
}

Tensor zeros_on(const Tensor& like, const Dims& sizes, DType dtype) {
  return ops::zeros(sizes, {.dtype = dtype, .device = like.device()});
}

// The smallest and the largest element; 0 and -1 for no elements.
struct Ends {
  int64_t low = 0, high = -1;
};
Ends ends_of(const Tensor& x) {
  if (x.numel() == 0) return {};
  return {ops::min(x).item_int(), ops::max(x).item_int()};
}

Tensor bincount_cuda(const Tensor& x, const std::optional<Tensor>& weights, int64_t minimum) {
  need_counted_data(x, "bincount");
  check(is_integral(x.dtype(), true) && x.ndim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  check(minimum >= 0, "minlength should be >= 0");
  const Tensor bins = x.to(DType::kInt64);
  const Ends ends = ends_of(bins);
  check(ends.low >= 0, "bincount only supports 1-d non-negative integral inputs.");
  check(!weights || weights->numel() == x.numel(), "weights should be 1-d and have the same length as input");
  check(ends.high < INT64_MAX, "bincount: the value ", ends.high, " is too large");
  const Dims sizes{std::max(minimum, ends.high + 1)};
  if (!weights || x.numel() == 0)
    return ops::scatter_add_(zeros_on(x, sizes, DType::kInt64), 0, bins, ops::ones_like(bins));
  const DType dtype = weights->dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
  return ops::scatter_add_(zeros_on(x, sizes, dtype), 0, bins, reshape(weights->to(dtype), x.sizes()));
}
IMPL("aten::bincount", kCUDA, bincount_cuda);

Tensor one_hot_cuda(const Tensor& x, int64_t classes) {
  check(x.dtype() == DType::kInt64, "one_hot is only applicable to index tensor.");
  Dims sizes = x.sizes();
  if (x.is_meta()) {
    if (classes < 0) need_counted_data(x, "one_hot");
    sizes.push_back(classes);
    return Tensor::meta(sizes, DType::kInt64, x.device());
  }
  check(x.numel() > 0 || classes > 0, "Can not infer total number of classes from empty tensor.");
  const Ends ends = ends_of(x);
  check(ends.low >= 0, "Class values must be non-negative.");
  if (classes == -1) classes = ends.high + 1;
  check(classes >= 1, "num_classes should be positive");
  check(ends.high < classes, "Class values must be smaller than num_classes.");
  sizes.push_back(classes);
  return ops::scatter_(zeros_on(x, sizes, DType::kInt64), -1, unsqueeze(x, -1), Scalar(1));
}
IMPL("aten::one_hot", kCUDA, one_hot_cuda);

// Step by step in the dtype of x, as the CPU counts.
template <class T>
Tensor bin_of(const Tensor& x, double low, double high, int64_t bins) {
  const T first = static_cast<T>(low), last = static_cast<T>(high);
  const Tensor steps =
      ops::div(ops::sub(x, Scalar(static_cast<double>(first))), Scalar(static_cast<double>(last - first)));
  const Tensor at = ops::mul(steps, Scalar(static_cast<double>(bins)));
  const Tensor is_inside =
      ops::logical_and(ops::ge(x, Scalar(static_cast<double>(first))), ops::le(x, Scalar(static_cast<double>(last))));
  const Tensor bin = ops::clamp_max(ops::nan_to_num(at).to(DType::kInt64), Scalar(bins - 1));
  return ops::where(is_inside, bin, ops::full_like(bin, Scalar(bins)));
}

void histc_cuda(const KernelContext&, const Tensor& x, int64_t bins, const Scalar& min, const Scalar& max,
                Tensor& out) {
  double low = min.to_double(), high = max.to_double();
  if (low == high && x.numel() > 0) low = ops::min(x).item_double(), high = ops::max(x).item_double();
  if (low == high) --low, ++high;
  check(std::isfinite(low) && std::isfinite(high), "histc: range of [", low, ", ", high, "] is not finite");
  check(low < high, "histc: max must be larger than min");
  const Tensor flat = reshape(x, Dims{-1});
  const Tensor bin =
      x.dtype() == DType::kFloat32 ? bin_of<float>(flat, low, high, bins) : bin_of<double>(flat, low, high, bins);
  // Values outside are counted behind the last bin.
  const Tensor counts = zeros_on(x, Dims{bins + 1}, DType::kInt64);
  ops::scatter_add_(counts, 0, bin, ops::ones_like(bin));
  out.copy_from(narrow(counts, 0, 0, bins));
}
IMPL("aten::histc", kCUDA, histc_cuda);

void isin_cuda(const KernelContext&, const Tensor& elements, const Tensor& tests, bool, bool invert, Tensor& out) {
  if (tests.numel() == 0 || out.numel() == 0) return static_cast<void>(ops::fill_(out, Scalar(invert)));
  DType dtype = promote_operands(std::array{Operand(elements), Operand(tests)});
  if (dtype == DType::kBool) dtype = DType::kUInt8;
  const Tensor x = elements.to(dtype), all = std::get<0>(ops::sort(reshape(tests.to(dtype), Dims{-1})));
  // NaN is an element of nothing, and is sorted last.
  const int64_t count = is_floating(dtype) ? ops::sum(ops::eq(all, all)).item_int() : all.numel();
  if (count == 0) return static_cast<void>(ops::fill_(out, Scalar(invert)));
  const Tensor sorted = narrow(all, 0, 0, count);
  const Tensor at = ops::clamp_max(ops::searchsorted(sorted, x), Scalar(count - 1));
  const Tensor found = view(ops::index_select(sorted, 0, reshape(at, Dims{-1})), x.sizes());
  out.copy_from(invert ? ops::ne(found, x) : ops::eq(found, x));
}
IMPL("aten::isin.Tensor_Tensor", kCUDA, isin_cuda);

}  // namespace
}  // namespace tensord::kernels
