// Singular values and vectors.
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"
#include "ops/factory.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::TensorMeta;
using ops::WritesInto;
using Driver = std::optional<std::string>;

std::vector<TensorMeta> infer_svd(const Tensor& a, bool is_full, bool has_vectors, const Driver& driver) {
  check_matrix("linalg.svd", a);
  check_real("linalg.svd", a);
  check(!driver,
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  const Dims batch = batch_of(a);
  const TensorMeta values = row_major(with(batch, {steps}), real_dtype(a.dtype()), a), none = row_major(Dims{0}, a);
  check_lapack_sizes("linalg.svd", rows, columns);
  if (!has_vectors) return {none, values, none};
  check_lapack_sizes("linalg.svd", rows, is_full ? rows : steps);
  check_lapack_sizes("linalg.svd", columns, is_full ? columns : steps);
  return {column_major(with(batch, {rows, is_full ? rows : steps}), a), values,
          column_major(with(batch, {is_full ? columns : steps, columns}), a)};
}

Tensor skew_part(const Tensor& x) { return difference(x, adjoint(x)); }

// With E[i, j] = s_j² - s_i² (1 on the diagonal):
//   gA = U ((skew(Uᵀ gU) / E) S + S (skew(Vᵀ gV) / E) + diag(gS)) Vᵀ, and what lies outside of U's and V's spaces.
std::vector<Tensor> gradient_of_svd(const GradArgs& args) {
  const Tensor& a = args.inputs[0].to_tensor();
  std::vector<Tensor> gradients(args.inputs.size());
  Tensor of_u = args.grad_outputs[0], of_vh = args.grad_outputs[2];
  const Tensor& of_s = args.grad_outputs[1];
  const bool has_vectors = args.inputs[2].to_bool();
  if (!has_vectors) of_u = of_vh = Tensor();
  if (!of_u && !of_s && !of_vh) return gradients;
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  Tensor u = args.outputs[0].to_tensor(), s = args.outputs[1].to_tensor(), vh = args.outputs[2].to_tensor();
  if (!has_vectors) {
    const auto parts = call_for<3>("aten::_linalg_svd", a, false, true);
    u = parts[0], s = parts[1], vh = parts[2];
  }
  u = narrowed(u, -1, 0, steps), vh = narrowed(vh, -2, 0, steps);
  if (of_u) of_u = narrowed(of_u, -1, 0, steps);
  if (of_vh) of_vh = narrowed(of_vh, -2, 0, steps);
  const Tensor by_row = unsqueezed(s, -1), by_column = unsqueezed(s, -2);
  if (!of_u && !of_vh) {
    gradients[0] = matmul(u, product(unsqueezed(of_s, -1), vh));
    return gradients;
  }
  const Tensor gaps = sum_of(product(difference(by_column, by_row), sum_of(by_column, by_row)), identity(steps, a));
  Tensor inner = of_s ? as_diagonal(of_s) : Tensor();
  if (of_u) inner = joined(inner, product(quotient(skew_part(matmul(adjoint(u), of_u)), gaps), by_column));
  if (of_vh) inner = joined(inner, product(by_row, quotient(skew_part(matmul(vh, adjoint(of_vh))), gaps)));
  // In complex matrices the phases of each pair of vectors rotate together.
  if (of_u && of_vh && is_complex(a.dtype())) {
    const Tensor turning = diagonal_of(skew_part(matmul(adjoint(u), of_u)));
    inner = sum_of(inner, as_diagonal(quotient(turning, scaled(s, 2))));
  }
  Tensor of_a = matmul(u, matmul(inner, vh));
  if (of_u && rows > steps) {
    const Tensor outside = difference(of_u, matmul(u, matmul(adjoint(u), of_u)));
    of_a = sum_of(of_a, matmul(quotient(outside, by_column), vh));
  }
  if (of_vh && columns > steps) {
    const Tensor outside = difference(of_vh, matmul(matmul(of_vh, adjoint(vh)), vh));
    of_a = sum_of(of_a, matmul(u, quotient(outside, by_row)));
  }
  gradients[0] = of_a;
  return gradients;
}

OP("aten::_linalg_svd").infer(infer_svd).gradient(gradient_of_svd).saves("A, result0, result1, result2");

OP("aten::linalg_svd")
    .impl([](const Tensor& a, bool is_full, const ops::Value& driver) -> std::tuple<Tensor, Tensor, Tensor> {
      const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, is_full, true, driver);
      return {u, s, vh};
    })
    .composite();
OP("aten::linalg_svdvals")
    .impl([](const Tensor& a, const ops::Value& driver) {
      return call_for<3>("aten::_linalg_svd", a, false, false, driver)[1];
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::svd")
    .impl([](const Tensor& a, bool is_reduced, bool has_vectors) -> std::tuple<Tensor, Tensor, Tensor> {
      const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, !is_reduced, has_vectors);
      if (has_vectors) return {u, s, adjoint(vh)};
      const auto square = [&](int64_t size) {
        return ops::zeros(with(batch_of(a), {size, size}), {.dtype = a.dtype(), .device = a.device()});
      };
      return {square(rows_of(a)), s, square(columns_of(a))};
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
