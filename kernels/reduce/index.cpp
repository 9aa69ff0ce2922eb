// Reductions that give positions (max.dim, min.dim, argmax, argmin) and running ones
// (cumsum, cumprod, cummax, cummin, logcumsumexp), lane by lane.
#include <cmath>
#include <cstring>
#include <vector>

#include "core/ops/run.h"
#include "core/tensor/memory_order.h"
#include "kernels/common/lanes.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/dims.h"
#include "kernels/reduce/reduce.h"

namespace tensord::kernels {

Tensor chosen_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  const int64_t dim = args.inputs[1].to_int();
  const Dims kept = ReducedDims(in, Dims{dim}).sizes(in, true);
  const Tensor index = ops::call("aten::reshape", args.outputs[1].to_tensor(), kept);
  return ops::call("aten::scatter.src", gradient::zeros_like(in), dim, index, ops::call("aten::reshape", g, kept));
}

namespace {

using gradient::Expr;
using ops::KernelContext;
using ops::TensorMeta;

template <class T>
bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}

// First position of the extreme of a dense lane; the first NaN wins.
template <class T>
int64_t position_of(const T* lane, int64_t count, Reducer reducer) {
  const ReduceLoops& loops = reduce_loops(reducer, dtype_of<T>);
  Accumulator best = loops.start;
  loops.row(lane, count, 0, 0, &best);
  T value;
  if constexpr (std::is_integral_v<T>) {
    value = best.integer;
  } else {
    value = static_cast<T>(best.value);
    if (is_nan(value)) {
      for (int64_t i = 0; i < count; ++i) {
        if (is_nan(lane[i])) return i;
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (lane[i] == value) return i;
  }
  return 0;
}

// A dense lane of T at `data`: where it lies, or converted into `scratch`.
template <class T>
const T* dense_lane(const Tensor& in, int64_t offset, int64_t step, int64_t length, std::vector<T>& scratch) {
  const char* source = static_cast<const char*>(in.raw_data()) + offset * static_cast<int64_t>(size_of(in.dtype()));
  if (in.dtype() == dtype_of<T> && step == 1) return reinterpret_cast<const T*>(source);
  scratch.resize(static_cast<size_t>(length));
  load_tile(in.dtype(), source, step, dtype_of<T>, scratch.data(), length);
  return scratch.data();
}

// Calls fn.operator()<T>() with the loop type of `dtype`.
template <class Fn>
void with_loop_type(DType dtype, Fn&& fn) {
  switch (loop_dtype(dtype)) {
    case DType::kFloat32: return fn.template operator()<float>();
    case DType::kFloat64: return fn.template operator()<double>();
    default: return fn.template operator()<int64_t>();
  }
}

// `values` may be null; both outputs have size 1 (or nothing) in `dim`.
void find_extremes(const Tensor& in, int64_t dim, Reducer reducer, const Tensor* values, const Tensor& indices,
                   bool keepdim) {
  if (indices.numel() == 0) return;
  const int64_t length = lane_length(in, dim), step = lane_stride(in, dim);
  const auto outer = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  with_loop_type(in.dtype(), [&]<class T>() {
    for_each_lane<3>(without(in.sizes(), dim),
                     {without(in.strides(), dim), outer(indices), values ? outer(*values) : outer(indices)}, length,
                     [&](const std::array<int64_t, 3>& offset) {
                       thread_local std::vector<T> scratch;
                       const int64_t position =
                           position_of(dense_lane<T>(in, offset[0], step, length, scratch), length, reducer);
                       indices.data<int64_t>()[offset[1]] = position;
                       if (values == nullptr) return;
                       std::memcpy(static_cast<char*>(values->raw_data()) + offset[2] * size,
                                   static_cast<const char*>(in.raw_data()) + (offset[0] + position * step) * size,
                                   static_cast<size_t>(size));
                     });
  });
}

void check_lane(const char* op, const Tensor& in, int64_t dim) {
  check(in.ndim() == 0 || in.sizes()[wrap_dim(dim, in.ndim())] > 0, op, "(): Expected reduction dim ", dim,
        " to have non-zero size.");
}

void add_extreme(const char* name, Reducer reducer) {
  const std::string by_dim = concat("aten::", name, ".dim"), position = concat("aten::arg", name);
  ops::OpBuilder(
      concat(by_dim, "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)").c_str(), __FILE__,
      __LINE__)
      .infer([name](const Tensor& in, int64_t dim, bool keepdim) {
        check_lane(name, in, dim);
        const ReducedDims reduced(in, Dims{dim});
        return std::vector<TensorMeta>{reduced.meta(in, keepdim, in.dtype()), reduced.meta(in, keepdim, DType::kInt64)};
      })
      .gradient(gradient::of_first(chosen_gradient))
      .saves("result1")
      .reduction();
  ops::KernelBuilder(
      by_dim.c_str(), kCPU,
      [reducer](const KernelContext&, const Tensor& in, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
        find_extremes(in, wrap_dim(dim, in.ndim()), reducer, &values, indices, keepdim && in.ndim() > 0);
      });
  ops::OpBuilder(concat(position, "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor").c_str(), __FILE__,
                 __LINE__)
      .infer([name](const Tensor& in, std::optional<int64_t> dim, bool keepdim) {
        if (dim)
          check_lane(name, in, *dim);
        else
          check(in.numel() > 0, "arg", name, "(): Expected reduction dim to be specified for input.numel() == 0.");
        return ReducedDims(in, dim ? std::optional(Dims{*dim}) : std::nullopt).meta(in, keepdim, DType::kInt64);
      })
      .reduction();
  ops::KernelBuilder(
      position.c_str(), kCPU,
      [reducer](const KernelContext&, const Tensor& in, std::optional<int64_t> dim, bool keepdim, Tensor& indices) {
        if (dim)
          return find_extremes(in, wrap_dim(*dim, in.ndim()), reducer, nullptr, indices, keepdim && in.ndim() > 0);
        const Tensor flat = in.contiguous().as_view({in.numel()}, {1}, in.is_contiguous() ? in.offset() : 0);
        find_extremes(flat, 0, reducer, nullptr, indices.as_view({}, {}, indices.offset()), false);
      });
}

// Running sums and products in double (or int64).

DType scan_dtype(const Tensor& in, const std::optional<DType>& dtype) {
  return dtype.value_or(is_floating(in.dtype()) ? in.dtype() : DType::kInt64);
}
Tensor with_last(const Tensor& x, int64_t dim) {
  Dims order;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != dim) order.push_back(i);
  }
  order.push_back(dim);
  return permuted(x, order);
}
template <class Step>
void scan(const Tensor& in, int64_t dim, const Tensor& out, Step step) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  constexpr int64_t kLeast = 8192;
  if (in.numel() >= kLeast && in.ndim() > 1 && lane_stride(in, dim) != 1) {
    // Lanes with gaps would read a line of the cache for each element.
    const Tensor turned = with_last(in, dim).contiguous(), result = Tensor::empty(turned.sizes(), out.dtype());
    scan(turned, -1, result, step);
    return with_last(out, dim).copy_from(result);
  }
  const int64_t length = lane_length(in, dim), in_step = lane_stride(in, dim), out_step = lane_stride(out, dim);
  const auto run = [&]<class T>() {
    const auto out_size = static_cast<int64_t>(size_of(out.dtype()));
    for_each_lane<2>(without(in.sizes(), dim), {without(in.strides(), dim), without(out.strides(), dim)}, length,
                     [&](const std::array<int64_t, 2>& offset) {
                       thread_local std::vector<T> scratch;
                       scratch.resize(static_cast<size_t>(length));
                       const char* source = static_cast<const char*>(in.raw_data()) +
                                            offset[0] * static_cast<int64_t>(size_of(in.dtype()));
                       load_tile(in.dtype(), source, in_step, dtype_of<T>, scratch.data(), length);
                       step(scratch.data(), length);
                       store_tile(dtype_of<T>, scratch.data(), out.dtype(),
                                  static_cast<char*>(out.raw_data()) + offset[1] * out_size, out_step, length);
                     });
  };
  if (is_floating(out.dtype()))
    run.template operator()<double>();
  else
    run.template operator()<int64_t>();
}
const auto kSumStep = []<class T>(T* lane, int64_t count) {
  for (int64_t i = 1; i < count; ++i) lane[i] += lane[i - 1];
};
const auto kProductStep = []<class T>(T* lane, int64_t count) {
  for (int64_t i = 1; i < count; ++i) lane[i] *= lane[i - 1];
};
// log(exp(a) + exp(b)) without overflow.
const auto kLogSumStep = []<class T>(T* lane, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const double high = std::max(lane[i], lane[i - 1]), low = std::min(lane[i], lane[i - 1]);
    if (std::isnan(lane[i - 1]))  // stays
      lane[i] = lane[i - 1];
    else if (std::isinf(high))
      lane[i] = static_cast<T>(high);
    else
      lane[i] = static_cast<T>(high + std::log1p(std::exp(low - high)));
  }
};

