// sum, mean, prod, max, min, amax, amin, any, all, count_nonzero: one pass of one reducer.
// Variances and norms are in moments.cpp, indices and scans in index.cpp.
#include "kernels/reduce/reduce.h"

#include <cmath>

#include "core/ops/attributes/written.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/reduce/dims.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::KernelContext;
using ops::TensorMeta;
using ops::WritesInto;
using MaybeDims = std::optional<IntList>;
using MaybeDType = std::optional<DType>;

// Result dtype of sums: integers and bool become int64.
DType sum_dtype(const Tensor& in, const MaybeDType& dtype) {
  if (dtype) return *dtype;
  return is_floating(in.dtype()) ? in.dtype() : DType::kInt64;
}
DType mean_dtype(const Tensor& in, const MaybeDType& dtype) {
  const DType result = dtype.value_or(in.dtype());
  check(is_floating(result),
        "mean(): could not infer output dtype. Input dtype must be a floating point dtype. Got: ", name_of(result));
  return result;
}

// The gradient of a sum (times `scale`): g broadcast over the reduced dimensions.
Tensor spread(const ops::GradArgs& args, const MaybeDims& dims, bool is_mean) {
  const Tensor& in = args.inputs[0].to_tensor();
  const ReducedDims reduced(in, dims);
  Tensor g = ops::reshape(args.grad_outputs[0], reduced.sizes(in, true));
  if (is_mean) g = ops::div(g, static_cast<double>(std::max<int64_t>(1, reduced.count)));
  g = ops::expand(g, in.sizes());
  return g.dtype() == in.dtype() ? g : ops::to(g, in.dtype());
}
gradient::GradientFn spread_gradient(bool has_dims, bool is_mean) {
  return [=](const ops::GradArgs& args) {
    std::vector<Tensor> gradients(args.inputs.size());
    if (!is_floating(args.inputs[0].to_tensor().dtype()) && !is_complex(args.inputs[0].to_tensor().dtype()))
      return gradients;
    gradients[0] = spread(args, has_dims ? dims_of(args.inputs[1]) : std::nullopt, is_mean);
    return gradients;
  };
}

// sum and mean: over everything, and over a list of dimensions.
void add_sum(const char* name, bool is_mean) {
  const auto dtype_of_result = is_mean ? mean_dtype : sum_dtype;
  const std::string full = concat("aten::", name), dim = concat(full, is_mean ? ".dim" : ".dim_IntList");
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([=](const Tensor& in, MaybeDType dtype) {
        return TensorMeta{{}, dtype_of_result(in, dtype), {}, in.device()};
      })
      .gradient(spread_gradient(false, is_mean))
      .saves("")
      .reduction();
  ops::OpBuilder(dim, __FILE__, __LINE__)
      .infer([=](const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype) {
        return ReducedDims(in, dims).meta(in, keepdim, dtype_of_result(in, dtype));
      })
      .gradient(spread_gradient(true, is_mean))
      .saves("")
      .reduction();
  const auto run = [=](const Tensor& in, const MaybeDims& dims, bool keepdim, MaybeDType dtype, Tensor& out) {
    const ReducedDims reduced(in, dims);
    Reduction reduction;
    reduction.compute = dtype_of_result(in, dtype);
    if (is_mean) reduction.scale = 1.0 / static_cast<double>(reduced.count);
    run_reduction(over_truth(reduction, in.dtype()), in, reduced.kept(in, out, keepdim));
  };
  ops::ImplBuilder(full.c_str(), kCPU, [run](const KernelContext&, const Tensor& in, MaybeDType dtype, Tensor& out) {
    run(in, {}, false, dtype, out);
  });
  ops::ImplBuilder(dim.c_str(), kCPU,
                   [run](const KernelContext&, const Tensor& in, MaybeDims dims, bool keepdim, MaybeDType dtype,
                         Tensor& out) { run(in, dims, keepdim, dtype, out); });
}

void run_simple(Reducer reducer, DType compute, const Tensor& in, const MaybeDims& dims, bool keepdim, Tensor& out) {
  Reduction reduction;
  reduction.reducer = reducer;
  reduction.compute = compute;
  run_reduction(over_truth(reduction, in.dtype()), in, ReducedDims(in, dims).kept(in, out, keepdim));
}

