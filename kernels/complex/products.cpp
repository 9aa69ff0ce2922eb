// Products of complex matrices, and convolutions: four products of their real and imaginary parts, on the kernels for
// real numbers.
#include "core/ops/complex.h"
#include "kernels/complex/parts.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Returns;
using ops::Scalar;
using ops::Value;

[[maybe_unused]] const bool products_registered = [] {
  complex_parts::add_bilinear("aten::mm aten::bmm", "self", "mat2");
  complex_parts::add_bilinear("aten::mv", "self", "vec");
  complex_parts::add_bilinear("aten::dot", "self", "tensor");
  complex_parts::add_bilinear("aten::matmul", "self", "other");
  return true;
}();

IMPL("aten::outer aten::ger", ops::kComplexComposite, [](const Tensor& a, const Tensor& b) {
  check(a.ndim() == 1 && b.ndim() == 1, "outer: expected two 1-D tensors, but got ", a.ndim(), "-D and ", b.ndim(),
        "-D");
  return ops::mul(ops::unsqueeze(a, 1), b);
});
IMPL("aten::vdot", ops::kComplexComposite, [](const Tensor& a, const Tensor& b) { return ops::dot(ops::conj(a), b); });

// beta · self + alpha · product. With beta 0, self is not read, so it may hold NaN.
Tensor with_addend(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  check(self.dtype() == product.dtype(), "expected tensors of the same dtype, but got ", name_of(self.dtype()), " and ",
        name_of(product.dtype()));
  check(broadcast_sizes(self.sizes(), product.sizes()) == product.sizes(), "the expanded size of the tensor ",
        product.sizes(), " must match the existing size ", self.sizes());
  const auto scaled = [](const Tensor& x, const Scalar& factor) {
    return factor.to_complex() == 1.0 ? x : ops::mul(x, factor);
  };
  const Tensor right = scaled(product, alpha);
  return beta.to_complex() == 0.0 ? right : ops::add(scaled(self, beta), right);
}
#define WITH_ADDEND(NAME, PRODUCT)                                                                         \
  IMPL("aten::" NAME, ops::kComplexComposite,                                                              \
       [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) { \
         return with_addend(self, PRODUCT, beta, alpha);                                                   \
       })
WITH_ADDEND("addmm", ops::mm(a, b));
WITH_ADDEND("baddbmm", ops::bmm(a, b));
WITH_ADDEND("addbmm", ops::sum(ops::bmm(a, b), Dims{0}));
WITH_ADDEND("addmv", ops::mv(a, b));
WITH_ADDEND("addr", ops::outer(a, b));
#undef WITH_ADDEND

IMPL("aten::linear", ops::kComplexComposite,
     [](const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
       const Tensor product = ops::matmul(x, weight.ndim() == 2 ? ops::t(weight) : weight);
       return bias ? ops::add(product, *bias) : product;
     });

IMPL(
    "aten::inner aten::kron aten::tensordot aten::einsum aten::chain_matmul aten::linalg_multi_dot aten::cross "
    "aten::linalg_cross aten::bilinear",
    ops::kComplexCPU, ops::kSameAsDense);
IMPL("aten::linalg_vecdot", ops::kComplexComposite,
     [](const Tensor& a, const Tensor& b, int64_t dim) { return ops::sum(ops::mul(ops::conj(a), b), Dims{dim}); });

// --- convolutions, whose arguments are (input, weight, bias, …)

Returns convolve(const char* name, std::span<const Value> v) {
  const ops::Op& op = ops::get_op(name);
  const Tensor &x = v[0].to_tensor(), &weight = v[1].to_tensor();
  check(x.dtype() == weight.dtype() && (!v[2].is_tensor() || v[2].to_tensor().dtype() == x.dtype()),
        "expected tensors of the same dtype, but got ", name_of(x.dtype()), " and ", name_of(weight.dtype()));
  std::vector<Value> given(v.begin(), v.end());
  const auto part = [&](const char* of_input, const char* of_weight, const Value& bias) {
    given[0] = ops::contiguous(ops::call_by_name(of_input, x));
    given[1] = ops::contiguous(ops::call_by_name(of_weight, weight));
    given[2] = bias;
    return ops::run(op, given).front().to_tensor();
  };
  const bool has_bias = v[2].is_tensor();
  const Value real_bias = has_bias ? Value(ops::real(v[2].to_tensor())) : Value();
  const Value imag_bias = has_bias ? Value(ops::imag(v[2].to_tensor())) : Value();
  const Tensor real = ops::sub(part("aten::real", "aten::real", real_bias), part("aten::imag", "aten::imag", Value()));
  const Tensor imag = ops::add(part("aten::real", "aten::imag", imag_bias), part("aten::imag", "aten::real", Value()));
  return {{ops::complex(real, imag)}};
}
#define CONVOLUTION(NAME) IMPL(NAME, ops::kComplexComposite, [](std::span<const Value> v) { return convolve(NAME, v); })
CONVOLUTION("aten::convolution");
CONVOLUTION("aten::conv1d");
CONVOLUTION("aten::conv2d");
CONVOLUTION("aten::conv3d");
CONVOLUTION("aten::conv1d.padding");
CONVOLUTION("aten::conv2d.padding");
CONVOLUTION("aten::conv3d.padding");
CONVOLUTION("aten::conv_transpose1d");
CONVOLUTION("aten::conv_transpose2d.input");
CONVOLUTION("aten::conv_transpose3d.input");
#undef CONVOLUTION

}  // namespace
}  // namespace tensord::kernels
