// The backward of batch_norm.
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/norm/norm_gradient.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::TensorMeta;
using ops::Value;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

std::vector<TensorMeta> infer_backward(const Tensor& g, const Tensor& x, MaybeTensor weight, MaybeTensor running_mean,
                                       MaybeTensor running_var, MaybeTensor save_mean, MaybeTensor save_invstd,
                                       bool training, double, Mask mask) {
  check(x.ndim() >= 2 && g.sizes() == x.sizes(), "the gradient is of size ", g.sizes(), ", the input of ", x.sizes());
  check(mask.size() == 3, "output_mask must have 3 items");
  if (!is_floating(x.dtype())) fail_dtype("native_batch_norm_backward", x.dtype());
  check(training || (running_mean && running_var), "running_mean and running_var must be defined in evaluation mode");
  const int64_t channels = x.sizes()[1];
  for (const MaybeTensor* parameter : {&weight, &running_mean, &running_var, &save_mean, &save_invstd}) {
    if (!training && (parameter == &save_mean || parameter == &save_invstd)) continue;
    check(!*parameter || (*parameter)->numel() == channels, "parameters should contain ", channels, " elements not ",
          *parameter ? (*parameter)->numel() : 0);
  }
  const Dims none{0}, parameter{channels};
  TensorMeta dx{mask[0] ? x.sizes() : none, x.dtype(), {}, x.device()};
  if (mask[0] && x.ndim() >= 4 && x.is_channels_last() && !x.is_contiguous()) dx.strides = x.strides();
  const DType dtype = weight ? weight->dtype() : x.dtype();
  return {dx, {mask[1] ? parameter : none, dtype, {}, x.device()}, {mask[2] ? parameter : none, dtype, {}, x.device()}};
}

Tensor summed(const Tensor& gradient, const Dims& per_channel, const Tensor& like) {
  const Tensor sum = gradient::fit_gradient(gradient, Tensor::meta(per_channel, like.dtype()));
  return ops::reshape(sum, like.sizes());
}

// In evaluation: dx = g weight rstd, dweight = sum of g (x - mean) rstd, dbias = sum of g.
NormBackwardGradients differentiate_evaluation(const NormBackward& b) {
  const Expr rstd = *b.rstd, normal = (Expr(b.x) - Expr(*b.mean)) * rstd;
  std::optional<Expr> to_g, to_x, to_weight;
  const auto join = [](std::optional<Expr>& sum, const Expr& term) { sum = sum ? *sum + term : term; };
  if (b.to_dx.defined()) {
    const Expr scaled = Expr(b.to_dx) * rstd;
    join(to_g, b.weight ? scaled * Expr(*b.weight) : scaled);
    if (b.weight) join(to_weight, scaled * Expr(b.g));
  }
  if (b.to_dweight.defined()) {
    join(to_g, normal * Expr(b.to_dweight));
    join(to_x, Expr(b.g) * (Expr(b.to_dweight) * rstd));
  }
  if (b.to_dbias.defined()) join(to_g, Expr(ops::expand(b.to_dbias, b.x.sizes())));
  const auto tensor = [](const std::optional<Expr>& sum) { return sum ? sum->tensor() : Tensor(); };
  return {tensor(to_g), tensor(to_x), tensor(to_weight)};
}

std::vector<Value> gradient_of_backward(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  const Tensor& x = v[1].to_tensor();
  Dims per_channel(static_cast<size_t>(x.ndim()), 1);
  per_channel[1] = x.sizes()[1];
  const auto shaped = [&](const Tensor& t) { return t.defined() ? ops::reshape(t, per_channel) : t; };
  const bool training = v[7].to_bool();
  NormBackward backward;
  backward.g = v[0].to_tensor();
  backward.x = x;
  if (v[2].is_tensor()) backward.weight = shaped(v[2].to_tensor());
  backward.dims.push_back(0);
  for (int64_t d = 2; d < x.ndim(); ++d) backward.dims.push_back(d);
  backward.eps = v[8].to_float();
  if (!training) {
    backward.mean = shaped(v[3].to_tensor());
    backward.rstd = gradient::rsqrt(Expr(shaped(v[4].to_tensor())) + backward.eps).tensor();
  }
  backward.to_dx = args.grad_outputs[0];
  backward.to_dweight = shaped(args.grad_outputs[1]);
  backward.to_dbias = shaped(args.grad_outputs[2]);
  const NormBackwardGradients found = training ? differentiate(backward) : differentiate_evaluation(backward);
  std::vector<Value> out(v.size());
  if (found.g.defined()) out[0] = gradient::fit_gradient(found.g, backward.g);
  if (found.x.defined()) out[1] = gradient::fit_gradient(found.x, x);
  if (found.weight.defined()) out[2] = summed(found.weight, per_channel, v[2].to_tensor());
  return out;
}

// In training without saved statistics, those of the input are used.
OP("tensord::native_batch_norm_backward")
    .infer(infer_backward)
    .gradient(gradient_of_backward)
    .saves("grad_out, input, weight, running_mean, running_var");

}  // namespace
}  // namespace tensord::kernels