TensorMeta infer_scan(const Tensor& in, int64_t dim, const std::optional<DType>& dtype) {
  wrap_dim(dim, in.ndim());
  return {in.sizes(), scan_dtype(in, dtype), {}, in.device()};
}
// Sums from each element to the last.
Expr sum_after(const Expr& x, int64_t dim) {
  const Tensor reversed = ops::call("aten::flip", x.tensor(), Dims{dim});
  return Expr(ops::call("aten::flip", ops::call("aten::cumsum", reversed, dim), Dims{dim}));
}
Tensor cumsum_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  return gradient::fit_gradient(in.ndim() == 0 ? Expr(g) : sum_after(g, args.inputs[1].to_int()), in);
}
// Whether any element is 0. Of what has no elements at hand it is not known.
bool has_zeros(const Tensor& x) {
  if (x.is_meta() || x.numel() == 0) return false;
  const NoGradGuard records_nothing;
  return ops::call<bool>("aten::Bool.Tensor", ops::call("aten::any", ops::call("aten::eq.Scalar", x, 0)));
}
// The same sum as products of what comes before and after, without a division: right in all derivatives at zeros, too.
// One product of the rest of the lane for each element.
Tensor cumprod_gradient_at_zeros(const Tensor& x, int64_t dim, const Tensor& g) {
  const int64_t size = x.size(dim);
  std::vector<Tensor> parts;
  for (int64_t k = 0; k < size; ++k) {
    Expr sum = Expr(ops::call("aten::narrow", g, dim, k, 1));
    if (k + 1 < size) {
      const Tensor after = ops::call("aten::cumprod", ops::call("aten::narrow", x, dim, k + 1, size - k - 1), dim);
      const Expr weighted = Expr(ops::call("aten::narrow", g, dim, k + 1, size - k - 1)) * Expr(after);
      sum = sum + Expr(ops::call("aten::sum.dim_IntList", weighted.tensor(), Dims{dim}, true));
    }
    if (k > 0) sum = sum * Expr(ops::call("aten::prod.dim_int", ops::call("aten::narrow", x, dim, 0, k), dim, true));
    parts.push_back(sum.tensor());
  }
  return ops::call("aten::cat", ops::make_tensor_list(parts), dim);
}
// Sum of g y from each element on, over x. What comes after the first zero of a lane has no gradient, and that
// zero has the sum of g and the products without it.
Tensor cumprod_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  const int64_t dim = args.inputs[1].to_int();
  if (in.ndim() == 0 || in.numel() == 0 || in.size(dim) == 1) return gradient::fit_gradient(g, in);
  if (is_grad_enabled() && has_zeros(in)) {
    return gradient::fit_gradient(cumprod_gradient_at_zeros(in, wrap_dim(dim, in.ndim()), g), in);
  }
  const Expr x = in, is_zero = x == 0;
  const Expr zeros = Expr(ops::call("aten::cumsum", is_zero.tensor(), dim));
  const Expr is_first = Expr(ops::call("aten::logical_and", is_zero.tensor(), (zeros == 1).tensor()));
  const Expr without = Expr(ops::call("aten::cumprod", gradient::where(is_first, 1.0, x).tensor(), dim));
  const Expr at_first = sum_after(Expr(g) * without, dim);
  const Expr before = sum_after(Expr(g) * Expr(args.outputs[0]), dim) / gradient::where(is_zero, 1.0, x);
  return gradient::fit_gradient(gradient::where(is_first, at_first, gradient::where(zeros == 0, before, 0.0)), in);
}
// Sum of g exp(x - y) from each element on, in logarithms, as y may lie far from 0. They need one sign, so that
// what is positive and what is negative are summed apart.
Tensor logcumsumexp_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  const int64_t dim = args.inputs[1].to_int();
  constexpr double kNothing = -1e30;  // the logarithm of nothing, with which sums stay finite
  const Expr x = in, y = Expr(args.outputs[0]);
  const auto part = [&](const Expr& amount) {
    const Expr has = amount > 0;
    const Expr logs = gradient::where(has, gradient::log(gradient::where(has, amount, 1.0)) - y, kNothing);
    const Tensor reversed = ops::call("aten::flip", logs.tensor(), Dims{dim});
    return gradient::exp(Expr(ops::call("aten::flip", ops::call("aten::logcumsumexp", reversed, dim), Dims{dim})) + x);
  };
  return gradient::fit_gradient(part(g) - part(-Expr(g)), in);
}

