// Norms of matrices, and condition numbers.
#include <cmath>

#include "core/ops/attributes/exported.h"
#include "core/ops/attributes/written.h"
#include "core/tensor/complex.h"
#include "kernels/linalg/algebra.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::IntList;
using ops::Scalar;
using ops::Value;
using ops::WritesInto;

constexpr const char* kMatrixNormName = "linalg.matrix_norm";

std::string text_of(const IntList& dims, const char* between) {
  std::string out;
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? between : "") + std::to_string(dims[i]);
  return out;
}

// The two dimensions as numbers from 0, checked.
IntList matrix_dims(const Tensor& a, const IntList& dim) {
  check_matrix(kMatrixNormName, a);
  check(dim.size() == 2, kMatrixNormName, ": dim must be a 2-tuple. Got ", text_of(dim, " "));
  const IntList wrapped{wrap_dim(dim[0], a.ndim()), wrap_dim(dim[1], a.ndim())};
  check(wrapped[0] != wrapped[1], kMatrixNormName, ": dims must be different. Got (", dim[0], ", ", dim[1], ")");
  return wrapped;
}

Tensor in_dtype(const Tensor& a, std::optional<DType> dtype) {
  if (!dtype) {
    check(is_floating(a.dtype()) || is_complex(a.dtype()), kMatrixNormName,
          ": Expected a floating point or complex tensor as input. Got ", name_of(a.dtype()));
    return a;
  }
  check((is_floating(*dtype) || is_complex(*dtype)) && (is_complex(*dtype) || !is_complex(a.dtype())) &&
            size_of(*dtype) >= size_of(a.dtype()),
        kMatrixNormName, ": the dtype of the input (", name_of(a.dtype()),
        ") should be convertible without narrowing to the specified dtype (", name_of(*dtype), ")");
  return a.dtype() == *dtype ? a : ops::to(a, *dtype);
}

// The reduced singular values; `keeps` puts dimensions of size 1 in place of the two.
Tensor of_singular_values(const Tensor& a, const IntList& dims, bool keeps, const char* reduction) {
  check_real(kMatrixNormName, a);
  IntList order;
  for (int64_t d = 0; d < a.ndim(); ++d) {
    if (d != dims[0] && d != dims[1]) order.push_back(d);
  }
  order.push_back(dims[0]);
  order.push_back(dims[1]);
  const Tensor values = ops::linalg_svdvals(ops::permute(a, order));
  Tensor out = ops::call_by_name(reduction, values, IntList{-1}, false);
  if (!keeps) return out;
  out = unsqueezed(out, std::min(dims[0], dims[1]));
  return unsqueezed(out, std::max(dims[0], dims[1]));
}

Tensor matrix_norm(const Tensor& given, const Scalar& ord, const IntList& dim, bool keeps, std::optional<DType> dtype) {
  const IntList dims = matrix_dims(given, dim);
  const double order = ord.to_double(), size = std::abs(order);
  check(size == 2 || size == 1 || std::isinf(size), kMatrixNormName, ": Order ", order, " not supported.");
  const Tensor a = in_dtype(given, dtype);
  const char* reduction = order > 0 ? "aten::amax" : "aten::amin";
  if (size == 2) return of_singular_values(a, dims, keeps, reduction);
  // Sums along columns or rows, then their maximum or minimum.
  const int64_t summed = size == 1 ? dims[0] : dims[1];
  int64_t rest = size == 1 ? dims[1] : dims[0];
  const Tensor sums = ops::linalg_vector_norm(a, Scalar(1.0), IntList{summed}, keeps);
  if (!keeps && rest > summed) --rest;
  return ops::call_by_name(reduction, sums, IntList{rest}, keeps);
}

Tensor matrix_norm(const Tensor& given, const std::string& ord, const IntList& dim, bool keeps,
                   std::optional<DType> dtype) {
  check(ord == "fro" || ord == "nuc", kMatrixNormName, ": Order ", ord, " not supported.");
  const IntList dims = matrix_dims(given, dim);
  const Tensor a = in_dtype(given, dtype);
  if (ord == "fro") return ops::linalg_vector_norm(a, Scalar(2.0), dims, keeps);
  return of_singular_values(a, dims, keeps, "aten::sum.dim_IntList");
}

