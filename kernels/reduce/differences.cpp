// Differences along a dimension, and sums: diff, trapezoid and others like them, gradient.
#include <algorithm>

#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::narrow;
using ops::Scalar;
using MaybeTensor = std::optional<Tensor>;

// x[1:] - x[:-1]; for bools, whether they differ.
Tensor neighbors_differ(const Tensor& x, int64_t dim) {
  const int64_t count = std::max<int64_t>(x.size(dim) - 1, 0), start = std::min<int64_t>(1, x.size(dim));
  const Tensor next = narrow(x, dim, start, count), here = narrow(x, dim, 0, count);
  return x.dtype() == DType::kBool ? ops::logical_xor(next, here) : ops::sub(next, here);
}

void check_joined(const MaybeTensor& part, const Tensor& x, int64_t dim) {
  if (!part) return;
  check(part->ndim() == x.ndim(), "diff expects prepend or append to be the same dimension as input");
  for (int64_t i = 0; i < x.ndim(); ++i) {
    check(i == dim || part->size(i) == x.size(i),
          "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
          "dimension; input.size(",
          i, ") = ", x.size(i), ", but got tensor.size(", i, ") = ", part->size(i));
  }
}

Tensor diff(const Tensor& self, int64_t n, int64_t given_dim, const MaybeTensor& prepend, const MaybeTensor& append) {
  check(self.ndim() >= 1, "diff expects input to be at least one-dimensional");
  check(n >= 0, "order must be non-negative but got ", n);
  const int64_t dim = wrap_dim(given_dim, self.ndim());
  check_joined(prepend, self, dim);
  check_joined(append, self, dim);
  if (n == 0) return ops::clone(self);
  Tensor x = self;
  if (prepend || append) {
    std::vector<Tensor> parts{x};
    if (prepend) parts.insert(parts.begin(), *prepend);
    if (append) parts.push_back(*append);
    x = ops::cat(parts, dim);
  }
  const int64_t rounds = std::min(n, std::max<int64_t>(x.size(dim), 1));
  for (int64_t i = 0; i < rounds; ++i) x = neighbors_differ(x, dim);
  return x;
}
OP("aten::diff").impl(diff).composite();

// --- trapezoid

// The widths for a dimension of y: a 1-d x has those of `dim`; any other x is broadcast against y.
Tensor widths(const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.ndim() == 1) {
    check(x.size(0) == y.size(dim), "trapezoid: There must be one `x` value for each sample point");
    const int64_t count = x.size(0) - 1;
    Dims sizes(static_cast<size_t>(y.ndim()), 1);
    sizes[dim] = count;
    return ops::reshape((Expr(narrow(x, 0, 1, count)) - Expr(narrow(x, 0, 0, count))).tensor(), sizes);
  }
  Tensor points = x;
  if (x.ndim() < y.ndim()) {
    Dims sizes(static_cast<size_t>(y.ndim() - x.ndim()), 1);
    for (const int64_t size : x.sizes()) sizes.push_back(size);
    points = ops::reshape(x, sizes);
  }
  const int64_t at = x.ndim() < y.ndim() ? dim : wrap_dim(dim - y.ndim(), points.ndim());
  return (Expr(narrow(points, at, 1, points.size(at) - 1)) - Expr(narrow(points, at, 0, points.size(at) - 1))).tensor();
}

struct Heights {
  Tensor left, right;
};
Heights heights(const Tensor& y, int64_t dim) {
  return {narrow(y, dim, 0, y.size(dim) - 1), narrow(y, dim, 1, y.size(dim) - 1)};
}

// An empty dimension has no area: zeros of y's shape without it (of the dtype that the division gives).
Tensor no_area(const Tensor& y, int64_t dim) {
  Dims sizes = y.sizes();
  sizes.erase(static_cast<size_t>(dim));
  return ops::zeros(sizes, {.dtype = y.dtype(), .device = y.device()});
}

Tensor half(const Expr& x) { return (x / 2.0).tensor(); }

Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.ndim());
  if (y.ndim() > 0 && y.size(dim) == 0) return no_area(y, dim);
  check(y.dtype() != DType::kBool, "trapezoid: received a bool input for `y`, but bool is not supported");
  const int64_t last = y.size(dim) - 1;
  const Expr total = ops::sum(y, Dims{dim});
  const Expr ends = Expr(ops::select(y, dim, 0)) + Expr(ops::select(y, dim, last));
  return ((total - ends * 0.5) * Expr(ops::Value(dx))).tensor();
}

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.ndim());
  if (y.size(dim) == 0) return no_area(y, dim);
  check(y.dtype() != DType::kBool && x.dtype() != DType::kBool,
        "trapezoid: received a bool input for `x` or `y`, but bool is not supported");
  const Heights at = heights(y, dim);
  const Tensor parts = ((Expr(at.left) + Expr(at.right)) * Expr(widths(y, x, dim))).tensor();
  return half(ops::sum(parts, Dims{dim - y.ndim()}));
}

Tensor cumulative_dx(const Tensor& y, const Scalar& dx, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.ndim());
  check(y.dtype() != DType::kBool, "cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
  if (y.size(dim) == 0) return y;
  const Heights at = heights(y, dim);
  const Tensor running = ops::cumsum((Expr(at.left) + Expr(at.right)).tensor(), dim);
  return (Expr(ops::Value(dx)) / 2.0 * Expr(running)).tensor();
}

Tensor cumulative_x(const Tensor& y, const Tensor& x, int64_t given_dim) {
  const int64_t dim = wrap_dim(given_dim, y.ndim());
  check(y.dtype() != DType::kBool && x.dtype() != DType::kBool,
        "cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported");
  if (y.size(dim) == 0) return y;
  const Heights at = heights(y, dim);
  const Tensor parts = ((Expr(at.left) + Expr(at.right)) * Expr(widths(y, x, dim))).tensor();
  return half(ops::cumsum(parts, dim - y.ndim()));
}

OP("aten::trapezoid.x").impl(trapezoid_x).composite();
OP("aten::trapezoid.dx").impl(trapezoid_dx).composite();
OP("aten::trapz.x").impl(trapezoid_x).composite();
OP("aten::trapz.dx").impl([](const Tensor& y, double dx, int64_t dim) { return trapezoid_dx(y, dx, dim); }).composite();
OP("aten::cumulative_trapezoid.x").impl(cumulative_x).composite();
OP("aten::cumulative_trapezoid.dx").impl(cumulative_dx).composite();

}  // namespace
}  // namespace tensord::kernels
