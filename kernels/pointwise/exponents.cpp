// frexp and ldexp of tensors: numbers as mantissa and power of two.
#include "kernels/expr/compose.h"
#include "kernels/pointwise/pointwise.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::GradArgs;
using ops::TensorMeta;

OP("aten::ldexp.Tensor")
    .impl([](const Tensor& x, const Tensor& exponent) {
      return (Expr(x) * Expr(ops::pow(ops::Scalar(2.0), exponent))).tensor();
    })
    .composite();

OP("aten::frexp.Tensor")
    .infer([](const Tensor& x) {
      check(is_floating(x.dtype()), "torch.frexp() only supports floating-point dtypes");
      const Operand in(x);
      return std::vector<TensorMeta>{infer_pointwise({&in, 1}, x.dtype()), infer_pointwise({&in, 1}, DType::kInt32)};
    })
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor scale = ops::exp2(ops::to(args.outputs[1].to_tensor(), g.dtype()));
      return (Expr(g) / Expr(scale)).tensor();
    }))
    .saves("result1");

}  // namespace
}  // namespace tensord::kernels
