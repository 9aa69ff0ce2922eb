// A = P L U with exchanged rows, and the solutions and gradients based on it.
#include <limits>

#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::TensorMeta;

std::vector<TensorMeta> infer_lu_factor(const Tensor& a, bool exchanges, bool) {
  check(a.ndim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(), " instead");
  check(exchanges, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  if (!has_lapack_dtype(a)) fail_dtype("lu_cpu", a.dtype());
  check(rows_of(a) <= std::numeric_limits<int32_t>::max(), "linalg.lu_factor: ", rows_of(a), " rows are too many");
  if (is_complex(a.dtype())) check_lapack_sizes("linalg.lu_factor", rows_of(a), columns_of(a));
  const Dims batch = batch_of(a);
  return {column_major(a.sizes(), a), row_major(with(batch, {std::min(rows_of(a), columns_of(a))}), DType::kInt32, a),
          row_major(batch, DType::kInt32, a)};
}

// With A' = Pᵀ A in blocks, L = [L1; L2], U = [U1, U2]: A1' = L1 U1, L2 = A2' U1⁻¹, U2 = L1⁻¹ A2'. So the gradient of
// L1 is its own less L1⁻ᵀ gU2 U2ᵀ, and that of U1 its own less L2ᵀ gL2 U1⁻ᵀ.
std::vector<Tensor> gradient_of_lu_factor(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g || !args.needs(0)) return gradients;
  const Tensor &lu = args.outputs[0].to_tensor(), &pivots = args.outputs[1].to_tensor();
  const int64_t rows = rows_of(lu), columns = columns_of(lu), steps = std::min(rows, columns);
  const auto block = [&](const Tensor& x, int64_t row, int64_t height, int64_t column, int64_t width) {
    return narrowed(narrowed(x, -2, row, height), -1, column, width);
  };
  const Tensor square = block(lu, 0, steps, 0, steps), of_square = block(g, 0, steps, 0, steps);
  const Tensor lower = sum_of(lower_part(square, -1), identity(steps, lu)), upper = upper_part(square);
  Tensor from_lower = matmul(transposed(lower), of_square), from_upper = matmul(of_square, transposed(upper));
  Tensor of_right, of_below;
  if (rows < columns) {
    of_right = block(g, 0, steps, steps, columns - steps);
    from_lower = difference(from_lower, matmul(of_right, transposed(block(lu, 0, steps, steps, columns - steps))));
  } else if (rows > columns) {
    of_below = block(g, steps, rows - steps, 0, steps);
    from_upper = difference(from_upper, matmul(transposed(block(lu, steps, rows - steps, 0, steps)), of_below));
  }
  Tensor inner = sum_of(lower_part(from_lower, -1), upper_part(from_upper));
  inner = solved_triangular(transposed(upper), inner, false, false);
  if (of_right) inner = concatenated(inner, of_right, -1);
  inner = solved_triangular(transposed(lower), inner, true, true, true);
  if (of_below) inner = concatenated(inner, solved_triangular(transposed(upper), of_below, false, false), -2);
  gradients[0] = ops::tensord_exchange_rows(inner, pivots, true);
  return gradients;
}

OP("aten::linalg_lu_factor_ex").infer(infer_lu_factor).gradient(gradient_of_lu_factor).saves("result0, result1");

// Applies a factorization's row exchanges to x, which gives Pᵀ x, or reverts them, which gives P x.
OP("tensord::exchange_rows")
    .infer([](const Tensor& x, const Tensor& pivots, bool) -> TensorMeta {
      check_matrix("exchange_rows", x, "x");
      check(pivots.ndim() >= 1 && pivots.dtype() == DType::kInt32, "exchange_rows: pivots must be int32, got ",
            describe(pivots));
      check(pivots.sizes().back() <= rows_of(x),
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?");
      const Dims batch = broadcast_sizes(batch_of(x), pivots.sizes().span().first(pivots.sizes().size() - 1));
      return column_major(with(batch, {rows_of(x), columns_of(x)}), x);
    })
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor back = ops::tensord_exchange_rows(g, args.inputs[1].to_tensor(), !args.inputs[2].to_bool());
      return gradient::fit_gradient(back, args.inputs[0].to_tensor());
    }))
    .saves("pivots");

