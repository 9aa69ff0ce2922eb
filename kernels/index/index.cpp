#include "ops/index.h"
#include "core/ops/attributes/host_indices.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/view.h"

// Advanced indexing: x[i, :, mask] and its assignment. Schemas and gradients.
namespace tensord::kernels {

namespace {

using gradient::fit_gradient;
using gradient::of_first;
using ops::GradArgs;
using ops::Value;

// Adds each element of the gradient at the place that it was read from.
Tensor index_gradient(const GradArgs& args, const Tensor& g) {
  return ops::index_put(gradient::zeros_like(args.inputs[0]),
                        ops::unbox<std::vector<std::optional<Tensor>>>(args.inputs[1]), g, true);
}
std::vector<Tensor> index_put_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) {
    const bool accumulates = args.inputs[3].to_bool();
    gradients[0] = accumulates ? g
                               : ops::index_put(g, ops::unbox<std::vector<std::optional<Tensor>>>(args.inputs[1]),
                                                ops::zeros(Dims{}, {.dtype = g.dtype()}));
  }
  if (args.needs(2))
    gradients[2] = fit_gradient(ops::index(g, ops::unbox<std::vector<std::optional<Tensor>>>(args.inputs[1])),
                                args.inputs[2].to_tensor());
  return gradients;
}
Tensor masked_select_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor &x = args.inputs[0].to_tensor(), &mask = args.inputs[1].to_tensor();
  const Tensor zeros = ops::new_zeros(g, broadcast_sizes(x.sizes(), mask.sizes()));
  const Tensor mask_bool = mask.dtype() == DType::kBool ? mask : ops::to(mask, DType::kBool);
  return fit_gradient(ops::masked_scatter(zeros, mask_bool, g), x);
}
std::vector<Tensor> masked_scatter_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  const Tensor& mask = args.inputs[1].to_tensor();
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = fit_gradient(ops::masked_fill(g, mask, 0), args.inputs[0].to_tensor());
  if (args.needs(2)) {
    // Elements of the source that were not used have the gradient 0.
    const Tensor& source = args.inputs[2].to_tensor();
    const Tensor used = ops::masked_select(g, mask);
    const Tensor all = ops::constant_pad_nd(used, Dims{0, source.numel() - used.numel()});
    gradients[2] = ops::reshape(all, source.sizes());
  }
  return gradients;
}

OP("aten::index.Tensor").gradient(of_first(index_gradient)).saves("indices").set<ops::TakesHostIndices>();
OP("aten::index_put_").gradient(index_put_gradient).saves("indices").set<ops::TakesHostIndices>();
OP("aten::index_put").gradient(index_put_gradient).saves("indices").set<ops::TakesHostIndices>();
OP("aten::nonzero").dynamic_shape();
OP("aten::nonzero_numpy").dynamic_shape();
OP("aten::argwhere").dynamic_shape();
OP("aten::where").dynamic_shape();
OP("aten::masked_select").gradient(of_first(masked_select_gradient)).saves("mask").dynamic_shape();
OP("aten::masked_scatter").gradient(masked_scatter_gradient).saves("mask").dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
