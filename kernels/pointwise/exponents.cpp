// frexp and ldexp of tensors: numbers as mantissa and power of two.
#include <cmath>

#include "kernels/common/compose.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using compose::call;
using compose::Expr;
using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;

OP("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
    .direct([](const Tensor& x, const Tensor& exponent) {
      return (Expr(x) * Expr(call("aten::pow.Scalar", ops::Scalar(2.0), exponent))).tensor();
    })
    .composite();

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
OP("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
    .infer([](const Tensor& x) {
      check(is_floating(x.dtype()), "torch.frexp() only supports floating-point dtypes");
      const Operand in(x);
      return std::vector<TensorMeta>{infer_pointwise({&in, 1}, x.dtype()), infer_pointwise({&in, 1}, DType::kInt32)};
    })
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor scale = call("aten::exp2", call("aten::to.dtype", args.outputs[1].to_tensor(), g.dtype()));
      return (Expr(g) / Expr(scale)).tensor();
    }))
    .saves("result1");
KERNEL("aten::frexp.Tensor", kCPU, frexp_kernel);

}  // namespace
}  // namespace tensord::kernels
