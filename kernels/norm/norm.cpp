// layer_norm, group_norm and instance_norm: lanes or groups of a row-major tensor.
#include "kernels/norm/norm.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/ops/samples.h"
#include "kernels/common/lane_call.h"
#include "kernels/common/lanes.h"
#include "kernels/norm/norm_gradient.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::KernelContext;
using ops::TensorMeta;
using MaybeTensor = std::optional<Tensor>;

// A weight or bias as a dense array of T; empty when there is none.
template <class T>
std::vector<T> dense(const MaybeTensor& tensor) {
  if (!tensor) return {};
  const Tensor wide = tensor->to(dtype_of<T>).contiguous();
  return {wide.data<T>(), wide.data<T>() + wide.numel()};
}

int64_t check_layer_norm(const Tensor& in, const IntList& shape, const MaybeTensor& weight, const MaybeTensor& bias) {
  check(!shape.empty(), "layer_norm: Expected normalized_shape to be at least 1-dimensional");
  const auto ndim = static_cast<size_t>(in.ndim());
  bool fits = ndim >= shape.size();
  int64_t length = 1;
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = in.sizes()[ndim - shape.size() + i] == shape[i];
    length *= shape[i];
  }
  check(fits, "layer_norm: Given normalized_shape=", to_string(shape),
        ", expected input with shape ending in it, but got input of size", in.sizes());
  check(!weight || weight->sizes() == shape,
        "layer_norm: Expected weight to be of same shape as normalized_shape, but got ",
        weight ? weight->sizes() : Dims{}, " and ", to_string(shape));
  check(!bias || bias->sizes() == shape, "layer_norm: Expected bias to be of same shape as normalized_shape, but got ",
        bias ? bias->sizes() : Dims{}, " and ", to_string(shape));
  if (!is_floating(in.dtype())) fail_dtype("layer_norm", in.dtype());
  return length;
}

// Normalises rows of `length` elements; writes each row's mean and rstd where asked.
template <class T>
void layer_norm_rows(const Tensor& in, int64_t length, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                     const Tensor& out, T* means, T* rstds) {
  const Tensor source = in.contiguous();
  const std::vector<T> w = dense<T>(weight), b = dense<T>(bias);
  const bool direct = in.dtype() == dtype_of<T>;
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(out.raw_data());
  const int64_t rows = length == 0 ? 0 : in.numel() / length;
  parallel_for(rows, std::max<int64_t>(1, 16384 / length), [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(direct ? 0 : static_cast<size_t>(length));
    for (int64_t row = begin; row < end; ++row) {
      const char* row_in = from + row * length * size;
      char* row_out = to + row * length * size;
      const T* values = reinterpret_cast<const T*>(row_in);
      T* results = reinterpret_cast<T*>(row_out);
      if (!direct) {
        load_tile(in.dtype(), row_in, 1, dtype_of<T>, scratch.data(), length);
        values = results = scratch.data();
      }
      const Moments m = lane_moments(values, length, eps);
      normalize_lane(values, m, weight ? w.data() : nullptr, bias ? b.data() : nullptr, results, length);
      if (!direct) store_tile(dtype_of<T>, results, out.dtype(), row_out, 1, length);
      if (means != nullptr) means[row] = static_cast<T>(m.mean);
      if (rstds != nullptr) rstds[row] = static_cast<T>(m.rstd);
    }
  });
}

void layer_norm(const Tensor& in, int64_t length, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                Tensor& out, Tensor* mean, Tensor* rstd) {
  if (out.numel() == 0) return;
  if (in.dtype() == DType::kFloat64) {
    layer_norm_rows<double>(in, length, weight, bias, eps, out, mean ? mean->data<double>() : nullptr,
                            rstd ? rstd->data<double>() : nullptr);
  } else {
    layer_norm_rows<float>(in, length, weight, bias, eps, out, mean ? mean->data<float>() : nullptr,
                           rstd ? rstd->data<float>() : nullptr);
  }
}

template <class T>
void layer_norm_lane(const LaneCall& call, const void* from, const void* const* extra, void* to, int64_t length) {
  const T* in = static_cast<const T*>(from);
  const Moments m = lane_moments(in, length, call.eps);
  normalize_lane(in, m, static_cast<const T*>(extra[0]), static_cast<const T*>(extra[1]), static_cast<T*>(to), length);
}
LaneCall layer_norm_call(std::span<const ops::Value> v) {
  const Tensor& in = v[0].to_tensor();
  const auto shape = ops::Unbox<IntList>::get(v[1]);
  LaneCall call;
  call.compute = call.result = loop_dtype(in.dtype());
  call.run = call.compute == DType::kFloat64 ? layer_norm_lane<double> : layer_norm_lane<float>;
  call.length = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  call.extra = {2, 3};
  call.eps = v[4].is_int() ? static_cast<double>(v[4].to_int()) : v[4].to_float();
  call.cost_ns = 0.2;
  return call;
}
[[maybe_unused]] const bool layer_norm_is_lane = (add_lane_maker("aten::layer_norm", layer_norm_call), true);

