// var, std, var_mean, norm, linalg_vector_norm, logsumexp.
#include <cmath>
#include <limits>

#include "core/ops/attributes/written.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/reduce/dims.h"
#include "kernels/reduce/reduce.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;
using MaybeDims = std::optional<IntList>;
using MaybeDType = std::optional<DType>;
using MaybeInt = std::optional<int64_t>;

double correction_of(bool unbiased) { return unbiased ? 1 : 0; }
// The usual correction is 1; PyTorch takes fractions since 2.0.
double correction_of(const std::optional<Scalar>& given) { return given ? given->to_double() : 1; }
double correction_of(const ops::Value& given) { return given.is_none() ? 1 : given.to_scalar().to_double(); }

// Variance: the mean in float64, then squares around it. `mean_out` may be null.
struct Variance {
  MaybeDims dims;
  double correction = 1;
  bool keepdim = false, is_root = false;

  TensorMeta infer(const char* op, const Tensor& in) const {
    check(is_floating(in.dtype()), op, ": only support floating point dtypes, got ", name_of(in.dtype()));
    return ReducedDims(in, dims).meta(in, keepdim, in.dtype());
  }
  void run(const Tensor& in, Tensor& out, Tensor* mean_out) const {
    const ReducedDims reduced(in, dims);
    const Tensor centers = Tensor::empty(reduced.sizes(in, true), DType::kFloat64, in.device());
    Reduction mean;
    mean.compute = in.dtype();
    mean.scale = 1.0 / static_cast<double>(reduced.count);
    run_reduction(mean, in, centers);
    Reduction squares;
    squares.reducer = Reducer::kSquares;
    squares.compute = in.dtype();
    squares.centers = &centers;
    squares.scale = 1.0 / std::max(0.0, static_cast<double>(reduced.count) - correction);
    squares.root = is_root ? 0.5 : 1.0;
    run_reduction(squares, in, reduced.kept(in, out, keepdim));
    if (mean_out != nullptr) reduced.kept(in, *mean_out, keepdim).copy_from(centers);
  }
  // a / y, and 0 where y is 0; also in second gradients, where an unused division by 0 would leave NaN.
  static Expr over(const Expr& a, const Expr& y) {
    return gradient::where(y == 0, 0.0, a / gradient::where(y == 0, 1.0, y));
  }
  // d var = 2 (x - mean) / (n - correction); d std = (x - mean) / (std (n - correction)).
  Tensor gradient(const ops::GradArgs& args) const {
    const Tensor& in = args.inputs[0].to_tensor();
    const ReducedDims reduced(in, dims);
    const Dims kept = reduced.sizes(in, true), all = dims ? *dims : Dims{};
    const Expr g = Expr(ops::reshape(args.grad_outputs[0], kept));
    const Expr centered = Expr(in) - Expr(ops::mean(in, all, true));
    const double n = static_cast<double>(reduced.count) - correction;
    if (!is_root) return gradient::fit_gradient(g * centered * (2 / n), in);
    const Expr y = Expr(ops::reshape(args.outputs[0].to_tensor(), kept));
    return gradient::fit_gradient(g * over(centered, y) / n, in);
  }
};
Tensor variance_gradient(const ops::GradArgs& args, const MaybeDims& dims, double correction, bool is_root) {
  return Variance{dims, correction, false, is_root}.gradient(args);
}

