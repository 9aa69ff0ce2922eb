// Reductions that return indices (max.dim, min.dim, argmax, argmin), and scans (cumsum, cumprod, cummax, cummin,
// logcumsumexp): schemas, shapes and gradients.
#include <vector>

#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/reduce/dims.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/script.h"
#include "ops/view.h"

namespace tensord::kernels {

Tensor chosen_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  const int64_t dim = args.inputs[1].to_int();
  const Dims kept = ReducedDims(in, Dims{dim}).sizes(in, true);
  const Tensor index = ops::reshape(args.outputs[1].to_tensor(), kept);
  return ops::scatter(gradient::zeros_like(in), dim, index, ops::reshape(g, kept));
}

namespace {

using gradient::Expr;
using ops::TensorMeta;
using ops::WritesInto;

void check_row(const char* op, const Tensor& in, int64_t dim) {
  check(in.ndim() == 0 || in.sizes()[wrap_dim(dim, in.ndim())] > 0, op, "(): Expected reduction dim ", dim,
        " to have non-zero size.");
}

void add_extreme(const char* name) {
  const std::string by_dim = concat("aten::", name, ".dim"), position = concat("aten::arg", name);
  ops::OpBuilder(by_dim, __FILE__, __LINE__)
      .infer([name](const Tensor& in, int64_t dim, bool keepdim) {
        check_row(name, in, dim);
        const ReducedDims reduced(in, Dims{dim});
        return std::vector<TensorMeta>{reduced.meta(in, keepdim, in.dtype()), reduced.meta(in, keepdim, DType::kInt64)};
      })
      .gradient(gradient::of_first(chosen_gradient))
      .saves("result1")
      .reduction();
  ops::OpBuilder(position, __FILE__, __LINE__)
      .infer([name](const Tensor& in, std::optional<int64_t> dim, bool keepdim) {
        if (dim)
          check_row(name, in, *dim);
        else
          check(in.numel() > 0, "arg", name, "(): Expected reduction dim to be specified for input.numel() == 0.");
        return ReducedDims(in, dim ? std::optional(Dims{*dim}) : std::nullopt).meta(in, keepdim, DType::kInt64);
      })
      .reduction();
}

// Running sums and products.

DType scan_dtype(const Tensor& in, const std::optional<DType>& dtype) {
  return dtype.value_or(is_floating(in.dtype()) ? in.dtype() : DType::kInt64);
}
TensorMeta infer_scan(const Tensor& in, int64_t dim, const std::optional<DType>& dtype) {
  wrap_dim(dim, in.ndim());
  return {in.sizes(), scan_dtype(in, dtype), {}, in.device()};
}
// Sums from each element to the last.
Expr sum_after(const Expr& x, int64_t dim) {
  const Tensor reversed = ops::flip(x.tensor(), Dims{dim});
  return Expr(ops::flip(ops::cumsum(reversed, dim), Dims{dim}));
}
Tensor cumsum_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  return gradient::fit_gradient(in.ndim() == 0 ? Expr(g) : sum_after(g, args.inputs[1].to_int()), in);
}
// Whether any element is 0. Unknown for tensors whose elements are not available.
bool has_zeros(const Tensor& x) {
  if (x.is_meta() || x.numel() == 0) return false;
  const NoGradGuard records_nothing;
  return ops::is_nonzero(ops::any(ops::eq(x, 0)));
}
// The same sum as products of the elements before and after, without a division: right in all derivatives, at zeros
// too. Takes one product of the rest of the row for each element.
Tensor cumprod_gradient_at_zeros(const Tensor& x, int64_t dim, const Tensor& g) {
  const int64_t size = x.size(dim);
  std::vector<Tensor> parts;
  for (int64_t k = 0; k < size; ++k) {
    Expr sum = Expr(ops::narrow(g, dim, k, 1));
    if (k + 1 < size) {
      const Tensor after = ops::cumprod(ops::narrow(x, dim, k + 1, size - k - 1), dim);
      const Expr weighted = Expr(ops::narrow(g, dim, k + 1, size - k - 1)) * Expr(after);
      sum = sum + Expr(ops::sum(weighted.tensor(), Dims{dim}, true));
    }
    if (k > 0) sum = sum * Expr(ops::prod(ops::narrow(x, dim, 0, k), dim, true));
    parts.push_back(sum.tensor());
  }
  return ops::cat(parts, dim);
}
// The sum of g y from each element on, divided by x. Elements after the first zero of a row have no gradient, and that
// zero has the sum of g times the products without it.
Tensor cumprod_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  const int64_t dim = args.inputs[1].to_int();
  if (in.ndim() == 0 || in.numel() == 0 || in.size(dim) == 1) return gradient::fit_gradient(g, in);
  if (is_grad_enabled() && has_zeros(in)) {
    return gradient::fit_gradient(cumprod_gradient_at_zeros(in, wrap_dim(dim, in.ndim()), g), in);
  }
  const Expr x = in, is_zero = x == 0;
  const Expr zeros = Expr(ops::cumsum(is_zero.tensor(), dim));
  const Expr is_first = Expr(ops::logical_and(is_zero.tensor(), (zeros == 1).tensor()));
  const Expr without = Expr(ops::cumprod(gradient::where(is_first, 1.0, x).tensor(), dim));
  const Expr at_first = sum_after(Expr(g) * without, dim);
  const Expr before = sum_after(Expr(g) * Expr(args.outputs[0]), dim) / gradient::where(is_zero, 1.0, x);
  return gradient::fit_gradient(gradient::where(is_first, at_first, gradient::where(zeros == 0, before, 0.0)), in);
}
// The sum of g exp(x - y) from each element on, in logarithms, as y may be far from 0. Logarithms need one sign, so
// positive and negative terms are summed separately.
Tensor logcumsumexp_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  const int64_t dim = args.inputs[1].to_int();
  constexpr double kNothing = -1e30;  // the logarithm of zero, with which sums stay finite
  const Expr x = in, y = Expr(args.outputs[0]);
  const auto part = [&](const Expr& amount) {
    const Expr has = amount > 0;
    const Expr logs = gradient::where(has, gradient::log(gradient::where(has, amount, 1.0)) - y, kNothing);
    const Tensor reversed = ops::flip(logs.tensor(), Dims{dim});
    return gradient::exp(Expr(ops::flip(ops::logcumsumexp(reversed, dim), Dims{dim})) + x);
  };
  return gradient::fit_gradient(part(g) - part(-Expr(g)), in);
}

