// A = L D Lᵀ of symmetric matrices that need not be positive, by Bunch and Kaufman's pivots.
#include "core/ops/attributes/written.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"

namespace tensord::kernels::linalg {
namespace {

using ops::TensorMeta;
using ops::WritesInto;

constexpr const char* kFactor = "torch.linalg.ldl_factor_ex";
constexpr const char* kSolve = "torch.linalg.ldl_solve";

std::vector<TensorMeta> infer_ldl_factor(const Tensor& a, bool, bool) {
  check_square(kFactor, a);
  check_real(kFactor, a);
  check_lapack_sizes(kFactor, rows_of(a), columns_of(a));
  const Dims batch = batch_of(a);
  return {column_major(a.sizes(), a), row_major(with(batch, {rows_of(a)}), DType::kInt32, a),
          row_major(batch, DType::kInt32, a)};
}

OP("aten::linalg_ldl_factor_ex").infer(infer_ldl_factor).constant_result();
OP("aten::linalg_ldl_factor")
    .impl([](const Tensor& a, bool is_hermitian) -> std::tuple<Tensor, Tensor> {
      const auto [ld, pivots, info] = call_for<3>("aten::linalg_ldl_factor_ex", a, is_hermitian, false);
      check_info("torch.linalg.ldl_factor", info);
      return {ld, pivots};
    })
    .composite();

TensorMeta infer_ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool) {
  check_square(kSolve, ld);
  check_real(kSolve, ld);
  check_matrix(kSolve, b, "B");
  check(Dims(ld.sizes().span().first(ld.sizes().size() - 1)) == pivots.sizes(), kSolve,
        ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes(),
        " instead");
  check(pivots.dtype() == DType::kInt32 || pivots.dtype() == DType::kInt64, kSolve,
        ": Expected pivots to be integers. Got ", name_of(pivots.dtype()));
  check(ld.dtype() == b.dtype(), "Expected b and A to have the same dtype, but found b of type ", name_of(b.dtype()),
        " and A of type ", name_of(ld.dtype()), " instead.");
  check(rows_of(ld) == rows_of(b), "Incompatible matrix sizes for ", kSolve, ": each A matrix is ", rows_of(ld), " by ",
        rows_of(ld), " but each b matrix is ", rows_of(b), " by ", columns_of(b));
  check_lapack_sizes(kSolve, rows_of(ld), columns_of(ld));
  check_lapack_sizes(kSolve, columns_of(b), 0);
  return column_major(with(broadcast_sizes(batch_of(ld), batch_of(b)), {rows_of(b), columns_of(b)}), b);
}

OP("aten::linalg_ldl_solve").infer(infer_ldl_solve).constant_result().set<WritesInto>(WritesInto::kSameDType);

}  // namespace
}  // namespace tensord::kernels::linalg