void add_variance(const char* name, bool is_root) {
  const std::string full = concat("aten::", name), dim = concat(full, ".dim"), corrected = concat(full, ".correction");
  const auto gradient = [is_root](auto settings) {
    return [=](const ops::GradArgs& args) {
      std::vector<Tensor> gradients(args.inputs.size());
      const auto [dims, correction] = settings(args);
      gradients[0] = variance_gradient(args, dims, correction, is_root);
      return gradients;
    };
  };
  using Settings = std::pair<MaybeDims, double>;
  const char* saved = is_root ? "self, result" : "self";
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([name](const Tensor& in, bool unbiased) {
        return Variance{{}, correction_of(unbiased)}.infer(name, in);
      })
      .gradient(
          gradient([](const ops::GradArgs& args) { return Settings({}, correction_of(args.inputs[1].to_bool())); }))
      .saves(saved)
      .reduction();
  ops::OpBuilder(dim, __FILE__, __LINE__)
      .infer([name](const Tensor& in, const MaybeDims& dims, bool unbiased, bool keepdim) {
        return Variance{dims, correction_of(unbiased), keepdim}.infer(name, in);
      })
      .gradient(gradient([](const ops::GradArgs& args) {
        return Settings(dims_of(args.inputs[1]), correction_of(args.inputs[2].to_bool()));
      }))
      .saves(saved)
      .reduction();
  ops::OpBuilder(corrected, __FILE__, __LINE__)
      .infer([name](const Tensor& in, const MaybeDims& dims, std::optional<Scalar> correction, bool keepdim) {
        return Variance{dims, correction_of(correction), keepdim}.infer(name, in);
      })
      .gradient(gradient(
          [](const ops::GradArgs& args) { return Settings(dims_of(args.inputs[1]), correction_of(args.inputs[2])); }))
      .saves(saved)
      .reduction();
  ops::ImplBuilder(full.c_str(), kCPU, [is_root](const KernelContext&, const Tensor& in, bool unbiased, Tensor& out) {
    Variance{{}, correction_of(unbiased), false, is_root}.run(in, out, nullptr);
  });
  ops::ImplBuilder(dim.c_str(), kCPU,
                   [is_root](const KernelContext&, const Tensor& in, const MaybeDims& dims, bool unbiased, bool keepdim,
                             Tensor& out) {
                     Variance{dims, correction_of(unbiased), keepdim, is_root}.run(in, out, nullptr);
                   });
  ops::ImplBuilder(corrected.c_str(), kCPU,
                   [is_root](const KernelContext&, const Tensor& in, const MaybeDims& dims,
                             std::optional<Scalar> correction, bool keepdim, Tensor& out) {
                     Variance{dims, correction_of(correction), keepdim, is_root}.run(in, out, nullptr);
                   });
}

// The gradients of the deviation (or variance) and of the mean, whichever are defined.
std::vector<Tensor> variance_mean_gradient(const ops::GradArgs& args, const MaybeDims& dims, double correction,
                                           bool is_root) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& in = args.inputs[0].to_tensor();
  if (args.grad_outputs[0].defined()) gradients[0] = variance_gradient(args, dims, correction, is_root);
  if (!args.grad_outputs[1].defined()) return gradients;
  const ReducedDims reduced(in, dims);
  const Tensor g = ops::reshape(args.grad_outputs[1], reduced.sizes(in, true));
  const Tensor share = ops::div(g, static_cast<double>(reduced.count));
  const Tensor spread = ops::expand(share, in.sizes());
  gradients[0] = gradients[0].defined() ? (Expr(gradients[0]) + Expr(spread)).tensor() : spread;
  return gradients;
}

void add_variance_mean(const char* name, bool is_root) {
  const std::string full = concat("aten::", name), dim = concat(full, ".dim"), corrected = concat(full, ".correction");
  const char* saved = is_root ? "self, result0" : "self";
  ops::OpBuilder(full, __FILE__, __LINE__)
      .infer([name](const Tensor& in, bool unbiased) {
        return std::vector<TensorMeta>(2, Variance{{}, correction_of(unbiased)}.infer(name, in));
      })
      .gradient([is_root](const ops::GradArgs& args) {
        return variance_mean_gradient(args, {}, correction_of(args.inputs[1].to_bool()), is_root);
      })
      .saves(saved)
      .reduction();
  ops::OpBuilder(dim, __FILE__, __LINE__)
      .infer([name](const Tensor& in, const MaybeDims& dims, bool unbiased, bool keepdim) {
        return std::vector<TensorMeta>(2, Variance{dims, correction_of(unbiased), keepdim}.infer(name, in));
      })
      .gradient([is_root](const ops::GradArgs& args) {
        return variance_mean_gradient(args, dims_of(args.inputs[1]), correction_of(args.inputs[2].to_bool()), is_root);
      })
      .saves(saved)
      .reduction();
  ops::OpBuilder(corrected, __FILE__, __LINE__)
      .infer([name](const Tensor& in, const MaybeDims& dims, std::optional<Scalar> correction, bool keepdim) {
        return std::vector<TensorMeta>(2, Variance{dims, correction_of(correction), keepdim}.infer(name, in));
      })
      .gradient([is_root](const ops::GradArgs& args) {
        return variance_mean_gradient(args, dims_of(args.inputs[1]), correction_of(args.inputs[2]), is_root);
      })
      .saves(saved)
      .reduction();
  ops::ImplBuilder(full.c_str(), kCPU,
                   [is_root](const KernelContext&, const Tensor& in, bool unbiased, Tensor& out, Tensor& mean) {
                     Variance{{}, correction_of(unbiased), false, is_root}.run(in, out, &mean);
                   });
  ops::ImplBuilder(dim.c_str(), kCPU,
                   [is_root](const KernelContext&, const Tensor& in, const MaybeDims& dims, bool unbiased, bool keepdim,
                             Tensor& out, Tensor& mean) {
                     Variance{dims, correction_of(unbiased), keepdim, is_root}.run(in, out, &mean);
                   });
  ops::ImplBuilder(corrected.c_str(), kCPU,
                   [is_root](const KernelContext&, const Tensor& in, const MaybeDims& dims,
                             std::optional<Scalar> correction, bool keepdim, Tensor& out, Tensor& mean) {
                     Variance{dims, correction_of(correction), keepdim, is_root}.run(in, out, &mean);
                   });
}

