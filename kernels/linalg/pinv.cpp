// Pseudo-inverses and ranks: singular values below a tolerance count as 0.
#include <limits>

#include "core/tensor/complex.h"
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;
using OptionalTensor = std::optional<Tensor>;
using OptionalNumber = std::optional<double>;

double precision_of(const Tensor& a) {
  return real_dtype(a.dtype()) == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                                  : std::numeric_limits<double>::epsilon();
}

Tensor number(double value, const Tensor& like) { return Tensor::scalar(value, real_dtype(like.dtype())); }

struct Tolerances {
  Tensor absolute, relative;
};

// The defaults: no absolute tolerance, and as the relative one the precision times the larger size, unless an absolute
// one above 0 is given.
Tolerances tolerances_of(const Tensor& a, const OptionalTensor& absolute, const OptionalTensor& relative) {
  Tolerances out;
  out.absolute = absolute ? *absolute : number(0, a);
  if (relative) return {out.absolute, *relative};
  const double usual = precision_of(a) * static_cast<double>(std::max(rows_of(a), columns_of(a)));
  out.relative = number(usual, a);
  if (absolute) {
    const Tensor is_given = ops::gt(*absolute, ops::Scalar(int64_t{0}));
    out.relative = ops::where(is_given, number(0, a), out.relative);
  }
  return out;
}

// The threshold (…, 1) at or below which values (…, k) count as 0: the larger of the absolute tolerance and the
// relative one times the largest value.
Tensor tolerance_of(const Tensor& values, const Tolerances& tolerances) {
  const Tensor largest = ops::amax(values, Dims{-1});
  return unsqueezed(ops::maximum(tolerances.absolute, product(tolerances.relative, largest)), -1);
}

OptionalTensor as_tensor(const OptionalNumber& value, const Tensor& like) {
  if (!value) return std::nullopt;
  return number(*value, like);
}

Tensor pinv(const Tensor& a, const OptionalTensor& absolute, const OptionalTensor& relative, bool is_hermitian) {
  check(has_lapack_dtype(a) && a.ndim() >= 2, "linalg.pinv(", name_of(a.dtype()), "{", a.sizes(),
        "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  const Tolerances tolerances = tolerances_of(a, absolute, relative);
  if (a.numel() == 0) {
    const Dims sizes = with(batch_of(a), {columns_of(a), rows_of(a)});
    return ops::empty(sizes, {.dtype = a.dtype(), .device = a.device()});
  }
  Tensor left, values, right;
  if (is_hermitian) {
    const auto [eigenvalues, vectors] = call_for<2>("aten::_linalg_eigh", a);
    left = vectors, values = eigenvalues, right = adjoint(vectors);
  } else {
    const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, false, true);
    left = adjoint(vh), values = s, right = adjoint(u);
  }
  const Tensor sizes = absolute_of(values);
  const Tensor counts = ops::gt(sizes, tolerance_of(sizes, tolerances));
  const Tensor inverses = ops::where(counts, ops::reciprocal(values), zeros_of(values));
  return matmul(product(left, unsqueezed(inverses, -2)), right);
}

std::vector<Tensor> gradient_of_call(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (args.grad_outputs[0] && args.needs(0)) {
    gradients[0] = gradient_of_pinv(args.grad_outputs[0], args.outputs[0].to_tensor(), args.inputs[0].to_tensor());
  }
  return gradients;
}

OP("aten::linalg_pinv.atol_rtol_tensor").impl(pinv).gradient(gradient_of_call).saves("self, result");
Tensor call_pinv(const Tensor& a, const OptionalTensor& absolute, const OptionalTensor& relative, bool is_hermitian) {
  return ops::linalg_pinv(a, {.atol = absolute, .rtol = relative, .hermitian = is_hermitian});
}
OP("aten::linalg_pinv.atol_rtol_float")
    .impl([](const Tensor& a, OptionalNumber absolute, OptionalNumber relative, bool is_hermitian) {
      return call_pinv(a, as_tensor(absolute, a), as_tensor(relative, a), is_hermitian);
    })
    .composite();
OP("aten::linalg_pinv")
    .impl([](const Tensor& a, double relative, bool is_hermitian) {
      return call_pinv(a, number(0, a), number(relative, a), is_hermitian);
    })
    .composite();
OP("aten::linalg_pinv.rcond_tensor")
    .impl([](const Tensor& a, const Tensor& relative, bool is_hermitian) {
      return call_pinv(a, number(0, a), relative, is_hermitian);
    })
    .composite();
OP("aten::pinverse")
    .impl([](const Tensor& a, double relative) { return call_pinv(a, number(0, a), number(relative, a), false); })
    .composite();

Tensor matrix_rank(const Tensor& a, const OptionalTensor& absolute, const OptionalTensor& relative, bool is_hermitian) {
  check_matrix("torch.linalg.matrix_rank", a, "input");
  const Tolerances tolerances = tolerances_of(a, absolute, relative);
  if (a.numel() == 0) return ops::zeros(batch_of(a), {.dtype = DType::kInt64, .device = a.device()});
  const Tensor values = is_hermitian ? absolute_of(ops::linalg_eigvalsh(a)) : ops::linalg_svdvals(a);
  const Tensor counts = ops::gt(values, tolerance_of(values, tolerances));
  return ops::sum(counts, Dims{-1});
}
OP("aten::linalg_matrix_rank.atol_rtol_tensor").impl(matrix_rank).composite();
OP("aten::linalg_matrix_rank.atol_rtol_float")
    .impl([](const Tensor& a, OptionalNumber absolute, OptionalNumber relative, bool is_hermitian) {
      check_matrix("torch.linalg.matrix_rank", a, "input");
      return matrix_rank(a, as_tensor(absolute, a), as_tensor(relative, a), is_hermitian);
    })
    .composite();
OP("aten::linalg_matrix_rank")
    .impl([](const Tensor& a, double absolute, bool is_hermitian) {
      return matrix_rank(a, number(absolute, a), number(0, a), is_hermitian);
    })
    .composite();
OP("aten::linalg_matrix_rank.tol_tensor")
    .impl([](const Tensor& a, const Tensor& absolute, bool is_hermitian) {
      return matrix_rank(a, absolute, number(0, a), is_hermitian);
    })
    .composite();

}  // namespace

// Golub and Pereyra's derivative. The products are in the cheaper order.
Tensor gradient_of_pinv(const Tensor& g, const Tensor& inverse, const Tensor& a) {
  const Tensor turned = adjoint(inverse), of_turned = adjoint(g);
  if (rows_of(a) <= columns_of(a)) {
    const Tensor k = matmul(of_turned, inverse), outer = matmul(k, turned);
    Tensor out = difference(outer, adjoint(matmul(inverse, k)));
    out = difference(out, matmul(matmul(a, inverse), outer));
    return sum_of(out, matmul(matmul(turned, inverse), difference(of_turned, matmul(k, a))));
  }
  const Tensor k = matmul(inverse, of_turned), outer = matmul(turned, k);
  Tensor out = difference(outer, adjoint(matmul(k, inverse)));
  out = difference(out, matmul(outer, matmul(inverse, a)));
  return sum_of(out, matmul(matmul(difference(of_turned, matmul(a, k)), inverse), turned));
}

}  // namespace tensord::kernels::linalg