OP("aten::linalg_matrix_norm")
    .impl([](const Tensor& a, const Scalar& ord, const IntList& dim, bool keeps, std::optional<DType> dtype) {
      return matrix_norm(a, ord, dim, keeps, dtype);
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::linalg_matrix_norm.str_ord")
    .impl([](const Tensor& a, const std::string& ord, const IntList& dim, bool keeps, std::optional<DType> dtype) {
      return matrix_norm(a, ord, dim, keeps, dtype);
    })
    .composite();

Tensor linalg_norm(const Tensor& a, const std::optional<Scalar>& ord, const std::optional<IntList>& dim, bool keeps,
                   std::optional<DType> dtype) {
  if (dim) {
    check(dim->size() == 1 || dim->size() == 2, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [",
          text_of(*dim, ", "), "]");
  } else if (ord) {
    check(a.ndim() == 1 || a.ndim() == 2,
          "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", a.ndim(), "D.");
  }
  if (ord && ((dim && dim->size() == 2) || (!dim && a.ndim() == 2))) {
    return matrix_norm(a, *ord, dim.value_or(IntList{0, 1}), keeps, dtype);
  }
  return ops::linalg_vector_norm(a, ord ? *ord : Scalar(2.0), dim, keeps, {.dtype = dtype});
}
OP("aten::linalg_norm").impl(linalg_norm).composite();
OP("aten::linalg_norm.ord_str")
    .impl([](const Tensor& a, const std::string& ord, const std::optional<IntList>& dim, bool keeps,
             std::optional<DType> dtype) {
      if (dim) {
        check(dim->size() == 1 || dim->size() == 2,
              "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [", text_of(*dim, ", "), "]");
      } else {
        check(a.ndim() == 1 || a.ndim() == 2,
              "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", a.ndim(), "D.");
      }
      return matrix_norm(a, ord, dim.value_or(IntList{0, 1}), keeps, dtype);
    })
    .composite();

OP("aten::nuclear_norm")
    .impl([](const Tensor& a, bool keeps) {
      check(a.ndim() == 2, "Expected a tensor with 2 dimensions, but got a tensor with ", a.ndim(),
            a.ndim() == 1 ? " dimension instead." : " dimensions instead.");
      return matrix_norm(a, std::string("nuc"), IntList{0, 1}, keeps, std::nullopt);
    })
    .composite();
OP("aten::nuclear_norm.dim")
    .impl([](const Tensor& a, const IntList& dim, bool keeps) {
      check(dim.size() == 2, "nuclear norm requires a 'dim' argument of size 2");
      return matrix_norm(a, std::string("nuc"), dim, keeps, std::nullopt);
    })
    .composite();
OP("aten::frobenius_norm")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& a) { return ops::linalg_vector_norm(a); })
    .composite();
OP("aten::frobenius_norm.dim")
    .impl([](const Tensor& a, const IntList& dim, bool keeps) {
      check(dim.size() <= 2, "Expected at most 2 dimensions, but got ", dim.size(), " dimensions instead.");
      check(dim.size() < 2 || wrap_dim(dim[0], a.ndim()) != wrap_dim(dim[1], a.ndim()),
            "Expected dims to be different, got [", text_of(dim, ", "), "] instead");
      return ops::linalg_vector_norm(a, Scalar(2.0), dim.empty() ? std::nullopt : std::optional(dim), keeps);
    })
    .composite();

// The first singular value divided by the last, or the other way around.
Tensor condition_by_values(const Tensor& a, bool is_inverse) {
  const Tensor values = ops::linalg_svdvals(a);
  const Tensor first = ops::select(values, -1, 0), last = ops::select(values, -1, -1);
  return is_inverse ? quotient(last, first) : quotient(first, last);
}

// The norm times that of the inverse; infinite for a singular matrix.
template <class Order>
Tensor condition_by_inverse(const Tensor& a, const Order& ord) {
  const auto [inverse, info] = call_for<2>("aten::linalg_inv_ex", a, false);
  const Tensor is_singular = unsqueezed(unsqueezed(ops::gt(info, Scalar(int64_t{0})), -1), -1);
  const Tensor whole = ops::masked_fill(inverse, is_singular, Scalar(HUGE_VAL));
  const Tensor both = product(matrix_norm(a, ord, IntList{-2, -1}, false, std::nullopt),
                              matrix_norm(whole, ord, IntList{-2, -1}, false, std::nullopt));
  return ops::nan_to_num(both, HUGE_VAL, HUGE_VAL, -HUGE_VAL);  // 0 times infinity
}

Tensor cond(const Tensor& a, const std::optional<Scalar>& p) {
  check(a.ndim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  const double order = p ? p->to_double() : 2;
  check(std::abs(order) == 1 || std::abs(order) == 2 || std::isinf(order),
        "linalg.cond got an invalid norm type: ", order);
  if (a.numel() == 0) return ops::zeros(batch_of(a), {.dtype = real_dtype(a.dtype()), .device = a.device()});
  if (std::abs(order) == 2) return condition_by_values(a, order < 0);
  check_square(concat("linalg.cond(ord=", order, ")"), a);
  return condition_by_inverse(a, *p);
}
OP("aten::linalg_cond").impl(cond).composite();
OP("aten::linalg_cond.p_str")
    .impl([](const Tensor& a, const std::string& p) {
      check(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
      check_square(concat("linalg.cond(ord=", p, ")"), a);
      if (a.numel() == 0) return ops::zeros(batch_of(a), {.dtype = real_dtype(a.dtype()), .device = a.device()});
      if (p == "fro") return condition_by_inverse(a, p);
      // The sum of the singular values times that of their inverses.
      const Tensor values = ops::linalg_svdvals(a);
      return product(ops::sum(values, IntList{-1}), ops::sum(ops::reciprocal(values), IntList{-1}));
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
