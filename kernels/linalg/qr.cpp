// A = Q R by Householder reflections, and the reflections themselves.
#include "core/ops/attributes/exported.h"
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using ops::TensorMeta;
using ops::WritesInto;

std::vector<TensorMeta> infer_geqrf(const Tensor& a) {
  check(a.ndim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  if (!has_lapack_dtype(a)) fail_dtype("geqrf_cpu", a.dtype());
  check_lapack_sizes("torch.geqrf", rows_of(a), columns_of(a));
  return {column_major(a.sizes(), a), row_major(with(batch_of(a), {std::min(rows_of(a), columns_of(a))}), a)};
}

OP("aten::geqrf").infer(infer_geqrf);

constexpr const char* kProduct = "torch.linalg.householder_product";

TensorMeta infer_householder_product(const Tensor& a, const Tensor& tau) {
  check(a.ndim() >= 2, kProduct, ": input must have at least 2 dimensions.");
  check(rows_of(a) >= columns_of(a), kProduct, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  check(a.ndim() - tau.ndim() == 1, kProduct,
        ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.ndim(),
        " and input.ndim is equal to ", a.ndim());
  check(columns_of(a) >= tau.sizes().back(), kProduct,
        ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check(batch_of(a) == Dims(tau.sizes().span().first(tau.sizes().size() - 1)), kProduct,
        ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau.sizes());
  check(a.dtype() == tau.dtype(), kProduct, ": tau dtype ", name_of(tau.dtype()), " does not match input dtype ",
        name_of(a.dtype()));
  if (!has_lapack_dtype(a)) fail_dtype("orgqr_cpu", a.dtype());
  check_lapack_sizes(kProduct, rows_of(a), columns_of(a));
  return column_major(a.sizes(), a);
}

// The result is P_1 with P_i = P_{i+1} - tau_i v_i (v_iᵀ P_{i+1}) and P_{k+1} the identity's first columns. Going
// forward through i, the gradient g of P_i gives those of tau_i and v_i, and of P_{i+1}.
std::vector<Tensor> gradient_of_householder_product(const GradArgs& args) {
  if (is_complex(args.inputs[0].to_tensor().dtype()))
    fail(ErrorCode::kUnimplemented, "derivative for linalg_householder_product of complex tensors is not implemented");
  const Tensor &a = args.inputs[0].to_tensor(), &tau = args.inputs[1].to_tensor();
  Tensor g = args.grad_outputs[0];
  if (!g) return std::vector<Tensor>(2);
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = tau.sizes().back();
  if (steps == 0) return {zeros_of(a), zeros_of(tau)};
  const Tensor ones = ops::eye(rows, columns, {.dtype = a.dtype(), .device = a.device()});
  const Tensor reflectors = sum_of(lower_part(a, -1), ones);
  std::vector<Tensor> v, t, later(static_cast<size_t>(steps) + 1);
  for (int64_t i = 0; i < steps; ++i) {
    v.push_back(narrowed(reflectors, -1, i, 1));
    t.push_back(unsqueezed(narrowed(tau, -1, i, 1), -1));
  }
  later.back() = ops::expand(ones, a.sizes());
  for (size_t i = v.size(); i-- > 1;) {
    later[i] = difference(later[i + 1], product(t[i], matmul(v[i], matmul(adjoint(v[i]), later[i + 1]))));
  }
  std::vector<Tensor> of_v, of_tau;
  for (size_t i = 0; i < v.size(); ++i) {
    const Tensor& p = later[i + 1];
    const Tensor g_v = matmul(adjoint(g), v[i]), p_v = matmul(adjoint(p), v[i]);
    of_tau.push_back(ops::squeeze(negated(matmul(adjoint(g_v), p_v)), -1));
    of_v.push_back(negated(product(t[i], sum_of(matmul(g, p_v), matmul(p, g_v)))));
    g = difference(g, product(t[i], matmul(v[i], adjoint(g_v))));
  }
  if (steps < columns) of_v.push_back(zeros_of(narrowed(a, -1, steps, columns - steps)));
  return {lower_part(ops::cat(of_v, -1), -1), ops::cat(of_tau, -1)};
}

OP("aten::linalg_householder_product")
    .infer(infer_householder_product)
    .gradient(gradient_of_householder_product)
    .saves("input, tau");
OP("aten::orgqr")
    .impl([](const Tensor& a, const Tensor& tau) { return ops::linalg_householder_product(a, tau); })
    .composite();

TensorMeta infer_ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool is_left, bool) {
  constexpr const char* kName = "torch.ormqr";
  check(a.ndim() >= 2, kName, ": input must have at least 2 dimensions.");
  check(other.ndim() >= 2, kName, ": other must have at least 2 dimensions.");
  const int64_t size = is_left ? rows_of(other) : columns_of(other);
  const char* dim = is_left ? "-2" : "-1";
  check(tau.ndim() >= 1 && size >= tau.sizes().back(), kName, ": other.shape[", dim,
        "] must be greater than or equal to tau.shape[-1]");
  check(size == rows_of(a), kName, ": other.shape[", dim, "] must be equal to input.shape[-2]");
  check(tau.sizes().back() <= columns_of(a), kName, ": tau.shape[-1] must be less than or equal to input.shape[-1]");
  check(a.ndim() - tau.ndim() == 1 && a.ndim() == other.ndim() &&
            batch_of(a) == Dims(tau.sizes().span().first(tau.sizes().size() - 1)) && batch_of(a) == batch_of(other),
        kName, ": Expected batch dimensions of input, tau and other to be equal");
  check(a.dtype() == tau.dtype() && a.dtype() == other.dtype(), kName,
        ": Expected input, tau and other to have the same dtype");
  if (!has_lapack_dtype(a)) fail_dtype("ormqr_cpu", a.dtype());
  check_lapack_sizes(kName, rows_of(a), columns_of(a));
  check_lapack_sizes(kName, rows_of(other), columns_of(other));
  return column_major(other.sizes(), other);
}

OP("aten::ormqr").infer(infer_ormqr).set<WritesInto>(WritesInto::kSameDType);

std::tuple<Tensor, Tensor> qr(const Tensor& a, const std::string& mode) {
  check_matrix("linalg.qr", a);
  check(is_floating(a.dtype()) || is_complex(a.dtype()),
        "linalg.qr: Expected a floating point or complex tensor as input. Got ", name_of(a.dtype()));
  const bool has_q = mode != "r", is_complete = mode == "complete";
  check(!has_q || is_complete || mode == "reduced", "qr received unrecognized mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  const auto [packed, tau] = call_for<2>("aten::geqrf", a);
  const Tensor r = upper_part(is_complete ? packed : narrowed(packed, -2, 0, steps));
  if (!has_q) return {ops::empty(Dims{0}, {.dtype = a.dtype(), .device = a.device()}), r};
  Tensor reflectors = narrowed(packed, -1, 0, steps);
  if (is_complete && rows > steps) {
    const Dims sizes = with(batch_of(a), {rows, rows - steps});
    reflectors = concatenated(reflectors, ops::zeros(sizes, {.dtype = a.dtype(), .device = a.device()}), -1);
  }
  return {ops::linalg_householder_product(reflectors, tau), r};
}

// For an A that is wider than high, R = [R1, R2] and R2 = Qᵀ A2. For the square part, gA = (gQ + Q sym(triu(gR Rᵀ - Qᵀ
// gQ))) R⁻ᵀ with the diagonal counted once.
std::vector<Tensor> gradient_of_qr(const GradArgs& args) {
  const Tensor &q = args.outputs[0].to_tensor(), &r = args.outputs[1].to_tensor();
  const std::string& mode = args.inputs[1].to_string();
  std::vector<Tensor> gradients(args.inputs.size());
  Tensor of_q = args.grad_outputs[0], of_r = args.grad_outputs[1];
  if (!of_q && !of_r) return gradients;
  check(mode != "r",
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
        "mode='reduced') if you are going to require gradients");
  const int64_t rows = rows_of(q), columns = columns_of(r), steps = std::min(rows, columns);
  check(mode != "complete" || rows <= columns,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
  const Tensor square = narrowed(r, -1, 0, steps);
  Tensor of_right;
  if (columns > steps && of_r) {
    const Tensor right = narrowed(r, -1, steps, columns - steps), of_r2 = narrowed(of_r, -1, steps, columns - steps);
    of_right = matmul(q, of_r2);
    of_q = joined(of_q, matmul(q, matmul(right, adjoint(of_r2))));
  }
  Tensor inner;
  if (of_r) inner = matmul(narrowed(of_r, -1, 0, steps), adjoint(square));
  if (of_q) inner = inner ? difference(inner, matmul(adjoint(q), of_q)) : negated(matmul(adjoint(q), of_q));
  const Tensor strict = upper_part(inner, 1);
  // Counts the diagonal once; for complex matrices its real part.
  Tensor diagonal = diagonal_of(inner);
  if (is_complex(diagonal.dtype())) diagonal = ops::to(ops::real(diagonal), inner.dtype());
  const Tensor both = matmul(q, sum_of(sum_of(strict, adjoint(strict)), as_diagonal(diagonal)));
  Tensor of_a = solved_triangular(adjoint(square), joined(both, of_q), false, false);
  if (columns > steps) {
    if (!of_right) {
      of_right = ops::zeros(with(batch_of(r), {rows, columns - steps}), {.dtype = r.dtype(), .device = r.device()});
    }
    of_a = concatenated(of_a, of_right, -1);
  }
  gradients[0] = of_a;
  return gradients;
}

OP("aten::linalg_qr").impl(qr).gradient(gradient_of_qr).saves("result0, result1");
OP("aten::qr")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& a, bool is_reduced) -> std::tuple<Tensor, Tensor> {
      const auto [q, r] = call_for<2>("aten::linalg_qr", a, std::string(is_reduced ? "reduced" : "complete"));
      return {q, r};
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
