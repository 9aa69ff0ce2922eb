// A = L Lᵀ of symmetric positive-definite matrices, and the solutions, inverses and gradients based on it.
#include "kernels/linalg/cholesky.h"
#include "core/ops/attributes/exported.h"

#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"
#include "ops/linalg.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::TensorMeta;

void check_cholesky(const char* name, const Tensor& a) {
  check_square(name, a);
  if (a.dtype() == DType::kFloat16 || a.dtype() == DType::kBFloat16) fail_dtype("cholesky_cpu", a.dtype());
}

std::vector<TensorMeta> infer_cholesky(const Tensor& a, bool, bool) {
  check_cholesky("linalg.cholesky", a);
  check_real("linalg.cholesky", a);
  if (is_complex(a.dtype())) check_lapack_sizes("linalg.cholesky", rows_of(a), columns_of(a));
  return {column_major(a.sizes(), a), row_major(batch_of(a), DType::kInt32, a)};
}

// L⁻ᵀ sym(tril(Lᵀ g)) L⁻¹, with the diagonal counted half.
Tensor gradient_of_cholesky(const GradArgs& args, const Tensor& gradient) {
  const bool is_upper = args.inputs[1].to_bool();
  const Tensor& result = args.outputs[0].to_tensor();
  const Tensor l = is_upper ? adjoint(result) : result, g = is_upper ? adjoint(gradient) : gradient;
  const Tensor inner = lower_part(matmul(adjoint(l), g));
  const Tensor whole = scaled(sum_of(inner, adjoint(lower_part(inner, -1))), 0.5);
  return solved_triangular(l, solved_triangular(adjoint(l), whole, true), false, false);
}

OP("aten::linalg_cholesky_ex")
    .infer(infer_cholesky)
    .gradient(gradient::of_first(gradient_of_cholesky))
    .saves("result0");

OP("aten::linalg_cholesky")
    .impl([](const Tensor& a, bool is_upper) {
      const auto [l, info] = call_for<2>("aten::linalg_cholesky_ex", a, is_upper, false);
      check_info("linalg.cholesky", info);
      return l;
    })
    .composite();
OP("aten::cholesky")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& a, bool is_upper) {
      check_cholesky("cholesky", a);
      if (!is_floating(a.dtype()) && !is_complex(a.dtype())) fail_dtype("cholesky_cpu", a.dtype());
      const auto [l, info] = call_for<2>("aten::linalg_cholesky_ex", a, is_upper, false);
      check_info("cholesky", info);
      return l;
    })
    .composite();

// A X = B by the factor of A, whose other triangle is not read.
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool is_upper) {
  check(b.ndim() >= 2, "b should have at least 2 dimensions, but has ", b.ndim(), " dimensions instead");
  check(factor.ndim() >= 2, "u should have at least 2 dimensions, but has ", factor.ndim(), " dimensions instead");
  check(b.dtype() == factor.dtype(), "Expected b and A to have the same dtype, but found b of type ",
        name_of(b.dtype()), " and A of type ", name_of(factor.dtype()), " instead.");
  check(rows_of(factor) == columns_of(factor), "A must be batches of square matrices, but they are ", rows_of(factor),
        " by ", columns_of(factor), " matrices");
  check(rows_of(factor) == rows_of(b), "Incompatible matrix sizes for cholesky_solve: each A matrix is ",
        rows_of(factor), " by ", rows_of(factor), " but each b matrix is ", rows_of(b), " by ", columns_of(b));
  const Tensor turned = adjoint(factor), &first = is_upper ? turned : factor, &second = is_upper ? factor : turned;
  return solved_triangular(second, solved_triangular(first, b, false), true);
}
// The gradient of the factor, from that of the product of the factor with itself, which was inverted. Both triangles
// get one, as in PyTorch, whose factors have zeros in the other triangle.
Tensor gradient_of_factor(const Tensor& factor, const Tensor& of_product, bool is_upper) {
  const Tensor both = sum_of(of_product, adjoint(of_product));
  return negated(is_upper ? matmul(factor, both) : matmul(both, factor));
}
std::vector<Tensor> gradient_of_cholesky_solve(const GradArgs& args) {
  const Tensor &b = args.inputs[0].to_tensor(), &factor = args.inputs[1].to_tensor(), &g = args.grad_outputs[0];
  const bool is_upper = args.inputs[2].to_bool();
  std::vector<Tensor> gradients(args.inputs.size());
  if (!g) return gradients;
  const Tensor of_b = ops::cholesky_solve(g, factor, is_upper);
  if (args.needs(0)) gradients[0] = gradient::fit_gradient(of_b, b);
  if (args.needs(1)) {
    const Tensor of_product = matmul(of_b, adjoint(args.outputs[0].to_tensor()));
    gradients[1] = gradient::fit_gradient(gradient_of_factor(factor, of_product, is_upper), factor);
  }
  return gradients;
}
OP("aten::cholesky_solve")
    .impl(cholesky_solve)
    .gradient(gradient_of_cholesky_solve)
    .saves("self: input2; input2: input2, result");

Tensor cholesky_inverse(const Tensor& factor, bool is_upper) {
  check_square("cholesky_inverse", factor);
  if (!has_lapack_dtype(factor)) {
    fail_dtype("cholesky_inverse_out_cpu", factor.dtype());
  }
  check_info("cholesky_inverse", first_zeros(absolute_of(diagonal_of(factor))));
  return cholesky_solve(identity(rows_of(factor), factor), factor, is_upper);
}
OP("aten::cholesky_inverse")
    .impl(cholesky_inverse)
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor& inverse = args.outputs[0].to_tensor();
      return gradient_of_factor(args.inputs[0].to_tensor(), matmul(inverse, matmul(g, inverse)),
                                args.inputs[1].to_bool());
    }))
    .saves("self, result");

}  // namespace

}  // namespace tensord::kernels::linalg
