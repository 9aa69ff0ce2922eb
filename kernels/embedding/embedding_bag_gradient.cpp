// Gradients of embedding_bag: for the table (dense), and for the weights of samples.
#include "kernels/embedding/embedding_bag_gradient.h"

#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "kernels/embedding/embedding_bag.h"
#include "kernels/embedding/sparse_gradient.h"
#include "kernels/expr/expr.h"
#include "ops/embedding.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

void check_mode(int64_t mode) { check(mode >= 0 && mode <= 2, "embedding_bag: unknown mode ", mode); }

TensorMeta table_meta(const Tensor& grad, const Tensor& indices, const Tensor&, const Tensor&, const Tensor&,
                      const Tensor& maxima, int64_t rows, bool, int64_t mode, bool, const MaybeTensor& weights,
                      int64_t) {
  check_mode(mode);
  check(grad.ndim() == 2 && rows >= 0, "embedding_bag: expected a gradient of 2 dimensions, but got ", grad.ndim());
  check(mode != static_cast<int64_t>(BagMode::kMax) || maxima.sizes() == grad.sizes(),
        "embedding_bag: expected the rows of maxima to have shape ", grad.sizes());
  check(!weights || weights->numel() == indices.numel(), "embedding_bag: expected ", indices.numel(), " weights");
  return {Dims{rows, grad.sizes()[1]}, grad.dtype(), {}, grad.device()};
}

TensorMeta weights_meta(const Tensor& grad, const Tensor& table, const Tensor& indices, const Tensor&, const Tensor&,
                        int64_t mode, int64_t) {
  check(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
  check(grad.ndim() == 2 && table.ndim() == 2 && grad.sizes()[1] == table.sizes()[1] && grad.dtype() == table.dtype(),
        "embedding_bag: a gradient of shape ", grad.sizes(), " does not fit a table of shape ", table.sizes());
  return {Dims{indices.numel()}, grad.dtype(), {}, grad.device()};
}

std::optional<int64_t> padding_of(int64_t padding) { return padding < 0 ? std::nullopt : std::optional(padding); }

// The same bags over another table.
Tensor forward(const Tensor& table, const Value& indices, const Value& offsets, const Value& scales, const Value& mode,
               const Value& weights, bool has_last, int64_t padding) {
  return std::get<0>(ops::embedding_bag(table, indices.to_tensor(), offsets.to_tensor(), scales.to_bool(),
                                        mode.to_int(), false, ops::unbox<std::optional<Tensor>>(weights), has_last,
                                        padding_of(padding)));
}

// The incoming gradient belongs to the table's gradient, which is linear in the gradient of the output.
std::vector<Tensor> gradient_of_table(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &grad = in[0].to_tensor();
  const bool has_last = in[2].to_tensor().numel() > grad.sizes()[0];
  std::vector<Tensor> out(12);
  check(!in[7].to_bool(), "embedding_bag: there is no second derivative with scale_grad_by_freq");
  if (args.needs(0) && in[8].to_int() == static_cast<int64_t>(BagMode::kMax)) {
    const Tensor rows = ops::to(in[5].to_tensor(), DType::kInt64), picked = ops::gather(g, 0, rows);
    const Tensor filled = ops::gt(ops::unsqueeze(in[4].to_tensor(), 1), ops::Scalar(0));
    out[0] = ops::mul(picked, ops::to(filled, g.dtype()));
  } else if (args.needs(0)) {
    out[0] = forward(g, in[1], in[2], false, in[8], in[10], has_last, in[11].to_int());
  }
  if (args.needs(10) && in[10].is_tensor())
    out[10] = ops::_embedding_bag_per_sample_weights_backward(grad, g, in[1].to_tensor(), in[2].to_tensor(),
                                                              in[3].to_tensor(), in[8].to_int(), in[11].to_int());
  return out;
}

std::vector<Tensor> gradient_of_weights(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &grad = in[0].to_tensor(), &table = in[1].to_tensor();
  const bool has_last = in[3].to_tensor().numel() > grad.sizes()[0];
  std::vector<Tensor> out(7);
  if (args.needs(0)) out[0] = forward(table, in[2], in[3], false, in[5], g, has_last, in[6].to_int());
  if (args.needs(1))
    out[1] = ops::_embedding_bag_backward(grad, in[2].to_tensor(), in[3].to_tensor(), in[4].to_tensor(),
                                          in[4].to_tensor(), in[4].to_tensor(), table.sizes()[0], false, in[5].to_int(),
                                          false, g, in[6].to_int());
  return out;
}

// For each index, the gradient of its bag times its factor.
Value sparse_table(const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor&, const Tensor&,
                   int64_t rows, bool scales, int64_t mode, const MaybeTensor& weights, int64_t padding) {
  check(mode == 0 || mode == 1, "embedding_bag: sparse gradients are for the modes 'sum' and 'mean'");
  check(!scales, "embedding_bag: scale_grad_by_freq not supported with sparse gradients");
  check(grad.ndim() == 2, "embedding_bag: expected a gradient of 2 dimensions, but got ", grad.ndim());
  const BagsOfIndices bags = bags_of_indices(indices, offsets, grad.sizes()[0], rows, padding);
  Tensor values = ops::index_select(grad, int64_t{0}, bags.bag);
  if (mode == 1) values = ops::div(values, ops::to(bags.size, grad.dtype()));
  if (weights) values = ops::mul(values, ops::unsqueeze(*weights, int64_t{1}));
  return sparse_table_gradient(values, indices, rows, padding);
}

OP("aten::_embedding_bag_sparse_backward").impl(sparse_table).composite().dynamic_shape();
OP("aten::_embedding_bag_backward")
    .infer(table_meta)
    .gradient(gradient_of_table)
    .saves("grad, indices, offsets, bag_size, maximum_indices, per_sample_weights");
OP("aten::_embedding_bag_per_sample_weights_backward")
    .infer(weights_meta)
    .gradient(gradient_of_weights)
    .saves("grad, weight, indices, offsets");

}  // namespace

std::vector<Tensor> gradient_of_embedding_bag(const GradArgs& args) {
  const auto &in = args.inputs, &out = args.outputs;
  const Tensor &g = args.grad_outputs[0], &table = in[0].to_tensor();
  int64_t padding = in.size() > 8 && in[8].is_int() ? in[8].to_int() : -1;
  if (padding < 0 && in.size() > 8 && in[8].is_int()) padding += table.sizes()[0];
  std::vector<Tensor> gradients(in.size());
  if (!g.defined()) return gradients;
  if (args.needs(0) && in[5].to_bool())
    gradients[0] = ops::_embedding_bag_sparse_backward(
        g, in[1].to_tensor(), in[2].to_tensor(), out[1].to_tensor(), out[2].to_tensor(), table.sizes()[0],
        in[3].to_bool(), in[4].to_int(), ops::unbox<std::optional<Tensor>>(in[6]), padding);
  else if (args.needs(0))
    gradients[0] = ops::_embedding_bag_backward(
        g, in[1].to_tensor(), in[2].to_tensor(), out[1].to_tensor(), out[2].to_tensor(), out[3].to_tensor(),
        table.sizes()[0], in[3].to_bool(), in[4].to_int(), false, ops::unbox<std::optional<Tensor>>(in[6]), padding);
  if (args.needs(6) && in[6].is_tensor())
    gradients[6] = ops::_embedding_bag_per_sample_weights_backward(g, table, in[1].to_tensor(), in[2].to_tensor(),
                                                                   out[1].to_tensor(), in[4].to_int(), padding);
  return gradients;
}

}  // namespace tensord::kernels
