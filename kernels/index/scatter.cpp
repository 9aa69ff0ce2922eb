#include <algorithm>

#include "core/ops/attributes/writes_part.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/index/like_self.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

// gather and scatter: one index per element along one dimension. Schemas, shapes and gradients.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;
using ops::WritesPart;

TensorMeta gather_meta(const Tensor& x, int64_t dim, const Tensor& index, bool) {
  dim = wrap_dim(dim, x.ndim());
  check(index.numel() == 0 || index.dtype() == DType::kInt64, "gather(): Expected dtype int64 for index");
  const int64_t x_dims = std::max<int64_t>(x.ndim(), 1), index_dims = std::max<int64_t>(index.ndim(), 1);
  check(index.numel() == 0 || x_dims == index_dims,
        "Index tensor must have the same number of dimensions as input tensor");
  for (int64_t d = 0; index.numel() != 0 && d < index.ndim(); ++d) {
    check(d == dim || index.sizes()[d] <= x.sizes()[d], "Size does not match at dimension ", d, " expected index ",
          index.sizes(), " to be smaller than self ", x.sizes(), " apart from dimension ", dim);
  }
  return {index.sizes(), x.dtype(), {}, x.device()};
}

void check_scatter(const Tensor& x, int64_t dim, const Tensor& index) {
  wrap_dim(dim, x.ndim());
  check(index.numel() == 0 || index.dtype() == DType::kInt64, "scatter(): Expected dtype int64 for index");
  check(index.numel() == 0 || std::max<int64_t>(x.ndim(), 1) == std::max<int64_t>(index.ndim(), 1),
        "Index tensor must have the same number of dimensions as self tensor");
}

TensorMeta scatter_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  check_scatter(x, dim, index);
  dim = wrap_dim(dim, x.ndim());
  if (index.numel() == 0) return like_self(x);
  check(x.dtype() == source.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
  check(std::max<int64_t>(source.ndim(), 1) == std::max<int64_t>(index.ndim(), 1),
        "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t d = 0; d < index.ndim(); ++d) {
    const bool fits =
        (d == dim || index.sizes()[d] <= x.sizes()[d]) && (d >= source.ndim() || index.sizes()[d] <= source.sizes()[d]);
    check(fits, "Expected index ", index.sizes(), " to be smaller than self ", x.sizes(), " apart from dimension ", dim,
          " and to be smaller size than src ", source.sizes());
  }
  return like_self(x);
}
TensorMeta scatter_value_meta(const Tensor& x, int64_t dim, const Tensor& index, const Scalar&) {
  check_scatter(x, dim, index);
  dim = wrap_dim(dim, x.ndim());
  for (int64_t d = 0; index.numel() != 0 && d < index.ndim(); ++d) {
    check(d == dim || index.sizes()[d] <= x.sizes()[d], "Expected index ", index.sizes(), " to be smaller than self ",
          x.sizes(), " apart from dimension ", dim);
  }
  return like_self(x);
}

TensorMeta scatter_reduce_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                               const std::string& reduce, bool) {
  check(reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return scatter_meta(x, dim, index, source);
}

TensorMeta scatter_old_reduce_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                                   const std::string& reduce) {
  check(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return scatter_meta(x, dim, index, source);
}

using gradient::Expr;
using gradient::of_first;
using ops::GradArgs;

Tensor gather_gradient(const GradArgs& args, const Tensor& g) {
  return ops::scatter_add(gradient::zeros_like(args.inputs[0]), args.inputs[1].to_int(), args.inputs[2].to_tensor(), g);
}
// The elements of x that the index names; zeros where the source is larger than the index.
Tensor gather_for_source(const GradArgs& args, const Tensor& x) {
  Tensor part = ops::gather(x, args.inputs[1].to_int(), args.inputs[2].to_tensor());
  const Dims& sizes = gradient::sizes_of(args, 3);
  if (part.sizes() == sizes) return part;
  if (part.ndim() != static_cast<int64_t>(sizes.size())) return ops::reshape(part, sizes);
  Dims pad;
  for (int64_t d = part.ndim() - 1; d >= 0; --d) {
    pad.push_back(0);
    pad.push_back(sizes[d] - part.sizes()[d]);
  }
  return ops::constant_pad_nd(part, pad);
}
// Elements of self that were overwritten have the gradient 0.
std::vector<Tensor> scatter_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = ops::scatter(g, args.inputs[1].to_int(), args.inputs[2].to_tensor(), 0);
  if (args.needs(3) && args.inputs[3].is_tensor()) gradients[3] = gather_for_source(args, g);
  return gradients;
}
std::vector<Tensor> scatter_add_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = g;
  if (args.needs(3)) gradients[3] = gather_for_source(args, g);
  return gradients;
}

