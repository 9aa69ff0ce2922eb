// rrelu: in training a slope of its own for each number that is not positive.
#include "kernels/common/compose.h"

namespace tensord::kernels {
namespace {

using compose::call;
using ops::Scalar;

Tensor rrelu(const Tensor& x, const Scalar& lower, const Scalar& upper, bool training, const ops::Value& generator) {
  const double low = lower.to_double(), high = upper.to_double();
  check(low <= high, "Lower bound should be less than or equal to the upper bound");
  // A product with slopes keeps no copy of x, so that the in-place form has a gradient too.
  const Tensor is_scaled = call("aten::le.Scalar", x, 0), ones = call("aten::ones_like", call("aten::detach", x));
  if (!training)
    return call("aten::mul.Tensor", x, call("aten::masked_fill.Scalar", ones, is_scaled, (low + high) / 2));
  const Dims count{call("aten::sum", is_scaled).item_int()};
  // PyTorch draws a double for each of them, in order.
  const Tensor slopes = call("aten::uniform_", call("aten::zeros", count, DType::kFloat64), low, high, generator);
  return call("aten::mul.Tensor", x,
              call("aten::masked_scatter", ones, is_scaled, compose::to(slopes, x.dtype()).to(x.device())));
}
OP("aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
   "generator=None) -> Tensor")
    .direct(rrelu)
    .composite()
    .random()
    .with_inplace();

}  // namespace
}  // namespace tensord::kernels
