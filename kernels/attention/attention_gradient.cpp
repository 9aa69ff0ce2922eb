#include "kernels/attention/attention_gradient.h"

#include <cmath>
#include <limits>

#include "core/ops/run.h"
#include "kernels/expr/expr.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// Runs an operator, or infers its shape when its first argument has no data.
Tensor call(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  const std::vector<Value> bound = ops::bind(op, std::move(arguments));
  const bool is_meta = bound[0].is_tensor() && bound[0].to_tensor().is_meta();
  return (is_meta ? ops::infer(op, bound) : ops::run(op, bound)).front().to_tensor();
}

Tensor transposed(const Tensor& t) { return call("aten::transpose.int", {t, -2, -1}); }
Tensor scaled(const Tensor& t, double factor) { return call("aten::mul.Scalar", {t, factor}); }
Tensor matmul(const Tensor& a, const Tensor& b) { return call("aten::matmul", {a, b}); }
Tensor filled(const Tensor& t, const Tensor& where, double value) {
  return call("aten::masked_fill.Scalar", {t, where, value});
}

// Row i sees keys 0 … i.
Tensor later_keys(int64_t queries, int64_t keys, Device device) {
  const Value sizes = ops::make_int_list(Dims{queries, keys});
  return call("aten::triu", {call("aten::ones", {sizes, DType::kBool, Value(), device}), 1});
}

}  // namespace

Tensor PlainAttention::hidden() const { return fills_where ? *mask : call("aten::logical_not", {*mask}); }

Tensor PlainAttention::weights() const {
  Tensor scores = matmul(scaled(query, scale), transposed(key));
  if (mask) scores = fill ? filled(scores, hidden(), *fill) : call("aten::add.Tensor", {scores, *mask});
  if (is_causal) {
    scores = filled(scores, later_keys(query.size(-2), key.size(-2), query.device()),
                    -std::numeric_limits<double>::infinity());
  }
  return call(is_safe ? "aten::_safe_softmax" : "aten::softmax.int", {scores, -1});
}

// Computes the weights again, so that the forward pass keeps nothing but its arguments.
std::vector<Tensor> gradient_of_attention(const ops::GradArgs& args) {
  using gradient::Expr;
  using gradient::fit_gradient;
  const auto& in = args.inputs;
  const std::optional<Tensor> mask = ops::Unbox<std::optional<Tensor>>::get(in[3]);
  const PlainAttention plain{in[0].to_tensor(), in[1].to_tensor(),
                             in[2].to_tensor(), mask,
                             in[4].to_float(),  ops::Unbox<std::optional<double>>::get(in[5]),
                             in[6].to_bool(),   in[7].to_bool(),
                             in[9].to_bool()};
  Tensor g = args.grad_outputs[0];
  if (in[8].to_bool()) g = call("aten::transpose.int", {g, -3, -2});
  const Tensor weights = plain.weights();
  std::vector<Tensor> out(in.size());
  if (args.needs(2)) out[2] = fit_gradient(matmul(transposed(weights), g), plain.value);
  const bool needs_mask = args.needs(3) && mask && !plain.fill;
  if (!args.needs(0) && !args.needs(1) && !needs_mask) return out;
  const Tensor of_weights = matmul(g, transposed(plain.value));
  const Tensor sums =
      call("aten::sum.dim_IntList", {(Expr(weights) * Expr(of_weights)).value, ops::make_int_list(Dims{-1}), true});
  Tensor scores = (Expr(weights) * (Expr(of_weights) - Expr(sums))).tensor();
  // Scores filled with minus infinity have the weight 0, so their gradient is 0. PyTorch adds the mask and gives NaN
  // for a row without any key.
  if (plain.fill && mask && !std::isinf(*plain.fill)) scores = filled(scores, plain.hidden(), 0);
  if (args.needs(0)) out[0] = fit_gradient(scaled(matmul(scores, plain.key), plain.scale), plain.query);
  if (args.needs(1)) out[1] = fit_gradient(matmul(transposed(scores), scaled(plain.query, plain.scale)), plain.key);
  if (needs_mask) out[3] = fit_gradient(scores, *mask);
  return out;
}

}  // namespace tensord::kernels
