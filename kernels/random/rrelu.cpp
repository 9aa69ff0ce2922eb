// rrelu and its variants that return the slopes: in training, each number that is not positive has a slope of its own.
#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;

// The factor of each number.
Tensor slopes_of(const Tensor& x, double low, double high, bool training) {
  check(is_floating(x.dtype()), "rrelu: not implemented for ", name_of(x.dtype()));
  check(low <= high, "Lower bound should be less than or equal to the upper bound");
  const Tensor is_scaled = ops::le(x, 0), ones = ops::ones_like(ops::detach(x));
  if (!training) return ops::masked_fill(ones, is_scaled, (low + high) / 2);
  const Dims count{ops::sum(is_scaled).item_int()};
  // PyTorch draws one double for each of these numbers, in order, between bounds of x's dtype.
  if (x.dtype() != DType::kFloat64) {
    low = static_cast<float>(low);
    high = static_cast<float>(high);
  }
  const Tensor slopes = ops::uniform_(ops::zeros(count, {.dtype = DType::kFloat64}), low, high);
  return ops::masked_scatter(ones, is_scaled, compose::to(slopes, x.dtype()).to(x.device()));
}

Tensor rrelu(const Tensor& x, const Scalar& lower, const Scalar& upper, bool training, const ops::Value&) {
  // A product with the slopes needs no copy of x, so that the in-place variant has a gradient too.
  return ops::mul(x, slopes_of(x, lower.to_double(), upper.to_double(), training));
}
OP("aten::rrelu").impl(rrelu).composite().random();

// The same, returning the slopes in `noise` in training.
template <bool is_in_place>
Tensor rrelu_with_noise(const Tensor& x, const Tensor& noise, const Scalar& lower, const Scalar& upper, bool training,
                        const ops::Value&) {
  check(noise.sizes() == x.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", x.sizes(),
        " noise.shape = ", noise.sizes());
  check(noise.dtype() == x.dtype(), "rrelu_with_noise: expected noise of ", name_of(x.dtype()), ", got ",
        name_of(noise.dtype()));
  const Tensor slopes = slopes_of(ops::detach(x), lower.to_double(), upper.to_double(), training);
  if (training) ops::copy_(noise, slopes);
  return is_in_place ? ops::mul_(x, slopes) : ops::mul(x, slopes);
}
OP("aten::rrelu_with_noise").impl(rrelu_with_noise<false>).composite().random();
OP("aten::rrelu_with_noise_").impl(rrelu_with_noise<true>).composite().random();

OP("aten::rrelu_with_noise_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& noise, const Scalar& lower, const Scalar& upper,
             bool training, bool is_result) {
      if (training) return ops::mul(grad, noise);
      return ops::leaky_relu_backward(grad, x, (lower.to_double() + upper.to_double()) / 2, is_result);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
