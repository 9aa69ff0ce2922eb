// Gradients of activations that change slope at given numbers, each one loop over (Tensor grad_output, Tensor self,
// numbers). They are linear in the first argument, so its gradient is the operator itself; that of the second is a
// formula.
#include "kernels/pointwise/pointwise_backward.h"

#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using gradient::put;
using ops::GradArgs;
using ops::Scalar;

Expr no_slope(Given given) { return gradient::zeros(given[0]); }

// softplus'' = beta s (1 - s) below the threshold, with s the sigmoid of beta x.
Expr softplus_second(Given given) {
  const Expr &gg = given[0], &g = given[1], &x = given[2], &beta = given[3], &threshold = given[4];
  const Expr s = gradient::sigmoid(x * beta);
  return where(x * beta > threshold, 0, gg * g * (s * (-s + 1) * beta));
}

OP("aten::leaky_relu_backward")
    .infer([](const Tensor& g, const Tensor& x, const Scalar& negative_slope, bool is_result) {
      check(!is_result || negative_slope.to_double() >= 0,
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported.");
      return infer_backward("leaky_relu_backward", g, x);
    })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(4);
      put(gradients, args, 0, [](Given x) { return gradient::leaky_relu_backward(x[0], x[1], x[2]); },
          {args.grad_outputs[0], args.inputs[1], args.inputs[2]});
      put(gradients, args, 1, no_slope, {args.grad_outputs[0]});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout();

// elu'' = alpha scale input_scale² exp(input_scale x) below zero; by the result y, whose gradient is
// input_scale (y + alpha scale), the slope in y is input_scale.
std::vector<Tensor> elu_backward_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(6);
  const Expr gg = args.grad_outputs[0], g = args.inputs[0], x = args.inputs[5];
  const Expr alpha = args.inputs[1], scale = args.inputs[2], input_scale = args.inputs[3];
  const bool is_result = args.inputs[4].to_bool();
  if (args.needs(0)) {
    gradients[0] = ops::elu_backward(args.grad_outputs[0], args.inputs[1].to_scalar(), args.inputs[2].to_scalar(),
                                     args.inputs[3].to_scalar(), is_result, args.inputs[5].to_tensor());
  }
  if (is_result) {
    put(gradients, args, 5, [](Given x) { return where(x[2] > 0, 0, x[0] * x[1] * x[3]); }, {gg, g, x, input_scale});
  } else {
    put(gradients, args, 5,
        [](Given x) {
          const Expr slope = gradient::exp(x[2] * x[5]) * (x[3] * x[4] * x[5] * x[5]);
          return where(x[2] > 0, 0, x[0] * x[1] * slope);
        },
        {gg, g, x, alpha, scale, input_scale});
  }
  return gradients;
}
OP("aten::elu_backward")
    .infer([](const Tensor& g, const Scalar& alpha, const Scalar&, const Scalar&, bool is_result, const Tensor& x) {
      check(!is_result || alpha.to_double() >= 0,
            "In-place elu backward calculation is triggered with a negative slope which is not supported.");
      return infer_backward("elu_backward", g, x);
    })
    .gradient(elu_backward_gradient)
    .saves("grad_output, self_or_result")
    .pointwise()
    .keeps_layout();

bool register_activation_backward() {
  add_pointwise_kernel("aten::leaky_relu_backward", [](const Tensor& g, const Tensor& x, const Scalar& slope, bool) {
    return backward_call(Formula::leaky_relu_backward, g, x, {slope});
  });
  add_pointwise_kernel("aten::elu_backward", [](const Tensor& g, const Scalar& alpha, const Scalar& scale,
                                                const Scalar& input_scale, bool is_result, const Tensor& x) {
    return backward_call(is_result ? Formula::elu_result_backward : Formula::elu_backward, g, x,
                         {alpha, scale, input_scale});
  });
  add_backward<>(
      "aten::hardswish_backward", Formula::hardswish_backward,
      [](Given x) { return gradient::hardswish_backward(x[0], x[2]); },
      [](Given x) { return where(abs(x[2]) < 3, x[0] * x[1] / 3, 0); });
  add_backward<>(
      "aten::hardsigmoid_backward", Formula::hardsigmoid_backward,
      [](Given x) { return gradient::hardsigmoid_backward(x[0], x[2]); }, no_slope);
  add_backward<Scalar, Scalar>(
      "aten::hardtanh_backward", Formula::hardtanh_backward,
      [](Given x) { return gradient::hardtanh_backward(x[0], x[2], x[3], x[4]); }, no_slope);
  add_backward<Scalar>(
      "aten::hardshrink_backward", Formula::shrink_backward,
      [](Given x) { return gradient::hardshrink_backward(x[0], x[2], x[3]); }, no_slope);
  add_backward<Scalar>(
      "aten::softshrink_backward", Formula::shrink_backward,
      [](Given x) { return gradient::softshrink_backward(x[0], x[2], x[3]); }, no_slope);
  add_backward<Scalar, Scalar>(
      "aten::softplus_backward", Formula::softplus_backward,
      [](Given x) { return gradient::softplus_backward(x[0], x[2], x[3], x[4]); }, softplus_second);
  return true;
}
[[maybe_unused]] const bool activation_backward_registered = register_activation_backward();

}  // namespace
}  // namespace tensord::kernels