// For each element the product of all others, as running products from both sides: without a division, so it has
// derivatives at zeros too.
Expr products_of_others(const Tensor& in, const MaybeDims& dims) {
  const Tensor x = dims && in.ndim() > 0 ? in : ops::reshape(in, Dims{-1});
  const int64_t dim = dims && in.ndim() > 0 ? wrap_dim((*dims)[0], in.ndim()) : 0, size = x.size(dim);
  if (size == 0) return Expr(ops::ones_like(in));
  const Tensor one = ops::ones_like(ops::narrow(x, dim, 0, 1));
  const auto before = [&](const Tensor& line) {
    const Tensor moved = ops::cat({one, ops::narrow(line, dim, 0, size - 1)}, dim);
    return ops::cumprod(moved, dim);
  };
  const auto turned = [&](const Tensor& line) { return ops::flip(line, Dims{dim}); };
  const Expr others = Expr(before(x)) * Expr(turned(before(turned(x))));
  return Expr(ops::reshape(others.tensor(), in.sizes()));
}

// prod. Its gradient prod / x is wrong at zeros, so these use masked products. Masks have no gradient, so a gradient
// that is itself recorded is computed without them.
std::vector<Tensor> prod_gradient(const ops::GradArgs& args, const MaybeDims& dims) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& in = args.inputs[0].to_tensor();
  if (!is_floating(in.dtype())) return gradients;
  const Dims kept = ReducedDims(in, dims).sizes(in, true);
  const auto over = [&](const Expr& x, const char* full, const char* by_dim) {
    const Tensor reduced =
        dims ? ops::call_by_name(by_dim, x.tensor(), (*dims)[0], true) : ops::call_by_name(full, x.tensor());
    return Expr(ops::reshape(reduced, kept));
  };
  if (is_grad_enabled()) {
    const Expr g = Expr(ops::reshape(args.grad_outputs[0], kept));
    gradients[0] = gradient::fit_gradient(g * products_of_others(in, dims), in);
    return gradients;
  }
  const Expr x = in, is_zero = x == 0;
  const Expr zeros = Expr(ops::sum(is_zero.tensor(), dims ? *dims : Dims{}, true));
  const Expr others = over(gradient::where(is_zero, 1.0, x), "aten::prod", "aten::prod.dim_int");
  // No zero: others / x everywhere. One zero: others there, 0 elsewhere. More: 0.
  const Expr slope =
      gradient::where(is_zero, others * (zeros == 1), others * (zeros == 0) / gradient::where(is_zero, 1.0, x));
  const Expr g = Expr(ops::reshape(args.grad_outputs[0], kept));
  gradients[0] = gradient::fit_gradient(g * slope, in);
  return gradients;
}
OP("aten::prod")
    .infer([](const Tensor& in, MaybeDType dtype) {
      return TensorMeta{{}, sum_dtype(in, dtype), {}, in.device()};
    })
    .gradient([](const ops::GradArgs& args) { return prod_gradient(args, {}); })
    .saves("self")
    .reduction();
IMPL("aten::prod", kCPU, [](const KernelContext&, const Tensor& in, MaybeDType dtype, Tensor& out) {
  run_simple(Reducer::kProduct, sum_dtype(in, dtype), in, {}, false, out);
});
OP("aten::prod.dim_int")
    .infer([](const Tensor& in, int64_t dim, bool keepdim, MaybeDType dtype) {
      return ReducedDims(in, Dims{dim}).meta(in, keepdim, sum_dtype(in, dtype));
    })
    .gradient([](const ops::GradArgs& args) { return prod_gradient(args, dims_of(args.inputs[1])); })
    .saves("self")
    .reduction();
IMPL("aten::prod.dim_int", kCPU,
     [](const KernelContext&, const Tensor& in, int64_t dim, bool keepdim, MaybeDType dtype, Tensor& out) {
       run_simple(Reducer::kProduct, sum_dtype(in, dtype), in, Dims{dim}, keepdim, out);
     });