OP("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .infer([](const Tensor& in, int64_t dim, std::optional<DType> dtype) { return infer_scan(in, dim, dtype); })
    .gradient(gradient::of_first(cumsum_gradient))
    .saves("")
    .with_out()
    .with_inplace();
KERNEL("aten::cumsum", kCPU,
       [](const KernelContext&, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
         scan(in, dim, out, kSumStep);
       });
OP("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .infer([](const Tensor& in, int64_t dim, std::optional<DType> dtype) { return infer_scan(in, dim, dtype); })
    .gradient(gradient::of_first(cumprod_gradient))
    .saves("self, result")
    .with_inplace();
KERNEL("aten::cumprod", kCPU,
       [](const KernelContext&, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
         scan(in, dim, out, kProductStep);
       });
OP("aten::logcumsumexp(Tensor self, int dim) -> Tensor")
    .infer([](const Tensor& in, int64_t dim) {
      if (!is_floating(in.dtype())) fail_dtype("logcumsumexp", in.dtype());
      return infer_scan(in, dim, {});
    })
    .gradient(gradient::of_first(logcumsumexp_gradient))
    .saves("self, result");
KERNEL("aten::logcumsumexp", kCPU,
       [](const KernelContext&, const Tensor& in, int64_t dim, Tensor& out) { scan(in, dim, out, kLogSumStep); });

// Running extremes with their positions; later equals win, and a NaN stays.
void running_extreme(const Tensor& in, int64_t dim, bool is_max, const Tensor& values, const Tensor& indices) {
  if (in.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  const int64_t length = lane_length(in, dim), in_step = lane_stride(in, dim), out_step = lane_stride(values, dim);
  dispatch_all(in.dtype(), "cummax", [&]<class T>() {
    for_each_lane<2>(without(in.sizes(), dim), {without(in.strides(), dim), without(values.strides(), dim)}, length,
                     [&](const std::array<int64_t, 2>& offset) {
                       const T* source = in.data<T>() + offset[0];
                       int64_t best = 0;
                       for (int64_t i = 0; i < length; ++i) {
                         const auto x = static_cast<ComputeType<T>>(source[i * in_step]),
                                    y = static_cast<ComputeType<T>>(source[best * in_step]);
                         const bool better = is_max ? x >= y : x <= y;
                         if (is_nan(x) || (!is_nan(y) && better)) best = i;
                         values.data<T>()[offset[1] + i * out_step] = source[best * in_step];
                         indices.data<int64_t>()[offset[1] + i * out_step] = best;
                       }
                     });
  });
}
// Each result's gradient goes to where it was found.
Tensor running_gradient(const ops::GradArgs& args, Tensor g) {
  const Tensor& in = args.inputs[0].to_tensor();
  if (in.ndim() == 0) return g;
  return ops::call("aten::scatter_add", gradient::zeros_like(in), args.inputs[1], args.outputs[1], g);
}
void add_running(const char* op, bool is_max) {
  ops::OpBuilder(concat(op, "(Tensor self, int dim) -> (Tensor values, Tensor indices)").c_str(), __FILE__, __LINE__)
      .infer([](const Tensor& in, int64_t dim) {
        wrap_dim(dim, in.ndim());
        return std::vector<TensorMeta>{{in.sizes(), in.dtype(), {}, in.device()},
                                       {in.sizes(), DType::kInt64, {}, in.device()}};
      })
      .gradient(gradient::of_first(running_gradient))
      .saves("result1");
  ops::KernelBuilder(op, kCPU,
                     [is_max](const KernelContext&, const Tensor& in, int64_t dim, Tensor& values, Tensor& indices) {
                       running_extreme(in, dim, is_max, values, indices);
                     });
}

bool register_all() {
  add_extreme("max", Reducer::kMax);
  add_extreme("min", Reducer::kMin);
  add_running("aten::cummax", true);
  add_running("aten::cummin", false);
  return true;
}
[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace tensord::kernels