// How many values went into each element of self; at least 1.
Expr counts_of(const GradArgs& args, const Tensor& like) {
  const bool include_self = args.inputs[5].to_bool();
  const Tensor start = include_self ? ops::ones_like(like) : ops::zeros_like(like);
  const Tensor counts = ops::scatter_add(start, args.inputs[1].to_int(), args.inputs[2].to_tensor(),
                                         ops::ones_like(args.inputs[3].to_tensor()));
  return ops::masked_fill(counts, ops::eq(counts, 0), 1);
}
// prod: y divided by each factor. Where a factor is the only zero, the gradient is the product of the others, computed
// with 1 in its place.
void prod_gradient(const GradArgs& args, const Tensor& g, std::vector<Tensor>& gradients) {
  const Tensor &self = args.inputs[0].to_tensor(), &source = args.inputs[3].to_tensor();
  const Expr y = args.outputs[0];
  const Tensor is_zero = ops::eq(source, 0);
  const Tensor zeros = ops::scatter_add(ops::zeros_like(self), args.inputs[1].to_int(), args.inputs[2].to_tensor(),
                                        ops::to(is_zero, self.dtype()));
  const Tensor is_only_zero =
      ops::mul(ops::eq(ops::gather(zeros, args.inputs[1].to_int(), args.inputs[2].to_tensor()), 1), is_zero);
  const Tensor filled = ops::masked_fill(source, is_only_zero, 1);
  const Tensor others = ops::scatter_reduce(self, args.inputs[1].to_int(), args.inputs[2].to_tensor(), filled, "prod",
                                            {.include_self = args.inputs[5].to_bool()});
  const auto at = [&](const Expr& x) {
    return Expr(ops::gather(x.tensor(), args.inputs[1].to_int(), args.inputs[2].to_tensor()));
  };
  if (args.needs(0)) {
    const Tensor ones = ops::masked_fill(self, ops::eq(self, 0), 1);
    const Tensor product =
        ops::scatter_reduce(ops::ones_like(self), args.inputs[1].to_int(), args.inputs[2].to_tensor(), source, "prod");
    gradients[0] = (Expr(g) * Expr(product)).tensor();
  }
  if (!args.needs(3)) return;
  const Expr plain = at(Expr(g) * y) / Expr(ops::masked_fill(source, is_zero, 1));
  gradients[3] = gradient::where(is_only_zero, at(Expr(g) * Expr(others)), plain).tensor();
}
// Equal extremes share the gradient.
void extremum_gradient(const GradArgs& args, const Tensor& g, std::vector<Tensor>& gradients) {
  const Expr self = args.inputs[0], source = args.inputs[3], y = args.outputs[0];
  const auto at = [&](const Tensor& x) {
    return Expr(ops::gather(x, args.inputs[1].to_int(), args.inputs[2].to_tensor()));
  };
  const Tensor is_self = ops::to((self == y).tensor(), g.dtype());
  const Tensor is_source = ops::to((source == at(y.tensor())).tensor(), g.dtype());
  const Tensor share = ops::scatter_add(is_self, args.inputs[1].to_int(), args.inputs[2].to_tensor(), is_source);
  const Expr each = Expr(g) / Expr(share);
  if (args.needs(0)) gradients[0] = (each * Expr(is_self)).tensor();
  if (args.needs(3)) gradients[3] = (at(each.tensor()) * Expr(is_source)).tensor();
}
std::vector<Tensor> scatter_reduce_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  const std::string& reduce = args.inputs[4].to_string();
  if (reduce == "prod")
    prod_gradient(args, g, gradients);
  else if (reduce == "amax" || reduce == "amin")
    extremum_gradient(args, g, gradients);
  else {
    const Tensor each = reduce == "mean" ? (Expr(g) / counts_of(args, g)).tensor() : g;
    if (args.needs(0)) gradients[0] = each;
    if (args.needs(3)) gradients[3] = gather_for_source(args, each);
  }
  const bool include_self = args.inputs[5].to_bool();
  if (!include_self && gradients[0])
    gradients[0] = ops::scatter(gradients[0], args.inputs[1].to_int(), args.inputs[2].to_tensor(), 0);
  return gradients;
}

OP("aten::gather")
    .infer(gather_meta)
    .gradient(of_first(gather_gradient))
    .saves("index")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesNothing);
OP("aten::scatter.src")
    .infer(scatter_meta)
    .gradient(scatter_gradient)
    .saves("index")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();
OP("aten::scatter.value").infer(scatter_value_meta).gradient(scatter_gradient).saves("index").set<WritesPart>();
OP("aten::scatter.reduce")
    .infer(scatter_old_reduce_meta)
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();
OP("aten::scatter_add")
    .infer(scatter_meta)
    .gradient(scatter_add_gradient)
    .saves("index")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();
OP("aten::scatter_reduce.two")
    .infer(scatter_reduce_meta)
    .gradient(scatter_reduce_gradient)
    .saves("self, index, src, result")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();

}  // namespace
}  // namespace tensord::kernels
