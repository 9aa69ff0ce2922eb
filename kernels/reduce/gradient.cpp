// torch.gradient: slopes by second-order differences inside, and by first- or second-order ones at the ends.
#include <algorithm>

#include "core/ops/complex.h"
#include "kernels/expr/compose.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::Scalar;
using Dim = std::optional<int64_t>;

// The dimensions; all of them if none are given.
Dims checked_dims(const Tensor& x, const std::optional<Dims>& given, int64_t edge_order) {
  check(x.dtype() != DType::kUInt8, "torch.gradient does not support uint8 input.");
  check(edge_order == 1 || edge_order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.");
  Dims dims;
  for (int64_t d = 0; !given && d < x.ndim(); ++d) dims.push_back(d);
  for (size_t i = 0; given && i < given->size(); ++i) {
    dims.push_back(wrap_dim((*given)[i], x.ndim()));
    check(std::count(dims.begin(), dims.end(), dims.back()) == 1, "dim ", dims.back(),
          " appears multiple times in the list of dims");
  }
  for (const int64_t dim : dims) {
    check(x.size(dim) >= edge_order + 1, "torch.gradient expected each dimension size to be at least edge_order+1");
  }
  return dims;
}

// Elements of one dimension; negative positions count from the end.
struct Line {
  const Tensor& x;
  int64_t dim;
  Expr at(int64_t index) const { return ops::narrow(x, dim, index < 0 ? x.size(dim) + index : index, 1); }
  Expr inner(int64_t shift) const { return ops::narrow(x, dim, shift, x.size(dim) - 2); }
  Tensor joined(const Expr& first, const Expr& middle, const Expr& last) const {
    return ops::cat({first.tensor(), middle.tensor(), last.tensor()}, dim);
  }
};

Tensor even_slope(const Tensor& x, int64_t dim, const Scalar& spacing, int64_t edge_order) {
  const Line line{x, dim};
  const auto by_step = [&](const Expr& e) { return Expr(ops::div(e.tensor(), spacing)); };
  const Expr middle = by_step(line.inner(2) - line.inner(0)) / 2.0;
  if (edge_order == 1) return line.joined(by_step(line.at(1) - line.at(0)), middle, by_step(line.at(-1) - line.at(-2)));
  return line.joined(by_step(line.at(0) * -1.5 + line.at(1) * 2.0 - line.at(2) * 0.5), middle,
                     by_step(line.at(-1) * 1.5 - line.at(-2) * 2.0 + line.at(-3) * 0.5));
}

Tensor uneven_slope(const Tensor& x, int64_t dim, const Tensor& coordinates, int64_t edge_order) {
  check(coordinates.ndim() == 1,
        "torch.gradient expected each element of spacing to have one dimension, but got an element with ",
        coordinates.ndim(), " dimensions!");
  check(coordinates.numel() == x.size(dim),
        "torch.gradient expected each element of spacing to be as long as the dimension, but got ", coordinates.numel(),
        " for ", x.size(dim));
  Dims shape(static_cast<size_t>(x.ndim()), 1);
  shape[static_cast<size_t>(dim)] = -1;
  const Tensor steps = ops::reshape(ops::diff(coordinates), shape);
  const Line line{x, dim}, step{steps, dim};
  const int64_t count = steps.size(dim);
  const Expr before = ops::narrow(steps, dim, 0, count - 1), after = ops::narrow(steps, dim, 1, count - 1);
  const Expr middle = line.inner(0) * (-after / (before * (before + after))) +
                      line.inner(1) * ((after - before) / (before * after)) +
                      line.inner(2) * (before / (after * (before + after)));
  if (edge_order == 1) {
    return line.joined((line.at(1) - line.at(0)) / step.at(0), middle, (line.at(-1) - line.at(-2)) / step.at(-1));
  }
  const Expr a = step.at(0), b = step.at(1), c = step.at(-2), d = step.at(-1);
  const Expr first = line.at(0) * (-(a * 2.0 + b) / (a * (a + b))) + line.at(1) * ((a + b) / (a * b)) +
                     line.at(2) * (-a / (b * (a + b)));
  const Expr last = line.at(-3) * (d / (c * (c + d))) + line.at(-2) * (-(c + d) / (c * d)) +
                    line.at(-1) * ((d * 2.0 + c) / (d * (c + d)));
  return line.joined(first, middle, last);
}

std::vector<Tensor> even(const Tensor& x, const std::vector<Scalar>& spacing, const std::optional<Dims>& given,
                         int64_t edge_order) {
  const Dims dims = checked_dims(x, given, edge_order);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Scalar step = spacing.empty() ? Scalar(1) : spacing[spacing.size() == 1 ? 0 : i];
    out.push_back(even_slope(x, dims[i], step, edge_order));
  }
  return out;
}
std::vector<Tensor> uneven(const Tensor& x, const std::vector<Tensor>& spacing, const std::optional<Dims>& given,
                           int64_t edge_order) {
  const Dims dims = checked_dims(x, given, edge_order);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    out.push_back(uneven_slope(x, dims[i], spacing[i], edge_order));
  }
  return out;
}
// A list of spacings has one for each dimension.
template <class Spacing>
const std::vector<Spacing>& checked(const std::vector<Spacing>& spacing, size_t dims) {
  check(spacing.size() == dims,
        "torch.gradient expected spacing to be unspecified, a scalar or its spacing and dim arguments to have the same "
        "length, but got a spacing argument of length ",
        spacing.size(), " and a dim argument of length ", dims, ".");
  return spacing;
}
size_t count_of(const Tensor& x, Dim dim) { return dim ? 1 : static_cast<size_t>(x.ndim()); }
std::optional<Dims> one(Dim dim) { return dim ? std::optional(Dims{*dim}) : std::nullopt; }

