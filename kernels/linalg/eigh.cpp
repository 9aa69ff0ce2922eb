// Eigenvalues and vectors of symmetric matrices.
#include "kernels/linalg/eigh.h"
#include "core/ops/attributes/exported.h"

#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {

bool is_upper_triangle(const std::string& uplo) {
  check(uplo.size() == 1 && std::string_view("LlUu").find(uplo[0]) != std::string_view::npos,
        "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return uplo[0] == 'U' || uplo[0] == 'u';
}

namespace {

using ops::GradArgs;
using ops::TensorMeta;
using ops::WritesInto;

std::vector<TensorMeta> infer_eigh(const Tensor& a, const std::string& uplo, bool has_vectors) {
  check_square("linalg.eigh", a);
  is_upper_triangle(uplo);
  if (!has_lapack_dtype(a)) fail_dtype("linalg_eigh_cpu", a.dtype());
  check_lapack_sizes("linalg.eigh", rows_of(a), columns_of(a));
  const TensorMeta values = row_major(with(batch_of(a), {rows_of(a)}), real_dtype(a.dtype()), a);
  return {values, has_vectors ? column_major(a.sizes(), a) : row_major(Dims{0}, a)};
}

// V (diag(gL) + skew(Vᵀ gV) / E) Vᵀ with E[i, j] = l_j - l_i, and 1 on the diagonal: V stays orthogonal however A
// changes.
std::vector<Tensor> gradient_of_eigh(const GradArgs& args) {
  const Tensor& a = args.inputs[0].to_tensor();
  std::vector<Tensor> gradients(args.inputs.size());
  const bool has_vectors = args.inputs[2].to_bool();
  const Tensor &of_values = args.grad_outputs[0], of_vectors = has_vectors ? args.grad_outputs[1] : Tensor();
  if (!of_values && !of_vectors) return gradients;
  Tensor l = args.outputs[0].to_tensor(), v = args.outputs[1].to_tensor();
  if (!has_vectors) {
    const auto parts = call_for<2>("aten::_linalg_eigh", a, args.inputs[1], true);
    l = parts[0], v = parts[1];
  }
  const Tensor turned = adjoint(v);
  if (!of_vectors) {
    gradients[0] = matmul(product(v, unsqueezed(of_values, -2)), turned);
    return gradients;
  }
  const Tensor gaps = sum_of(difference(unsqueezed(l, -2), unsqueezed(l, -1)), identity(rows_of(a), a));
  const Tensor turning = matmul(turned, of_vectors);
  Tensor inner = quotient(scaled(difference(turning, adjoint(turning)), 0.5), gaps);
  if (of_values) inner = sum_of(inner, as_diagonal(of_values));
  gradients[0] = matmul(v, matmul(inner, turned));
  return gradients;
}

OP("aten::_linalg_eigh").infer(infer_eigh).gradient(gradient_of_eigh).saves("A, result0, result1");

OP("aten::linalg_eigh")
    .impl([](const Tensor& a, const std::string& uplo) -> std::tuple<Tensor, Tensor> {
      const auto [values, vectors] = call_for<2>("aten::_linalg_eigh", a, uplo, true);
      return {values, vectors};
    })
    .composite();
OP("aten::linalg_eigvalsh")
    .impl([](const Tensor& a, const std::string& uplo) { return call_for<2>("aten::_linalg_eigh", a, uplo, false)[0]; })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::symeig")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& a, bool has_vectors, bool is_upper) -> std::tuple<Tensor, Tensor> {
      check_square("linalg.symeig", a);
      const auto [values, vectors] =
          call_for<2>("aten::_linalg_eigh", a, std::string(is_upper ? "U" : "L"), has_vectors);
      // Empty matrices have vectors in any case.
      return {values, a.numel() == 0 ? ops::clone(a) : vectors};
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
