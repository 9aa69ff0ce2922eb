// Exponentials and powers of matrices.
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/matrix_exp.h"
#include "ops/linalg.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::WritesInto;

ops::TensorMeta infer_matrix_exp(const Tensor& a) {
  check_square("linalg.matrix_exp", a);
  check(is_floating(a.dtype()), "matrix_exp: Expected a floating point or complex tensor as input. Got ",
        name_of(a.dtype()));
  check_real("matrix_exp", a);
  return row_major(a.sizes(), a);
}

void matrix_exp_kernel(const ops::KernelContext&, const Tensor& a, Tensor& out) {
  if (a.numel() == 0) return;
  const Tensor dense = a.contiguous();
  const Dims batch = batch_of(a);
  const int64_t n = rows_of(a);
  check(n < (int64_t{1} << 24), "linalg.matrix_exp: matrices of ", n, " rows are too large");
  run_batches(count_of(batch), 8 * n * n * n, [&](int64_t i) {
    const Tensor work = Tensor::empty(Dims{kMatrixExpWork, n, n}, a.dtype());
    matrix_exp(a.dtype(), matrix_at(dense, batch, i), matrix_at(out, batch, i), matrix_of(work));
  });
}

// The exponential of [[Aᵀ, g], [0, Aᵀ]] has the gradient in its upper right block.
Tensor gradient_of_matrix_exp(const GradArgs& args, const Tensor& g) {
  const Tensor turned = transposed(args.inputs[0].to_tensor());
  const int64_t n = rows_of(turned);
  const Tensor upper = concatenated(turned, g, -1), lower = concatenated(zeros_of(turned), turned, -1);
  const Tensor whole = ops::linalg_matrix_exp(concatenated(upper, lower, -2));
  return narrowed(narrowed(whole, -2, 0, n), -1, n, n);
}

OP("aten::linalg_matrix_exp")
    .infer(infer_matrix_exp)
    .gradient(gradient::of_first(gradient_of_matrix_exp))
    .saves("self");
IMPL("aten::linalg_matrix_exp", kCPU, matrix_exp_kernel);
OP("aten::matrix_exp").impl([](const Tensor& a) { return ops::linalg_matrix_exp(a); }).composite();

// By repeated squaring.
Tensor matrix_power(const Tensor& a, int64_t n) {
  check_square("linalg.matrix_power", a);
  check(n != std::numeric_limits<int64_t>::min(), "linalg.matrix_power: the power is too small");
  if (n == 0) {
    // Zeros that depend on a, so that the result requires a gradient where a does.
    return sum_of(lower_part(upper_part(a, 1), -1), identity(rows_of(a), a));
  }
  Tensor square = n < 0 ? ops::linalg_inv(a) : a, result;
  for (uint64_t rest = static_cast<uint64_t>(n < 0 ? -n : n); rest != 0; rest >>= 1) {
    if (rest & 1) result = result ? matmul(result, square) : square;
    if (rest > 1) square = matmul(square, square);
  }
  return n == 1 ? ops::clone(result) : result;
}
OP("aten::linalg_matrix_power")
    .impl(matrix_power)
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);
OP("aten::matrix_power")
    .impl(matrix_power)
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);

}  // namespace
}  // namespace tensord::kernels::linalg
