// rrelu and its forms with the slopes: in training a slope of its own for each number that is not positive.
#include "kernels/common/compose.h"

namespace tensord::kernels {
namespace {

using compose::call;
using ops::Scalar;

// What each number is multiplied with.
Tensor slopes_of(const Tensor& x, double low, double high, bool training, const ops::Value& generator) {
  check(is_floating(x.dtype()), "rrelu: not implemented for ", name_of(x.dtype()));
  check(low <= high, "Lower bound should be less than or equal to the upper bound");
  const Tensor is_scaled = call("aten::le.Scalar", x, 0), ones = call("aten::ones_like", call("aten::detach", x));
  if (!training) return call("aten::masked_fill.Scalar", ones, is_scaled, (low + high) / 2);
  const Dims count{call("aten::sum", is_scaled).item_int()};
  // PyTorch draws a double for each of them, in order, between bounds of the type of x.
  if (x.dtype() != DType::kFloat64) {
    low = static_cast<float>(low);
    high = static_cast<float>(high);
  }
  const Tensor slopes = call("aten::uniform_", call("aten::zeros", count, DType::kFloat64), low, high, generator);
  return call("aten::masked_scatter", ones, is_scaled, compose::to(slopes, x.dtype()).to(x.device()));
}

Tensor rrelu(const Tensor& x, const Scalar& lower, const Scalar& upper, bool training, const ops::Value& generator) {
  // A product with slopes keeps no copy of x, so that the in-place form has a gradient too.
  return call("aten::mul.Tensor", x, slopes_of(x, lower.to_double(), upper.to_double(), training, generator));
}
OP("aten::rrelu").impl(rrelu).composite().random();

// The same, with the slopes kept in `noise` in training.
template <const char* const& MULTIPLY>
Tensor rrelu_with_noise(const Tensor& x, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                        const ops::Value& generator) {
  check(noise.sizes() == x.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", x.sizes(),
        " noise.shape = ", noise.sizes());
  check(noise.dtype() == x.dtype(), "rrelu_with_noise: expected noise of ", name_of(x.dtype()), ", got ",
        name_of(noise.dtype()));
  const Tensor slopes = slopes_of(call("aten::detach", x), lower.to_double(), upper.to_double(), training, generator);
  if (training) call("aten::copy_", noise, slopes);
  return call(MULTIPLY, x, slopes);
}
constexpr const char* kMultiply = "aten::mul.Tensor";
constexpr const char* kMultiplyInPlace = "aten::mul_.Tensor";
OP("aten::rrelu_with_noise").impl(rrelu_with_noise<kMultiply>).composite().random();
OP("aten::rrelu_with_noise_").impl(rrelu_with_noise<kMultiplyInPlace>).composite().random();

OP("aten::rrelu_with_noise_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& noise, const Scalar& lower, const Scalar& upper,
             bool training, bool is_result) {
      if (training) return call("aten::mul.Tensor", grad, noise);
      return call("aten::leaky_relu_backward", grad, x, (lower.to_double() + upper.to_double()) / 2, is_result);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
