// Linear systems with triangular matrices.
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/complex.h"
#include "kernels/linalg/lapack.h"
#include "kernels/linalg/linalg.h"
#include "ops/linalg.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::WritesInto;

constexpr const char* kTriangularName = "linalg.solve_triangular";

ops::TensorMeta infer_solve_triangular(const Tensor& a, const Tensor& b, bool, bool is_left, bool) {
  check_square(kTriangularName, a);
  check_matrix(kTriangularName, b, "B");
  check_equation(kTriangularName, a, b, is_left);
  check_same_dtype(kTriangularName, a, b);
  if (!has_lapack_dtype(a)) fail_dtype("triangular_solve_cpu", a.dtype());
  if (is_complex(a.dtype())) check_lapack_sizes(kTriangularName, rows_of(b), columns_of(b));
  return column_major(with(broadcast_sizes(batch_of(a), batch_of(b)), {rows_of(b), columns_of(b)}), b);
}

// With X = A⁻¹ B: the gradient of B is A⁻ᵀ g, and that of A is the triangle of -A⁻ᵀ g Xᵀ.
std::vector<Tensor> gradient_of_solve_triangular(const GradArgs& args) {
  const Tensor &a = args.inputs[0].to_tensor(), &b = args.inputs[1].to_tensor(), &x = args.outputs[0].to_tensor();
  const bool is_upper = args.inputs[2].to_bool(), is_left = args.inputs[3].to_bool(),
             is_unit = args.inputs[4].to_bool();
  std::vector<Tensor> gradients(5);
  if (!args.grad_outputs[0]) return gradients;
  const Tensor of_b = ops::linalg_solve_triangular(transposed(a), args.grad_outputs[0],
                                                   {.upper = !is_upper, .left = is_left, .unitriangular = is_unit});
  if (args.needs(0)) {
    const Tensor turned = transposed(x);
    const Tensor product = is_left ? ops::matmul(of_b, turned) : ops::matmul(turned, of_b);
    const int64_t diagonal = is_unit ? (is_upper ? 1 : -1) : 0;
    gradients[0] =
        gradient::fit_gradient(ops::neg(is_upper ? ops::triu(product, diagonal) : ops::tril(product, diagonal)), a);
  }
  if (args.needs(1)) gradients[1] = gradient::fit_gradient(of_b, b);
  return gradients;
}

void solve_triangular_kernel(const ops::KernelContext&, const Tensor& a, const Tensor& b, bool is_upper, bool is_left,
                             bool is_unit, Tensor& out) {
  out.copy_from(b);
  if (out.numel() == 0) return;
  if (is_complex(out.dtype())) return solve_triangular_complex(a, out, is_upper, is_left, is_unit);
  const Dims batch = batch_of(out);
  const int64_t n = rows_of(a);
  run_batches(count_of(batch), n * rows_of(out) * columns_of(out) / 2, [&](int64_t i) {
    const Matrix matrix = matrix_at(a, batch, i), x = matrix_at(out, batch, i);
    if (is_left)
      solve_triangular(out.dtype(), matrix, x, is_upper, is_unit);
    else  // X A = B is Aᵀ Xᵀ = Bᵀ
      solve_triangular(out.dtype(), matrix.transposed(), x.transposed(), !is_upper, is_unit);
  });
}

OP("aten::linalg_solve_triangular")
    .infer(infer_solve_triangular)
    .gradient(gradient_of_solve_triangular)
    .saves("self, result")
    .set<WritesInto>(WritesInto::kSameDType);
IMPL("aten::linalg_solve_triangular", kCPU, solve_triangular_kernel);

// The older operator, which broadcasts both operands and also returns the matrices.
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool is_upper, bool is_transposed,
                                            bool is_unit) {
  const auto check_rank = [](const Tensor& x, const char* name) {
    check(x.ndim() >= 2, "torch.triangular_solve: Expected ", name, " to have at least 2 dimensions, but it has ",
          x.ndim(), " dimensions instead");
  };
  check_rank(b, "b");
  check_rank(a, "A");
  check(a.dtype() == b.dtype(), "Expected b and A to have the same dtype, but found b of type ", name_of(b.dtype()),
        " and A of type ", name_of(a.dtype()), " instead.");
  check(rows_of(a) == columns_of(a), "A must be batches of square matrices, but they are ", rows_of(a), " by ",
        columns_of(a), " matrices");
  check(rows_of(a) == rows_of(b), "Incompatible matrix sizes for triangular_solve: each A matrix is ", rows_of(a),
        " by ", rows_of(a), " but each b matrix is ", rows_of(b), " by ", columns_of(b));
  const Tensor solution = ops::linalg_solve_triangular(is_transposed ? transposed(a) : a, b,
                                                       {.upper = is_upper != is_transposed, .unitriangular = is_unit});
  const Tensor whole = ops::expand(a, with(batch_of(solution), {rows_of(a), columns_of(a)}));
  // Copies the transpose, so that the memory is column-major.
  return {solution, transposed(ops::clone(transposed(whole), {.memory_format = MemoryFormat::kContiguous}))};
}
OP("aten::triangular_solve").impl(triangular_solve).composite();

}  // namespace
}  // namespace tensord::kernels::linalg