// Vector norms.

Reduction norm_reduction(const std::optional<Scalar>& order, DType compute) {
  Reduction reduction;
  reduction.compute = compute;
  const double p = order ? order->to_double() : 2.0;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (p == 2) {
    reduction.reducer = Reducer::kSquares;
    reduction.root = 0.5;
  } else if (p == 1) {
    reduction.reducer = Reducer::kAbsolutes;
  } else if (p == 0) {
    reduction.reducer = Reducer::kNonzeros;
  } else if (p == kInf) {
    reduction.reducer = Reducer::kMaxAbsolute;
  } else if (p == -kInf) {
    reduction.reducer = Reducer::kMinAbsolute;
  } else {
    reduction.reducer = Reducer::kPowers;
    reduction.power = p;
    reduction.root = 1 / p;
  }
  return reduction;
}
TensorMeta infer_norm(const Tensor& in, const MaybeDims& dims, bool keepdim, const MaybeDType& dtype) {
  const DType result = dtype.value_or(in.dtype());
  check(is_floating(result), "norm: Expected a floating point tensor as input. Got ", name_of(result));
  return ReducedDims(in, dims).meta(in, keepdim, result);
}
void run_norm(const Tensor& in, const std::optional<Scalar>& p, const MaybeDims& dims, bool keepdim,
              const MaybeDType& dtype, Tensor& out) {
  run_reduction(norm_reduction(p, dtype.value_or(in.dtype())), in, ReducedDims(in, dims).kept(in, out, keepdim));
}
// d |x|_p = sign(x) (|x| / y)^(p-1); 0 where the norm or the element is 0. Extremes that are equal share the gradient.
Tensor norm_gradient(const ops::GradArgs& args, const ops::Value& order, const MaybeDims& dims) {
  const Tensor& in = args.inputs[0].to_tensor();
  const double p = order.is_none() ? 2.0 : order.to_scalar().to_double();
  const Dims kept = ReducedDims(in, dims).sizes(in, true);
  const Expr g = Expr(ops::reshape(args.grad_outputs[0], kept)), x = in;
  const Expr y = Expr(ops::reshape(args.outputs[0].to_tensor(), kept));
  Expr slope;
  if (p == 0)
    slope = gradient::zeros(x);
  else if (p == 1)
    slope = gradient::sign(x);
  else if (p == 2)
    slope = Variance::over(x, y);
  else if (std::isinf(p)) {
    const Expr is_extreme = gradient::abs(x) == y;
    const Expr count = Expr(ops::sum(is_extreme.tensor(), dims ? *dims : Dims{}, true));
    slope = gradient::where(is_extreme, gradient::sign(x) / count, 0.0);
  } else {
    const Expr size = gradient::where(x == 0, 1.0, gradient::abs(x));
    slope = gradient::where(x == 0, Variance::over(x, y),
                            gradient::sign(x) * gradient::pow(Variance::over(size, y), p - 1));
  }
  return gradient::fit_gradient(g * slope, in);
}
gradient::GradientFn norm_gradient_of(int order_index, int dims_index) {
  return gradient::of_first([=](const ops::GradArgs& args, const Tensor&) {
    return norm_gradient(args, args.inputs[order_index],
                         dims_index < 0 ? std::nullopt : dims_of(args.inputs[dims_index]));
  });
}

