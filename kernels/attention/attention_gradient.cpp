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

namespace {

using gradient::Expr;
using gradient::fit_gradient;

// Of query, key, value and mask, `g` being the gradient of weights @ value. `kept`, if defined, is what dropout
// multiplied the weights by.
std::vector<Tensor> compose_gradient(const PlainAttention& plain, const Tensor& g, const Tensor& kept,
                                     const ops::GradArgs& args) {
  std::vector<Tensor> out(args.inputs.size());
  const Tensor weights = plain.weights();
  const Tensor used = kept ? call("aten::mul.Tensor", {weights, kept}) : weights;
  if (args.needs(2)) out[2] = fit_gradient(matmul(transposed(used), g), plain.value);
  const bool needs_mask = args.needs(3) && plain.mask && !plain.fill;
  if (!args.needs(0) && !args.needs(1) && !needs_mask) return out;
  Tensor of_weights = matmul(g, transposed(plain.value));
  if (kept) of_weights = call("aten::mul.Tensor", {of_weights, kept});
  const Tensor sums =
      call("aten::sum.dim_IntList", {(Expr(weights) * Expr(of_weights)).value, ops::make_int_list(Dims{-1}), true});
  Tensor scores = (Expr(weights) * (Expr(of_weights) - Expr(sums))).tensor();
  // Scores filled with minus infinity have the weight 0, so their gradient is 0. PyTorch adds the mask and gives NaN
  // for a row without any key.
  if (plain.fill && plain.mask && !std::isinf(*plain.fill)) scores = filled(scores, plain.hidden(), 0);
  if (args.needs(0)) out[0] = fit_gradient(scaled(matmul(scores, plain.key), plain.scale), plain.query);
  if (args.needs(1)) out[1] = fit_gradient(matmul(transposed(scores), scaled(plain.query, plain.scale)), plain.key);
  if (needs_mask) out[3] = fit_gradient(scores, *plain.mask);
  return out;
}

// The arguments from query to fills_where, which both operators have.
PlainAttention plain_of(std::span<const Value> in) {
  return {in[0].to_tensor(), in[1].to_tensor(),
          in[2].to_tensor(), ops::Unbox<std::optional<Tensor>>::get(in[3]),
          in[4].to_float(),  ops::Unbox<std::optional<double>>::get(in[5]),
          in[6].to_bool(),   in[7].to_bool()};
}

std::vector<Value> training_arguments(const PlainAttention& plain) {
  return {plain.query,       plain.key,
          plain.value,       plain.mask ? Value(*plain.mask) : Value(),
          plain.scale,       plain.fill ? Value(*plain.fill) : Value(),
          plain.fills_where, plain.is_causal,
          plain.is_safe,     plain.dropout};
}

// Of all but the mask, by kernels. `results` are those of tensord::attention_training.
std::vector<Tensor> run_backward(const PlainAttention& plain, const Tensor& g, std::span<const Value> results,
                                 const ops::GradArgs& args) {
  static const ops::Op& op = ops::get_op("tensord::attention_backward");
  std::vector<Value> arguments = training_arguments(plain);
  arguments.insert(arguments.begin(), Value(g));
  arguments.insert(arguments.begin() + 5, results.begin(), results.end());
  arguments.push_back(ops::make_list(ops::bool_type(), {args.needs(0), args.needs(1), args.needs(2)}));
  const std::vector<Value> gradients = ops::run(op, ops::bind(op, std::move(arguments)));
  std::vector<Tensor> out(args.inputs.size());
  for (size_t i = 0; i < 3; ++i) {
    if (args.needs(i)) out[i] = gradients[i].to_tensor();
  }
  return out;
}

// Kernels give a gradient that is not recorded, and none of the mask.
bool can_run_backward(const PlainAttention& plain, const ops::GradArgs& args) {
  const bool needs_mask = args.needs(3) && plain.mask && !plain.fill;
  return has_attention_backward(plain.query) && !is_grad_enabled() && !needs_mask;
}

}  // namespace

bool has_attention_backward(const Tensor& query) {
  return query.device().kind == kCUDA && !query.is_meta() && !gradient::recorder();
}

// Computes the weights again, so that the forward pass keeps nothing but its arguments.
std::vector<Tensor> gradient_of_attention(const ops::GradArgs& args) {
  PlainAttention plain = plain_of(args.inputs);
  plain.is_safe = args.inputs[9].to_bool();
  Tensor g = args.grad_outputs[0];
  if (args.inputs[8].to_bool()) g = call("aten::transpose.int", {g, -3, -2});
  if (!can_run_backward(plain, args)) return compose_gradient(plain, g, {}, args);
  static const ops::Op& op = ops::get_op("tensord::attention_training");
  return run_backward(plain, g, ops::run(op, ops::bind(op, training_arguments(plain))), args);
}

std::vector<Tensor> gradient_of_attention_training(const ops::GradArgs& args) {
  PlainAttention plain = plain_of(args.inputs);
  plain.is_safe = args.inputs[8].to_bool();
  plain.dropout = args.inputs[9].to_float();
  check(!args.grad_outputs[1].defined(), "attention_training: its logarithms of sums have no gradient");
  const Tensor& g = args.grad_outputs[0];
  if (!g.defined()) return std::vector<Tensor>(args.inputs.size());
  if (can_run_backward(plain, args)) return run_backward(plain, g, args.outputs, args);
  Tensor kept;
  if (plain.dropout > 0) {
    kept = call("tensord::attention_kept", {args.outputs[1], args.outputs[2], plain.key.size(-2), plain.dropout});
    kept = call("aten::to.dtype", {kept, plain.query.dtype(), false, false, Value()});
  }
  return compose_gradient(plain, g, kept, args);
}

}  // namespace tensord::kernels
