// Gradients of activations that are operators of their own, each one loop: threshold_backward (relu), sigmoid_backward,
// tanh_backward, silu_backward, gelu_backward. They are linear in the first argument, so its gradient is the operator
// itself; that of the second is a formula.
#include "kernels/pointwise/pointwise_backward.h"

#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using gradient::put;
using ops::GradArgs;
using ops::Scalar;
using ops::TensorMeta;

OP("aten::threshold_backward")
    .infer([](const Tensor& g, const Tensor& x, const Scalar&) { return infer_backward("threshold_backward", g, x); })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(3);
      const Expr gg = args.grad_outputs[0];
      put(gradients, args, 0, [](Given x) { return gradient::threshold_backward(x[0], x[1], x[2]); },
          {gg, args.inputs[1], args.inputs[2]});
      put(gradients, args, 1, [](Given x) { return gradient::zeros(x[0]); }, {gg});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout();

// gelu' = Phi + x phi, gelu'' = phi (2 - x²); with u = k (x + c x³) and t = tanh u for the other form.
Expr gelu_second(Given given) {
  const Expr &gg = given[0], &g = given[1], &x = given[2];
  return gg * g * (gradient::exp(x * x * -0.5) * 0.39894228040143267794 * (-(x * x) + 2));
}
Expr gelu_tanh_second(Given given) {
  const Expr &gg = given[0], &g = given[1], &x = given[2];
  const Expr t = gradient::tanh((x + x * x * x * 0.044715) * 0.79788456080286535588);
  const Expr du = (x * x * 0.134145 + 1) * 0.79788456080286535588, ddu = x * (0.26829 * 0.79788456080286535588);
  const Expr dt = -(t * t) + 1;
  return gg * g * (dt * du + x * 0.5 * (dt * ddu - t * dt * du * du * 2));
}
std::vector<Tensor> gelu_backward_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(3);
  const Expr gg = args.grad_outputs[0];
  const bool is_exact = args.inputs[2].to_string() == "none";
  if (args.needs(0))
    gradients[0] = ops::gelu_backward(args.grad_outputs[0], args.inputs[1].to_tensor(),
                                      {.approximate = args.inputs[2].to_string()});
  put(gradients, args, 1, is_exact ? gelu_second : gelu_tanh_second, {gg, args.inputs[0], args.inputs[1]});
  return gradients;
}
OP("aten::gelu_backward")
    .infer([](const Tensor& g, const Tensor& x, const std::string& approximate) {
      check(approximate == "none" || approximate == "tanh",
            "gelu_backward: approximate argument must be either none or tanh.");
      return infer_backward("gelu_backward", g, x);
    })
    .gradient(gelu_backward_gradient)
    .saves("grad_output, self")
    .pointwise()
    .keeps_layout();

// silu' = s (1 + x (1 - s)), silu'' = s (1 - s) (2 + x (1 - 2 s)).
Expr silu_second(Given given) {
  const Expr &gg = given[0], &g = given[1], &x = given[2], s = gradient::sigmoid(x);
  return gg * g * (s * (-s + 1) * (x * (s * -2 + 1) + 2));
}

bool register_pointwise_backward() {
  add_pointwise_kernel("aten::threshold_backward", [](const Tensor& g, const Tensor& x, const Scalar& threshold) {
    return backward_call(Formula::threshold_backward, g, x, {threshold});
  });
  add_pointwise_kernel("aten::gelu_backward", [](const Tensor& g, const Tensor& x, const std::string& approximate) {
    return backward_call(approximate == "none" ? Formula::gelu_backward : Formula::gelu_tanh_backward, g, x);
  });
  add_backward<>(
      "aten::sigmoid_backward", Formula::sigmoid_backward,
      [](Given x) { return gradient::sigmoid_backward(x[0], x[2]); },
      [](Given x) { return x[0] * x[1] * (x[2] * -2 + 1); });
  add_backward<>(
      "aten::tanh_backward", Formula::tanh_backward, [](Given x) { return gradient::tanh_backward(x[0], x[2]); },
      [](Given x) { return x[0] * x[1] * x[2] * -2; });
  add_backward<>(
      "aten::silu_backward", Formula::silu_backward, [](Given x) { return gradient::silu_backward(x[0], x[2]); },
      silu_second);
  return true;
}
[[maybe_unused]] const bool pointwise_backward_registered = register_pointwise_backward();

}  // namespace
}  // namespace tensord::kernels
