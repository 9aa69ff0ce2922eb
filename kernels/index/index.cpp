#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"

// Advanced indexing: x[i, :, mask] and its assignment. Schemas and gradients.
namespace tensord::kernels {

namespace {

using gradient::fit_gradient;
using gradient::of_first;
using ops::call;
using ops::GradArgs;
using ops::Value;

// Each element goes back to where it was read; what was read often is added up.
Tensor index_gradient(const GradArgs& args, const Tensor& g) {
  return call("aten::index_put", gradient::zeros_like(args.inputs[0]), args.inputs[1], g, true);
}
std::vector<Tensor> index_put_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) {
    const bool accumulates = args.inputs[3].to_bool();
    gradients[0] =
        accumulates ? g : call("aten::index_put", g, args.inputs[1], call("aten::zeros", Dims{}, g.dtype()), false);
  }
  if (args.needs(2))
    gradients[2] = fit_gradient(call("aten::index.Tensor", g, args.inputs[1]), args.inputs[2].to_tensor());
  return gradients;
}
Tensor masked_select_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor &x = args.inputs[0].to_tensor(), &mask = args.inputs[1].to_tensor();
  const Tensor zeros =
      call("aten::new_zeros", g, broadcast_sizes(x.sizes(), mask.sizes()), Value(), Value(), Value(), Value());
  const Tensor mask_bool = mask.dtype() == DType::kBool ? mask : call("aten::to.dtype", mask, DType::kBool);
  return fit_gradient(call("aten::masked_scatter", zeros, mask_bool, g), x);
}
std::vector<Tensor> masked_scatter_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  const Value& mask = args.inputs[1];
  if (!g) return gradients;
  if (args.needs(0))
    gradients[0] = fit_gradient(call("aten::masked_fill.Scalar", g, mask, 0), args.inputs[0].to_tensor());
  if (args.needs(2)) {
    // Elements of the source that were not used get zeros.
    const Tensor& source = args.inputs[2].to_tensor();
    const Tensor used = call("aten::masked_select", g, mask);
    const Tensor all = call("aten::constant_pad_nd", used, Dims{0, source.numel() - used.numel()}, 0);
    gradients[2] = call("aten::reshape", all, source.sizes());
  }
  return gradients;
}

OP("aten::index.Tensor").gradient(of_first(index_gradient)).saves("indices");
OP("aten::index_put_").gradient(index_put_gradient).saves("indices");
OP("aten::index_put").gradient(index_put_gradient).saves("indices");
OP("aten::nonzero").dynamic_shape();
OP("aten::nonzero_numpy").dynamic_shape();
OP("aten::argwhere").dynamic_shape();
OP("aten::where").dynamic_shape();
OP("aten::masked_select").gradient(of_first(masked_select_gradient)).saves("mask").dynamic_shape();
OP("aten::masked_scatter").gradient(masked_scatter_gradient).saves("mask").dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