using MaybeScalar = std::optional<Scalar>;
OP("aten::norm.Scalar")
    .infer([](const Tensor& in, Scalar) { return infer_norm(in, {}, false, {}); })
    .gradient(norm_gradient_of(1, -1))
    .saves("self, result")
    .reduction();
IMPL("aten::norm.Scalar", kCPU,
     [](const KernelContext&, const Tensor& in, Scalar p, Tensor& out) { run_norm(in, p, {}, false, {}, out); });
OP("aten::norm.ScalarOpt_dtype")
    .infer([](const Tensor& in, MaybeScalar, DType dtype) { return infer_norm(in, {}, false, dtype); })
    .gradient(norm_gradient_of(1, -1))
    .saves("self, result")
    .reduction();
IMPL("aten::norm.ScalarOpt_dtype", kCPU,
     [](const KernelContext&, const Tensor& in, MaybeScalar p, DType dtype, Tensor& out) {
       run_norm(in, p, {}, false, dtype, out);
     });
OP("aten::norm.ScalarOpt_dim")
    .infer([](const Tensor& in, MaybeScalar, IntList dims, bool keepdim) { return infer_norm(in, dims, keepdim, {}); })
    .gradient(norm_gradient_of(1, 2))
    .saves("self, result")
    .reduction();
IMPL("aten::norm.ScalarOpt_dim", kCPU,
     [](const KernelContext&, const Tensor& in, MaybeScalar p, IntList dims, bool keepdim, Tensor& out) {
       run_norm(in, p, dims, keepdim, {}, out);
     });
OP("aten::norm.ScalarOpt_dim_dtype")
    .infer([](const Tensor& in, MaybeScalar, IntList dims, bool keepdim, DType dtype) {
      return infer_norm(in, dims, keepdim, dtype);
    })
    .gradient(norm_gradient_of(1, 2))
    .saves("self, result")
    .reduction();
IMPL("aten::norm.ScalarOpt_dim_dtype", kCPU,
     [](const KernelContext&, const Tensor& in, MaybeScalar p, IntList dims, bool keepdim, DType dtype, Tensor& out) {
       run_norm(in, p, dims, keepdim, dtype, out);
     });
OP("aten::linalg_vector_norm")
    .infer([](const Tensor& in, Scalar, const MaybeDims& dims, bool keepdim, MaybeDType dtype) {
      return infer_norm(in, dims, keepdim, dtype);
    })
    .gradient(norm_gradient_of(1, 2))
    .saves("self, result")
    .reduction()
    .set<WritesInto>(WritesInto::kSameDType);
IMPL("aten::linalg_vector_norm", kCPU,
     [](const KernelContext&, const Tensor& in, Scalar order, const MaybeDims& dims, bool keepdim, MaybeDType dtype,
        Tensor& out) { run_norm(in, order, dims, keepdim, dtype, out); });

// d log sum exp(x) = exp(x - y)
Tensor logsumexp_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  const Dims kept = ReducedDims(in, dims_of(args.inputs[1])).sizes(in, true);
  const Expr y = Expr(ops::reshape(args.outputs[0].to_tensor(), kept));
  return gradient::fit_gradient(Expr(ops::reshape(g, kept)) * gradient::exp(Expr(in) - y), in);
}
OP("aten::logsumexp")
    .impl([](const Tensor& in, IntList dims, bool keepdim) {
      const Expr x = is_floating(in.dtype()) ? in : ops::to(in, DType::kFloat32);
      if (x.tensor().numel() == 0) return ops::log(ops::sum(gradient::exp(x).tensor(), dims, keepdim));
      Expr largest = Expr(ops::amax(x.tensor(), dims, true));
      // With an infinite maximum, x - maximum would be NaN.
      largest = gradient::where(gradient::abs(largest) == std::numeric_limits<double>::infinity(), 0.0, largest);
      const Tensor sum = ops::sum(gradient::exp(x - largest).tensor(), dims, true);
      const Expr result = gradient::log(sum) + largest;
      return ops::reshape(result.tensor(), ReducedDims(in, dims).sizes(in, keepdim));
    })
    .gradient(gradient::of_first(logsumexp_gradient))
    .saves("self, result");

bool register_moments() {
  add_variance("var", false);
  add_variance("std", true);
  add_variance_mean("var_mean", false);
  add_variance_mean("std_mean", true);
  return true;
}
[[maybe_unused]] const bool moments_registered = register_moments();

}  // namespace
}  // namespace tensord::kernels