OP("aten::cumsum")
    .infer([](const Tensor& in, int64_t dim, std::optional<DType> dtype) { return infer_scan(in, dim, dtype); })
    .gradient(gradient::of_first(cumsum_gradient))
    .saves("")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);
OP("aten::cumprod")
    .infer([](const Tensor& in, int64_t dim, std::optional<DType> dtype) { return infer_scan(in, dim, dtype); })
    .gradient(gradient::of_first(cumprod_gradient))
    .saves("self, result");
OP("aten::logcumsumexp")
    .infer([](const Tensor& in, int64_t dim) {
      if (!is_floating(in.dtype())) fail_dtype("logcumsumexp", in.dtype());
      return infer_scan(in, dim, {});
    })
    .gradient(gradient::of_first(logcumsumexp_gradient))
    .saves("self, result");

// The gradient of each result goes to where the result was found.
Tensor running_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  return ops::scatter_add(gradient::zeros_like(in), args.inputs[1].to_int(), args.outputs[1].to_tensor(), g);
}
void add_running(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& in, int64_t dim) {
        wrap_dim(dim, in.ndim());
        return std::vector<TensorMeta>{{in.sizes(), in.dtype(), {}, in.device()},
                                       {in.sizes(), DType::kInt64, {}, in.device()}};
      })
      .gradient(gradient::of_first(running_gradient))
      .saves("result1");
}

bool register_index() {
  add_extreme("max");
  add_extreme("min");
  add_running("aten::cummax");
  add_running("aten::cummin");
  return true;
}
[[maybe_unused]] const bool index_registered = register_index();

}  // namespace
}  // namespace tensord::kernels