std::vector<ops::Value> layer_norm_gradient(const ops::GradArgs& args) {
  return norm_gradients(args, {0, 2, 3}, "tensord::layer_norm_backward",
                        {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.inputs[2], args.inputs[4]});
}
// With the mean and the deviation that the forward gave.
std::vector<ops::Value> native_layer_norm_gradient(const ops::GradArgs& args) {
  return norm_gradients(args, {0, 2, 3}, "aten::native_layer_norm_backward",
                        {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.outputs[1], args.outputs[2],
                         args.inputs[2], args.inputs[3]});
}

OP("aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
   "bool cudnn_enable=True) -> Tensor")
    .set<ops::KeepsSamples>([](std::span<const ops::Value> v) {
      return v[1].is_list() && v[0].to_tensor().ndim() > static_cast<int64_t>(v[1].to_list()->items.size());
    })
    .infer([](const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double, bool) {
      check_layer_norm(in, shape, weight, bias);
      return TensorMeta{in.sizes(), in.dtype(), {}, in.device()};
    })
    .gradient(layer_norm_gradient)
    .saves("input, weight")
    .reduction();
KERNEL("aten::layer_norm", kCPU,
       [](const KernelContext&, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps, bool,
          Tensor& out) {
         layer_norm(in, check_layer_norm(in, shape, weight, bias), weight, bias, eps, out, nullptr, nullptr);
       });

OP("aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
   "Tensor, Tensor)")
    .infer([](const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double) {
      check_layer_norm(in, shape, weight, bias);
      Dims outer = in.sizes();
      for (size_t i = 0; i < shape.size(); ++i) outer[outer.size() - 1 - i] = 1;
      const DType stats = in.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      return std::vector<TensorMeta>{
          {in.sizes(), in.dtype(), {}, in.device()}, {outer, stats, {}, in.device()}, {outer, stats, {}, in.device()}};
    })
    .gradient(native_layer_norm_gradient)
    .saves("input, weight, result1, result2")
    .reduction();
KERNEL("aten::native_layer_norm", kCPU,
       [](const KernelContext&, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps,
          Tensor& out, Tensor& mean, Tensor& rstd) {
         layer_norm(in, check_layer_norm(in, shape, weight, bias), weight, bias, eps, out, &mean, &rstd);
       });

// Groups: row-major N, C, rest; C / groups channels share mean and variance.
template <class T>
void group_norm_rows(const Tensor& in, int64_t groups, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                     const Tensor& out, T* means, T* rstds) {
  const Tensor source = in.contiguous();
  const std::vector<T> w = dense<T>(weight), b = dense<T>(bias);
  const int64_t channels = in.sizes()[1], per_group = channels / groups,
                inner = in.numel() / (in.sizes()[0] * channels);
  const int64_t length = per_group * inner;
  const bool direct = in.dtype() == dtype_of<T>;
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(out.raw_data());
  parallel_for(in.sizes()[0] * groups, std::max<int64_t>(1, 16384 / length), [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(direct ? 0 : static_cast<size_t>(length));
    for (int64_t row = begin; row < end; ++row) {
      const T* values = reinterpret_cast<const T*>(from + row * length * size);
      T* results = reinterpret_cast<T*>(to + row * length * size);
      if (!direct) {
        load_tile(in.dtype(), values, 1, dtype_of<T>, scratch.data(), length);
        values = results = scratch.data();
      }
      const Moments m = lane_moments(values, length, eps);
      const int64_t first = row % groups * per_group;
      for (int64_t c = 0; c < per_group; ++c) {
        const double scale = m.rstd * (weight ? static_cast<double>(w[first + c]) : 1.0);
        const double shift = (bias ? static_cast<double>(b[first + c]) : 0.0) - m.mean * scale;
        affine_lane(values + c * inner, scale, shift, results + c * inner, inner);
      }
      if (!direct) store_tile(dtype_of<T>, results, out.dtype(), to + row * length * size, 1, length);
      if (means != nullptr) means[row] = static_cast<T>(m.mean);
      if (rstds != nullptr) rstds[row] = static_cast<T>(m.rstd);
    }
  });
}

void group_norm(const Tensor& in, int64_t groups, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                const Tensor& out, Tensor* mean, Tensor* rstd) {
  if (out.numel() == 0) return;
  if (in.dtype() == DType::kFloat64)
    group_norm_rows<double>(in, groups, weight, bias, eps, out, mean ? mean->data<double>() : nullptr,
                            rstd ? rstd->data<double>() : nullptr);
  else
    group_norm_rows<float>(in, groups, weight, bias, eps, out, mean ? mean->data<float>() : nullptr,
                           rstd ? rstd->data<float>() : nullptr);
}

