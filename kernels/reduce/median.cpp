// Medians, and reductions that skip NaN.
#include <cmath>
#include <vector>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/reduce/dims.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::TensorMeta;
using MaybeDims = std::optional<IntList>;
using MaybeDType = std::optional<DType>;

void check_median_dtype(const Tensor& in) {
  if (in.dtype() == DType::kBool) fail_dtype("median", in.dtype());
}

// Equal elements share the gradient, as do NaNs where the median is NaN.
Tensor median_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  const Expr x = in, y = Expr(args.outputs[0]);
  // NOLINTNEXTLINE(misc-redundant-expression): true for NaN only
  const Expr is_chosen = std::isnan(y.tensor().item_double()) ? x != x : x == y;
  const Expr count = Expr(ops::sum(is_chosen.tensor()));
  return gradient::fit_gradient(Expr(g) * is_chosen / count, in);
}

void add_median(const char* name) {
  const std::string full = concat("aten::", name), dim = concat(full, ".dim");
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([](const Tensor& in) {
        check_median_dtype(in);
        return TensorMeta{{}, in.dtype(), {}, in.device()};
      })
      .gradient(gradient::of_first(median_gradient))
      .saves("self, result")
      .reduction();
  ops::OpBuilder(dim, __FILE__, __LINE__)
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
}

Tensor without_nan(const Tensor& in) {
  return is_floating(in.dtype()) ? ops::nan_to_num(in, 0.0, HUGE_VAL, -HUGE_VAL) : in;
}
OP("aten::nansum")
    .impl([](const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype) {
      return ops::sum(without_nan(in), dims ? *dims : Dims{}, keepdim, {.dtype = dtype});
    })
    .composite();
OP("aten::nanmean")
    .impl([](const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype) {
      check(is_floating(in.dtype()), "nanmean(): expected input to have floating point dtype but got ",
            name_of(in.dtype()));
      const Dims all = dims ? *dims : Dims{};
      const Expr count = Expr(ops::sum((Expr(in) == Expr(in)).tensor(), all, keepdim));
      const Expr sum = Expr(ops::sum(without_nan(in), all, keepdim, {.dtype = dtype}));
      return (sum / count).tensor();
    })
    .composite();
OP("aten::aminmax")
    .impl([](const Tensor& in, std::optional<int64_t> dim, bool keepdim) {
      const Dims dims = dim ? Dims{*dim} : Dims{};
      // PyTorch keeps a dimension even for 0-d tensors.
      const Tensor x = dim && keepdim && in.ndim() == 0 ? ops::unsqueeze(in, *dim) : in;
      return std::tuple<Tensor, Tensor>(ops::amin(x, dims, keepdim), ops::amax(x, dims, keepdim));
    })
    .composite();

// Over the whole tensor, as quantization's observers use them.
OP("aten::_aminmax").set<ops::MixesSamples>().infer([](const Tensor& in) {
  check(in.numel() > 0, "_aminmax(): the tensor has no elements");
  return std::vector<ops::TensorMeta>(2, {.sizes = {}, .dtype = in.dtype(), .strides = {}});
});
IMPL("aten::_aminmax", DeviceKind::kCPU, [](const ops::KernelContext&, const Tensor& in, Tensor& low, Tensor& high) {
  low.copy_from(ops::amin(in, Dims{}));
  high.copy_from(ops::amax(in, Dims{}));
});

[[maybe_unused]] const bool median_registered = [] {
  add_median("median");
  add_median("nanmedian");
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
