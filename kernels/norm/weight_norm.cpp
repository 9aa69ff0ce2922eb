// Operators that scale by a norm: weight normalization, renorm, rms_norm. Also sum_to_size.
#include "core/ops/attributes/written.h"
#include "core/ops/complex.h"
#include "kernels/expr/compose.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::Scalar;
using ops::WritesInto;

// The p-norm over all dimensions but one, which keep size 1.
Tensor norm_except(const Tensor& x, const Scalar& p, int64_t dim) {
  Dims others;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != dim) others.push_back(i);
  }
  if (others.empty()) return ops::abs(x);
  return ops::norm(x, p, others, true);
}

Tensor norm_except_dim(const Tensor& v, int64_t p, int64_t dim) {
  if (dim == -1) return ops::norm(v, Scalar(p));
  return norm_except(v, Scalar(p), wrap_dim(dim, v.ndim()));
}
OP("aten::norm_except_dim").impl(norm_except_dim).composite();
OP("aten::_weight_norm")
    .impl([](const Tensor& v, const Tensor& g, int64_t dim) {
      return (Expr(v) * (Expr(g) / Expr(norm_except_dim(v, 2, dim)))).tensor();
    })
    .composite();

// Slices along `dim` whose norm is above the bound are scaled down to it.
Tensor renorm(const Tensor& self, const Scalar& p, int64_t given_dim, const Scalar& bound) {
  const Tensor x = ops::clone(self);  // the gradient reads it, also after renorm_ has overwritten self
  check(p.to_double() > 0, "renorm: non-positive-norm not supported");
  check(bound.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", bound.to_double());
  check(x.ndim() > 1, "renorm: input needs at least 2 dimensions, got ", x.ndim(), " dimensions");
  check(is_floating(x.dtype()) || is_complex(x.dtype()), "renorm: expected a floating point tensor, but got ",
        name_of(x.dtype()));
  const Tensor sizes = is_complex(x.dtype()) ? ops::abs(x) : x;
  const Expr norm = norm_except(sizes, p, wrap_dim(given_dim, x.ndim()));
  const Expr limit = bound.to_double();
  const Expr scale = gradient::where(norm > limit, limit / (norm + 1e-7), 1.0);
  return ops::mul(x, scale.tensor());
}
OP("aten::renorm").impl(renorm).composite().set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
IMPL("aten::renorm", ops::kComplexComposite, renorm);

double smallest_step(DType dtype) { return dtype == DType::kFloat64 ? 0x1p-52 : 0x1p-23; }

// x / sqrt(mean(x²) + eps) · weight, computed in float32 or float64.
Tensor rms_norm(const Tensor& x, const ops::IntList& shape, const std::optional<Tensor>& weight,
                std::optional<double> eps) {
  check(!shape.empty() && static_cast<int64_t>(shape.size()) <= x.ndim(),
        "rms_norm: expected normalized_shape to have between 1 and ", x.ndim(), " dimensions, but got ",
        to_string(shape));
  Dims dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t dim = x.ndim() - static_cast<int64_t>(shape.size()) + static_cast<int64_t>(i);
    check(x.size(dim) == shape[i], "rms_norm: given normalized_shape=", to_string(shape),
          ", expected input with that shape at its end, but got input of size ", x.sizes());
    dims.push_back(dim);
  }
  check(!weight || weight->sizes() == shape, "rms_norm: expected weight of shape ", to_string(shape));
  const DType wide = x.dtype() == DType::kFloat64 ? x.dtype() : DType::kFloat32;
  const Expr in = compose::to(x, wide);
  const Expr scale = Expr(ops::mean(ops::square(in.tensor()), dims, true)) + eps.value_or(smallest_step(wide));
  Expr out = in * gradient::rsqrt(scale);
  if (weight) out = out * Expr(*weight);
  return compose::to(out.tensor(), x.dtype());
}
OP("aten::rms_norm").impl(rms_norm).composite();

OP("aten::sum_to_size")
    .impl([](const Tensor& x, const ops::IntList& size) {
      const int64_t extra = x.ndim() - static_cast<int64_t>(size.size());
      Dims summed;
      bool fits = extra >= 0;
      for (int64_t dim = 0; fits && dim < x.ndim(); ++dim) {
        const bool is_extra = dim < extra;
        if (is_extra || (size[dim - extra] == 1 && x.size(dim) != 1)) summed.push_back(dim);
        fits = is_extra || size[dim - extra] == 1 || size[dim - extra] == x.size(dim);
      }
      check(fits, "size {", to_string(size), "} is not expandable to size {", x.sizes(), "}.");
      if (size.empty()) return ops::sum(x);  // `a` may be bool, which counts as integers in a sum
      if (summed.empty()) return ops::clone(x);
      return ops::reshape(ops::sum(x, summed, true), size);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