#define GRADIENT(OVERLOAD, ...) OP("aten::gradient." OVERLOAD).impl(__VA_ARGS__).composite()
GRADIENT("scalarint", [](const Tensor& x, const std::optional<Scalar>& spacing, Dim dim, int64_t edge_order) {
  return even(x, spacing ? std::vector{*spacing} : std::vector<Scalar>(), one(dim), edge_order);
});
GRADIENT("scalararray", [](const Tensor& x, Scalar spacing, const Dims& dims, int64_t edge_order) {
  return even(x, {spacing}, dims, edge_order);
});
GRADIENT("array", [](const Tensor& x, const Dims& dims, int64_t edge_order) { return even(x, {}, dims, edge_order); });
GRADIENT("scalarrayint", [](const Tensor& x, const std::vector<Scalar>& spacing, Dim dim, int64_t edge_order) {
  return even(x, checked(spacing, count_of(x, dim)), one(dim), edge_order);
});
GRADIENT("scalarrayarray", [](const Tensor& x, const std::vector<Scalar>& spacing, const Dims& dims,
                              int64_t edge_order) { return even(x, checked(spacing, dims.size()), dims, edge_order); });
GRADIENT("tensorarrayint", [](const Tensor& x, const std::vector<Tensor>& spacing, Dim dim, int64_t edge_order) {
  return uneven(x, checked(spacing, count_of(x, dim)), one(dim), edge_order);
});
GRADIENT("tensorarray", [](const Tensor& x, const std::vector<Tensor>& spacing, const Dims& dims, int64_t edge_order) {
  return uneven(x, checked(spacing, dims.size()), dims, edge_order);
});

IMPL(
    "aten::gradient.scalarint aten::gradient.scalararray aten::gradient.array aten::gradient.scalarrayint "
    "aten::gradient.scalarrayarray aten::gradient.tensorarrayint aten::gradient.tensorarray",
    ops::kComplexCPU, ops::kSameAsDense);

}  // namespace
}  // namespace tensord::kernels