OP("aten::linalg_lu_factor")
    .impl([](const Tensor& a, bool exchanges) -> std::tuple<Tensor, Tensor> {
      const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, exchanges, false);
      check_info("torch.linalg.lu_factor", info);
      return {lu, pivots};
    })
    .composite();
OP("aten::_lu_with_info")
    .impl([](const Tensor& a, bool exchanges, bool check_errors) -> std::tuple<Tensor, Tensor, Tensor> {
      const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, exchanges, false);
      if (check_errors) check_info("torch.linalg.lu_factor_ex", info);
      return {lu, pivots, info};
    })
    .composite();

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpacks_data,
                                             bool unpacks_pivots) {
  check(lu.ndim() >= 2, "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: ", lu.sizes(),
        " instead");
  check(!unpacks_pivots || pivots.dtype() == DType::kInt32,
        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.");
  const int64_t rows = rows_of(lu), columns = columns_of(lu), steps = std::min(rows, columns);
  const Tensor none = ops::empty(Dims{0}, {.dtype = lu.dtype(), .device = lu.device()});
  Tensor p = none, l = none, u = none;
  if (unpacks_pivots) {
    check(pivots.ndim() >= 1 && pivots.sizes().back() == steps,
          "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
          "Did you properly pass the result of lu_factor?");
    p = ops::contiguous(ops::tensord_exchange_rows(identity(rows, lu), pivots, true));
  }
  if (unpacks_data) {
    l = sum_of(lower_part(narrowed(lu, -1, 0, steps), -1),
               ops::eye(rows, steps, {.dtype = lu.dtype(), .device = lu.device()}));
    u = upper_part(narrowed(lu, -2, 0, steps));
  }
  return {p, l, u};
}
OP("aten::lu_unpack").impl(lu_unpack).composite();
OP("aten::linalg_lu")
    .impl([](const Tensor& a, bool exchanges) {
      check(a.ndim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(), " instead");
      const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, exchanges, false);
      return lu_unpack(lu, pivots, true, true);
    })
    .composite();

void check_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool is_left) {
  constexpr const char* kName = "linalg.lu_solve";
  check_square(kName, lu, "LU");
  check_matrix(kName, b, "B");
  check(lu.dtype() == b.dtype(), kName, ": Expected LU and B to have the same dtype, but found LU of type ",
        name_of(lu.dtype()), " and B of type ", name_of(b.dtype()), " instead");
  check(pivots.dtype() == DType::kInt32, kName, ": pivots should be a Tensor of scalar type torch.int32");
  check_equation(kName, lu, b, is_left);
  check(pivots.ndim() >= 1 && pivots.sizes().back() == columns_of(lu), kName,
        ": Number of pivots per batch should be same as the dimension of the matrix");
  check(Dims(lu.sizes().span().first(lu.sizes().size() - 1)) == pivots.sizes(), kName,
        ": Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(),
        " instead");
}

// X with A X = B or, without `is_left`, X A = B; with `is_adjoint` Aᴴ replaces A.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool is_left, bool is_adjoint) {
  check_lu_solve(lu, pivots, b, is_left);
  if (!is_left) return adjoint(lu_solve(lu, pivots, adjoint(b), true, !is_adjoint));
  if (is_adjoint) {
    const Tensor turned = adjoint(lu), inner = solved_triangular(turned, b, false);
    return ops::tensord_exchange_rows(solved_triangular(turned, inner, true, true, true), pivots, true);
  }
  const Tensor inner = ops::tensord_exchange_rows(b, pivots, false);
  return solved_triangular(lu, solved_triangular(lu, inner, false, true, true), true);
}
OP("aten::linalg_lu_solve").impl(lu_solve).composite();
OP("aten::lu_solve")
    .impl([](const Tensor& b, const Tensor& lu, const Tensor& pivots) { return lu_solve(lu, pivots, b, true, false); })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
