// Medians, and reductions that leave out NaN.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/ops/attributes/samples.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/common/lanes.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/reduce/dims.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::KernelContext;
using ops::TensorMeta;
using MaybeDims = std::optional<IntList>;
using MaybeDType = std::optional<DType>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Position of the lower median: of a NaN where there is one, or among the others when `skips_nan`.
template <class T>
int64_t median_position(const T* x, int64_t step, int64_t count, bool skips_nan, std::vector<int64_t>& order) {
  order.clear();
  int64_t nan = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_nan(static_cast<ComputeType<T>>(x[i * step])))
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

void check_median_dtype(const Tensor& in) {
  if (in.dtype() == DType::kBool) fail_dtype("median", in.dtype());
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
  const int64_t length = lane_length(in, dim), step = lane_stride(in, dim);
  const auto outer = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  dispatch_all(in.dtype(), "median", [&]<class T>() {
    for_each_lane<3>(without(in.sizes(), dim), {without(in.strides(), dim), outer(indices), outer(values)}, length,
                     [&](const std::array<int64_t, 3>& offset) {
                       thread_local std::vector<int64_t> order;
                       const T* x = in.data<T>() + offset[0];
                       const int64_t position = median_position(x, step, length, skips_nan, order);
                       indices.data<int64_t>()[offset[1]] = position;
                       values.data<T>()[offset[2]] = x[position * step];
                     });
  });
}

// Equal elements share the gradient, and NaNs where the median is one.
Tensor median_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  const Expr x = in, y = Expr(args.outputs[0]);
  const Expr is_chosen = std::isnan(y.tensor().item_double()) ? x != x : x == y;
  const Expr count = Expr(ops::call("aten::sum", is_chosen.tensor()));
  return gradient::fit_gradient(Expr(g) * is_chosen / count, in);
}

void add_median(const char* name, bool skips_nan) {
  const std::string full = concat("aten::", name), dim = concat(full, ".dim");
  ops::OpBuilder(concat(full, "(Tensor self) -> Tensor").c_str(), __FILE__, __LINE__)
      .infer([](const Tensor& in) {
        check_median_dtype(in);
        return TensorMeta{{}, in.dtype(), {}, in.device()};
      })
      .gradient(gradient::of_first(median_gradient))
      .saves("self, result")
      .reduction();
  ops::KernelBuilder(full.c_str(), kCPU, [skips_nan](const KernelContext&, const Tensor& in, Tensor& out) {
    median_all(in, skips_nan, out);
  });
  ops::OpBuilder(concat(dim, "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)").c_str(),
                 __FILE__, __LINE__)
      .infer([](const Tensor& in, int64_t d, bool keepdim) {
        check_median_dtype(in);
        check(in.ndim() == 0 || in.sizes()[wrap_dim(d, in.ndim())] > 0, "median(): Expected reduction dim ", d,
              " to have non-zero size.");
        const ReducedDims reduced(in, Dims{d});
        return std::vector<TensorMeta>{reduced.meta(in, keepdim, in.dtype()), reduced.meta(in, keepdim, DType::kInt64)};
      })
      .gradient(gradient::of_first(chosen_gradient))
      .saves("result1")
      .reduction();
  ops::KernelBuilder(dim.c_str(), kCPU,
                     [skips_nan](const KernelContext&, const Tensor& in, int64_t d, bool keepdim, Tensor& values,
                                 Tensor& indices) { median_along(in, d, keepdim, skips_nan, values, indices); });
}

Tensor without_nan(const Tensor& in) {
  return is_floating(in.dtype()) ? ops::call("aten::nan_to_num", in, 0.0, HUGE_VAL, -HUGE_VAL) : in;
}
OP("aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .direct([](const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype) {
      return ops::call("aten::sum.dim_IntList", without_nan(in), dims ? *dims : Dims{}, keepdim,
                       dtype ? ops::Value(*dtype) : ops::Value());
    })
    .composite();
OP("aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .direct([](const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype) {
      check(is_floating(in.dtype()), "nanmean(): expected input to have floating point dtype but got ",
            name_of(in.dtype()));
      const Dims all = dims ? *dims : Dims{};
      const Expr count = Expr(ops::call("aten::sum.dim_IntList", (Expr(in) == Expr(in)).tensor(), all, keepdim));
      const Expr sum = Expr(
          ops::call("aten::sum.dim_IntList", without_nan(in), all, keepdim, dtype ? ops::Value(*dtype) : ops::Value()));
      return (sum / count).tensor();
    })
    .composite();
OP("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
    .direct([](const Tensor& in, std::optional<int64_t> dim, bool keepdim) {
      const Dims dims = dim ? Dims{*dim} : Dims{};
      // PyTorch gives a kept dimension even to what has none.
      const Tensor x = dim && keepdim && in.ndim() == 0 ? ops::call("aten::unsqueeze", in, *dim) : in;
      return std::tuple<Tensor, Tensor>(ops::call("aten::amin", x, dims, keepdim),
                                        ops::call("aten::amax", x, dims, keepdim));
    })
    .composite();

// Of the whole tensor, as observers of quantisation take them.
OP("aten::_aminmax(Tensor self) -> (Tensor, Tensor)").set<ops::MixesSamples>().infer([](const Tensor& in) {
  check(in.numel() > 0, "_aminmax(): the tensor has no elements");
  return std::vector<ops::TensorMeta>(2, {.sizes = {}, .dtype = in.dtype(), .strides = {}});
});
KERNEL("aten::_aminmax", DeviceKind::kCPU, [](const ops::KernelContext&, const Tensor& in, Tensor& low, Tensor& high) {
  low.copy_from(ops::call("aten::amin", in, Dims{}, false));
  high.copy_from(ops::call("aten::amax", in, Dims{}, false));
});

[[maybe_unused]] const bool registered = [] {
  add_median("median", false);
  add_median("nanmedian", true);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