void check_channels(const char* op, const Tensor& in, const MaybeTensor& weight, const MaybeTensor& bias) {
  check(in.ndim() >= 2, op, ": Expected at least 2 dimensions for input tensor but received ", in.ndim());
  if (!is_floating(in.dtype())) fail_dtype(op, in.dtype());
  for (const MaybeTensor* parameter : {&weight, &bias}) {
    check(!*parameter || (*parameter)->numel() == in.sizes()[1], op, ": Expected weight and bias of ", in.sizes()[1],
          " values");
  }
}

void check_groups(const Tensor& in, int64_t groups) {
  check(groups > 0 && in.sizes()[1] % groups == 0,
        "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        in.sizes(), " and num_groups=", groups);
}

OP("aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
   "cudnn_enabled=True) -> Tensor")
    .set<ops::KeepsSamples>(ops::always_keeps_samples)
    .infer([](const Tensor& in, int64_t groups, MaybeTensor weight, MaybeTensor bias, double, bool) {
      check_channels("group_norm", in, weight, bias);
      check_groups(in, groups);
      return TensorMeta{in.sizes(), in.dtype(), {}, in.device()};
    })
    .gradient([](const ops::GradArgs& args) {
      return norm_gradients(args, {0, 2, 3}, "tensord::group_norm_backward",
                            {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.inputs[2], args.inputs[4]});
    })
    .saves("input, weight")
    .reduction();
KERNEL("aten::group_norm", kCPU,
       [](const KernelContext&, const Tensor& in, int64_t groups, MaybeTensor weight, MaybeTensor bias, double eps,
          bool, Tensor& out) { group_norm(in, groups, weight, bias, eps, out, nullptr, nullptr); });

// Mean and rstd are results here, and have gradients: 1 / n and - rstd^2 x^ / n.
std::vector<ops::Value> native_group_norm_gradient(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  std::vector<ops::Value> out =
      norm_gradients(args, {0, 1, 2}, "aten::native_group_norm_backward",
                     {args.grad_outputs[0], v[0], args.outputs[1], args.outputs[2], v[1], v[3], v[4], v[5], v[6]});
  const Tensor &to_mean = args.grad_outputs[1], &to_rstd = args.grad_outputs[2];
  if ((!to_mean.defined() && !to_rstd.defined()) || !args.needs(0)) return out;
  const Tensor& in = v[0].to_tensor();
  const Dims moments{v[3].to_int(), v[6].to_int(), 1}, grouped{v[3].to_int(), v[6].to_int(), -1};
  const auto shaped = [](const Tensor& x, const Dims& sizes) { return Expr(ops::call("aten::reshape", x, sizes)); };
  const double n = static_cast<double>(in.numel()) / static_cast<double>(std::max<int64_t>(1, moments[0] * moments[1]));
  Expr slope = shaped(in, grouped) * 0.0;
  if (to_mean.defined()) slope = slope + shaped(to_mean, moments) / n;
  if (to_rstd.defined()) {
    const Expr rstd = shaped(args.outputs[2].to_tensor(), moments);
    const Expr centered = shaped(in, grouped) - shaped(args.outputs[1].to_tensor(), moments);
    slope = slope - centered * (shaped(to_rstd, moments) * rstd * rstd * rstd / n);
  }
  const Expr more = shaped(slope.tensor(), in.sizes());
  out[0] = gradient::fit_gradient(out[0].is_tensor() ? Expr(out[0]) + more : more, in);
  return out;
}

OP("aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
   "-> (Tensor, Tensor, Tensor)")
    .infer([](const Tensor& in, MaybeTensor weight, MaybeTensor bias, int64_t n, int64_t c, int64_t inner,
              int64_t groups, double) {
      check_channels("native_group_norm", in, weight, bias);
      check(n >= 0 && c >= 0 && inner >= 0 && in.sizes()[0] == n && in.sizes()[1] == c && in.numel() == n * c * inner,
            "the input is of size ", in.sizes(), ", expected ", n, ", ", c, " and ", inner);
      check_groups(in, groups);
      const DType stats = in.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      const TensorMeta moments{Dims{n, groups}, stats, {}, in.device()};
      return std::vector<TensorMeta>{{in.sizes(), in.dtype(), {}, in.device()}, moments, moments};
    })
    .gradient(native_group_norm_gradient)
    .saves("input, weight, result1, result2")
    .reduction();
KERNEL("aten::native_group_norm", kCPU,
       [](const KernelContext&, const Tensor& in, MaybeTensor weight, MaybeTensor bias, int64_t, int64_t, int64_t,
          int64_t groups, double eps, Tensor& out, Tensor& mean,
          Tensor& rstd) { group_norm(in, groups, weight, bias, eps, out, &mean, &rstd); });

}  // namespace
}  // namespace tensord::kernels