// The largest and smallest: ties share the gradient; NaNs too, when reducing everything.
std::vector<Tensor> extreme_gradient(const ops::GradArgs& args, const MaybeDims& dims) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& in = args.inputs[0].to_tensor();
  if (!is_floating(in.dtype())) return gradients;
  const Dims kept = ReducedDims(in, dims).sizes(in, true);
  const Expr g = Expr(ops::reshape(args.grad_outputs[0], kept));
  const Expr y = Expr(ops::reshape(args.outputs[0].to_tensor(), kept));
  const bool is_nan = !dims && std::isnan(y.tensor().item_double());
  const Expr is_extreme = is_nan ? Expr(in) != Expr(in) : Expr(in) == y;
  const Expr ties = Expr(ops::sum(is_extreme.tensor(), dims ? *dims : Dims{}, true));
  gradients[0] = gradient::fit_gradient(g * is_extreme / ties, in);
  return gradients;
}
void check_not_empty(const char* op, const Tensor& in, const ReducedDims& reduced) {
  check(in.numel() > 0 || reduced.count > 0, op,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
}
void add_extreme_of_all(const char* name, Reducer reducer) {
  const std::string full = concat("aten::", name), dims = concat("aten::a", name);
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([name](const Tensor& in) {
        check_not_empty(name, in, ReducedDims(in, {}));
        return TensorMeta{{}, in.dtype(), {}, in.device()};
      })
      .gradient([](const ops::GradArgs& args) { return extreme_gradient(args, {}); })
      .saves("self, result")
      .reduction();
  ops::OpBuilder(dims, __FILE__, __LINE__)
      .infer([name](const Tensor& in, IntList dim, bool keepdim) {
        const ReducedDims reduced(in, dim);
        check_not_empty(name, in, reduced);
        return reduced.meta(in, keepdim, in.dtype());
      })
      .gradient([](const ops::GradArgs& args) { return extreme_gradient(args, dims_of(args.inputs[1])); })
      .saves("self, result")
      .reduction()
      .set<WritesInto>(WritesInto::kSameDType);
  ops::ImplBuilder(full.c_str(), kCPU, [reducer](const KernelContext&, const Tensor& in, Tensor& out) {
    run_simple(reducer, in.dtype(), in, {}, false, out);
  });
  ops::ImplBuilder(dims.c_str(), kCPU,
                   [reducer](const KernelContext&, const Tensor& in, IntList dim, bool keepdim, Tensor& out) {
                     run_simple(reducer, in.dtype(), in, dim, keepdim, out);
                   });
}

// any and all return bool, except that uint8 stays uint8.
DType truth_dtype(const Tensor& in) { return in.dtype() == DType::kUInt8 ? DType::kUInt8 : DType::kBool; }
void add_truth(const char* name, Reducer reducer) {
  const std::string full = concat("aten::", name), dim = concat(full, ".dim");
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([](const Tensor& in) {
        return TensorMeta{{}, truth_dtype(in), {}, in.device()};
      })
      .reduction();
  ops::OpBuilder(dim, __FILE__, __LINE__)
      .infer([](const Tensor& in, int64_t d, bool keepdim) {
        return ReducedDims(in, Dims{d}).meta(in, keepdim, truth_dtype(in));
      })
      .reduction()
      .set<WritesInto>(WritesInto::kSameDType);
  ops::ImplBuilder(full.c_str(), kCPU, [reducer](const KernelContext&, const Tensor& in, Tensor& out) {
    run_simple(reducer, in.dtype(), in, {}, false, out);
  });
  ops::ImplBuilder(dim.c_str(), kCPU,
                   [reducer](const KernelContext&, const Tensor& in, int64_t d, bool keepdim, Tensor& out) {
                     run_simple(reducer, in.dtype(), in, Dims{d}, keepdim, out);
                   });
}

OP("aten::count_nonzero.dim_IntList")
    .infer([](const Tensor& in, IntList dims) { return ReducedDims(in, dims).meta(in, false, DType::kInt64); })
    .reduction();
IMPL("aten::count_nonzero.dim_IntList", kCPU, [](const KernelContext&, const Tensor& in, IntList dims, Tensor& out) {
  run_simple(Reducer::kNonzeros, in.dtype(), in, dims, false, out);
});
MaybeDims one_dim(const std::optional<int64_t>& dim) { return dim ? MaybeDims(Dims{*dim}) : std::nullopt; }
OP("aten::count_nonzero")
    .infer([](const Tensor& in, std::optional<int64_t> dim) {
      return ReducedDims(in, one_dim(dim)).meta(in, false, DType::kInt64);
    })
    .reduction();
IMPL("aten::count_nonzero", kCPU, [](const KernelContext&, const Tensor& in, std::optional<int64_t> dim, Tensor& out) {
  run_simple(Reducer::kNonzeros, in.dtype(), in, one_dim(dim), false, out);
});

bool register_reduce() {
  add_sum("sum", false);
  add_sum("mean", true);
  add_extreme_of_all("max", Reducer::kMax);
  add_extreme_of_all("min", Reducer::kMin);
  add_truth("any", Reducer::kAny);
  add_truth("all", Reducer::kAll);
  return true;
}
[[maybe_unused]] const bool reduce_registered = register_reduce();

}  // namespace
}  // namespace tensord::kernels
