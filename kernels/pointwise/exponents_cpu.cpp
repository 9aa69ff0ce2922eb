// Mantissas and exponents of numbers.
#include <cmath>

#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

void frexp_kernel(const KernelContext&, const Tensor& x, Tensor& mantissa, Tensor& exponent) {
  const Tensor in = x.contiguous(), fraction = Tensor::empty(x.sizes(), x.dtype()),
               power = Tensor::empty(x.sizes(), DType::kInt32);
  dispatch_floating(x.dtype(), "frexp", [&]<class T>() {
    for (int64_t i = 0; i < in.numel(); ++i) {
      int of_two = 0;
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      fraction.data<T>()[i] = static_cast<T>(std::frexp(static_cast<Wide>(in.data<T>()[i]), &of_two));
      power.data<int32_t>()[i] = of_two;
    }
  });
  mantissa.copy_from(fraction);
  exponent.copy_from(power);
}
IMPL("aten::frexp.Tensor", kCPU, frexp_kernel);

}  // namespace
}  // namespace tensord::kernels
