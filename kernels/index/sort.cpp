#include <array>

#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"
#include "ops/index.h"
#include "ops/view.h"

// Sorting and selecting along a dimension. Equal values keep their order; NaN counts as largest.
namespace tensord::kernels {
namespace {

using ops::TensorMeta;

// In the order of the tensor's dimensions.
std::vector<TensorMeta> sort_meta(const Tensor& x, int64_t dim, bool) {
  wrap_dim(dim, x.ndim());
  const std::array operands{Operand(x)};
  return {infer_pointwise(operands, x.dtype()), infer_pointwise(operands, DType::kInt64)};
}

std::vector<TensorMeta> stable_meta(const Tensor& x, std::optional<bool>, int64_t dim, bool descending) {
  return sort_meta(x, dim, descending);
}

TensorMeta argsort_meta(const Tensor& x, int64_t dim, bool descending) { return sort_meta(x, dim, descending)[1]; }
TensorMeta argsort_stable_meta(const Tensor& x, bool, int64_t dim, bool descending) {
  return argsort_meta(x, dim, descending);
}

std::vector<TensorMeta> topk_meta(const Tensor& x, int64_t k, int64_t dim, bool, bool) {
  dim = wrap_dim(dim, x.ndim());
  check(k >= 0 && k <= (x.ndim() == 0 ? 1 : x.sizes()[dim]), "selected index k out of range");
  Dims sizes = x.sizes();
  if (!sizes.empty()) sizes[dim] = k;
  return {{sizes, x.dtype(), {}, x.device()}, {sizes, DType::kInt64, {}, x.device()}};
}

std::vector<TensorMeta> kth_meta(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, x.ndim());
  check(k > 0 && k <= (x.ndim() == 0 ? 1 : x.sizes()[dim]), "kthvalue(): selected number k out of range for dimension ",
        dim);
  Dims sizes = x.sizes();
  if (!sizes.empty()) {
    if (keepdim)
      sizes[dim] = 1;
    else
      sizes.erase(dim);
  }
  return {{sizes, x.dtype(), {}, x.device()}, {sizes, DType::kInt64, {}, x.device()}};
}

using ops::GradArgs;

// The gradient of the values goes to where they were selected. `dim_argument` and the argument keepdim are positions;
// keepdim is -1 for results that always keep their dimension.
gradient::GradientFn selected(size_t dim_argument, int keepdim_argument = -1) {
  return gradient::of_first([=](const GradArgs& args, Tensor g) {
    const int64_t dim = args.inputs[dim_argument].to_int();
    Tensor indices = args.outputs[1].to_tensor();
    const Tensor& x = args.inputs[0].to_tensor();
    if (keepdim_argument >= 0 && !args.inputs[static_cast<size_t>(keepdim_argument)].to_bool() && x.ndim() > 0) {
      g = ops::unsqueeze(g, dim);
      indices = ops::unsqueeze(indices, dim);
    }
    return ops::scatter(gradient::zeros_like(x), dim, indices, g);
  });
}

OP("aten::sort").infer(sort_meta).gradient(selected(1)).saves("result1");
OP("aten::sort.stable").infer(stable_meta).gradient(selected(2)).saves("result1");
OP("aten::msort")
    .impl([](const Tensor& x) {
      if (x.is_meta()) return Tensor::meta(x.sizes(), x.dtype(), x.device());
      return std::get<0>(ops::sort(x, 0));
    })
    .composite();
OP("aten::argsort").infer(argsort_meta);
OP("aten::argsort.stable").infer(argsort_stable_meta);
OP("aten::topk").infer(topk_meta).gradient(selected(2)).saves("result1");
OP("aten::kthvalue").infer(kth_meta).gradient(selected(2, 3)).saves("result1");

}  // namespace
}  // namespace tensord::kernels
