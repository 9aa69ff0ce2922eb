// The backward of layer_norm and group_norm. Mean and deviation are computed again where they do not come with
// the call: the row is read anyway, and is in the cache by then.
#include "kernels/norm/norm_backward.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/norm/channels.h"
#include "kernels/norm/norm_gradient.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
template <class T>
Tensor dense(const Tensor& x) {
  return x.to(dtype_of<T>).contiguous();
}
// Writes through a tensor of T where `out` is of another dtype.
template <class T, class Fill>
void fill_as(const Tensor& out, Fill&& fill) {
  if (out.dtype() == dtype_of<T> && out.is_contiguous()) return fill(out.data<T>());
  const Tensor wide = Tensor::empty(out.sizes(), dtype_of<T>);
  fill(wide.data<T>());
  out.copy_from(wide);
}
template <class T>
void store_sums(const std::vector<double>& sums, const Tensor& out) {
  fill_as<T>(out,
             [&](T* to) { std::transform(sums.begin(), sums.end(), to, [](double v) { return static_cast<T>(v); }); });
}

// What is not asked for comes back empty.
std::vector<TensorMeta> infer_backward(const Tensor& g, const Tensor& x, const Dims& parameter, DType dtype,
                                       const Mask& mask) {
  check(g.sizes() == x.sizes(), "the gradient is of size ", g.sizes(), ", the input of ", x.sizes());
  check(mask.size() == 3, "output_mask must have 3 items");
  if (!is_floating(x.dtype())) fail_dtype("norm_backward", x.dtype());
  const Dims none{0};
  return {{mask[0] ? x.sizes() : none, x.dtype(), {}, x.device()},
          {mask[1] ? parameter : none, dtype, {}, x.device()},
          {mask[2] ? parameter : none, dtype, {}, x.device()}};
}

// --- layer_norm

int64_t row_length(const Tensor& x, const IntList& shape) {
  const size_t ndim = x.sizes().size();
  check(!shape.empty() && ndim >= shape.size(), "normalized_shape does not fit the input");
  int64_t length = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    check(x.sizes()[ndim - shape.size() + i] == shape[i], "normalized_shape does not fit the input");
    length *= shape[i];
  }
  return length;
}

struct LayerBackward {
  const Tensor &g, &x;
  const MaybeTensor& weight;
  int64_t length;
  double eps = 0;
  const Tensor* mean = nullptr;
  const Tensor* rstd = nullptr;

  template <class T>
  void run(const Mask& mask, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) const;
};

// Rows are cut into parts that do not depend on the threads, so that neither do the sums.
template <class T>
void LayerBackward::run(const Mask& mask, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) const {
  const auto n = static_cast<size_t>(length);
  const int64_t rows = x.numel() / std::max<int64_t>(1, length);
  const int64_t parts = std::clamp<int64_t>(x.numel() / 32768, 1, 16);
  const Tensor gs = dense<T>(g), xs = dense<T>(x), ws = weight ? dense<T>(*weight) : Tensor(),
               means = mean ? dense<T>(*mean) : Tensor(), rstds = rstd ? dense<T>(*rstd) : Tensor();
  const T *g_data = gs.data<T>(), *x_data = xs.data<T>(), *w_data = weight ? ws.data<T>() : nullptr,
          *mean_data = mean ? means.data<T>() : nullptr, *rstd_data = rstd ? rstds.data<T>() : nullptr;
  std::vector<double> sums(static_cast<size_t>(parts) * 2 * n, 0.0);
  const auto run_rows = [&](T* to) {
    parallel_run(static_cast<int>(parts), [&](int part) {
      constexpr int64_t kFlush = 64;  // rows that are summed in T
      std::vector<T> near(mask[1] || mask[2] ? 2 * n : 0, T(0));
      double* total = sums.data() + static_cast<size_t>(part) * 2 * n;
      const int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
      for (int64_t row = begin; row < end; ++row) {
        const T *from = x_data + row * length, *incoming = g_data + row * length;
        const Moments moments = mean_data != nullptr
                                    ? Moments{static_cast<double>(mean_data[row]), static_cast<double>(rstd_data[row])}
                                    : lane_moments(from, length, eps);
        normalize_lane_backward(incoming, from, w_data, moments, to ? to + row * length : nullptr,
                                mask[1] ? near.data() : nullptr, mask[2] ? near.data() + n : nullptr, length);
        if ((row - begin) % kFlush != kFlush - 1 && row + 1 != end) continue;
        for (size_t i = 0; i < near.size(); ++i) total[i] += static_cast<double>(std::exchange(near[i], T(0)));
      }
    });
  };
  if (mask[0]) {
    fill_as<T>(dx, run_rows);
  } else {
    run_rows(nullptr);
  }
  for (size_t i = 2 * n; i < sums.size(); ++i) sums[i % (2 * n)] += sums[i];
  if (mask[1]) store_sums<T>({sums.begin(), sums.begin() + length}, dweight);
  if (mask[2]) store_sums<T>({sums.begin() + length, sums.begin() + 2 * length}, dbias);
}

void layer_backward(const LayerBackward& call, const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  if (wide_dtype(call.x) == DType::kFloat64)
    call.run<double>(mask, dx, dweight, dbias);
  else
    call.run<float>(mask, dx, dweight, dbias);
}

Dims last_dims(const Tensor& x, size_t count) {
  Dims dims;
  for (size_t d = x.sizes().size() - count; d < x.sizes().size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

MaybeTensor maybe(const Value& value) { return value.is_tensor() ? MaybeTensor(value.to_tensor()) : std::nullopt; }
// A gradient for `input` when there is one.
Value fitted(const Tensor& gradient, const Value& input) {
  return gradient.defined() && input.is_tensor() ? Value(gradient::fit_gradient(gradient, input.to_tensor())) : Value();
}

// `weight` and `mean` are positions of arguments, -1 where there is none; 3 and 4 follow in the schema.
std::vector<Value> layer_backward_gradient(const ops::GradArgs& args, size_t weight, bool has_moments) {
  NormBackward backward;
  backward.g = args.inputs[0].to_tensor();
  backward.x = args.inputs[1].to_tensor();
  backward.weight = maybe(args.inputs[weight]);
  backward.dims = last_dims(backward.x, args.inputs[2].to_list()->items.size());
  if (has_moments) {
    backward.mean = args.inputs[3].to_tensor();
    backward.rstd = args.inputs[4].to_tensor();
  } else {
    backward.eps = args.inputs[4].to_float();
  }
  backward.to_dx = args.grad_outputs[0];
  backward.to_dweight = args.grad_outputs[1];
  backward.to_dbias = args.grad_outputs[2];
  const NormBackwardGradients gradients = differentiate(backward);
  std::vector<Value> out(args.inputs.size());
  out[0] = fitted(gradients.g, args.inputs[0]);
  out[1] = fitted(gradients.x, args.inputs[1]);
  out[weight] = fitted(gradients.weight, args.inputs[weight]);
  return out;
}

OP("tensord::layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor? weight, float eps, "
   "bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .infer([](const Tensor& g, const Tensor& x, IntList shape, MaybeTensor weight, double, Mask mask) {
      row_length(x, shape);
      return infer_backward(g, x, shape, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return layer_backward_gradient(args, 3, false); })
    .saves("grad_out, input, weight");
KERNEL("tensord::layer_norm_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const Tensor& x, IntList shape, MaybeTensor weight, double eps,
          Mask mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
         layer_backward({g, x, weight, row_length(x, shape), eps}, mask, dx, dweight, dbias);
       });

OP("aten::native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
   "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .infer([](const Tensor& g, const Tensor& x, IntList shape, const Tensor& mean, const Tensor& rstd,
              MaybeTensor weight, MaybeTensor, Mask mask) {
      const int64_t length = row_length(x, shape), rows = x.numel() / std::max<int64_t>(1, length);
      check(x.numel() == 0 || (mean.numel() == rows && rstd.numel() == rows), "mean and rstd must have ", rows,
            " elements, got ", mean.numel(), " and ", rstd.numel());
      return infer_backward(g, x, shape, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return layer_backward_gradient(args, 5, true); })
    .saves("grad_out, input, mean, rstd, weight");
KERNEL("aten::native_layer_norm_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const Tensor& x, IntList shape, const Tensor& mean, const Tensor& rstd,
          MaybeTensor weight, MaybeTensor, Mask mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
         layer_backward({g, x, weight, row_length(x, shape), 0, &mean, &rstd}, mask, dx, dweight, dbias);
       });

// --- group_norm

struct GroupBackward {
  const Tensor &g, &x;
  const MaybeTensor& weight;
  int64_t batch, channels, inner, groups;
  double eps = 0;
  const Tensor* mean = nullptr;
  const Tensor* rstd = nullptr;

  template <class T>
  void run(const Mask& mask, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) const;
};

template <class T>
void GroupBackward::run(const Mask& mask, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) const {
  const int64_t per_group = channels / groups, length = per_group * inner;
  const Tensor gs = dense<T>(g), xs = dense<T>(x), ws = weight ? dense<T>(*weight) : Tensor(),
               means = mean ? dense<T>(*mean) : Tensor(), rstds = rstd ? dense<T>(*rstd) : Tensor();
  const T *g_data = gs.data<T>(), *x_data = xs.data<T>(), *w_data = weight ? ws.data<T>() : nullptr,
          *mean_data = mean ? means.data<T>() : nullptr, *rstd_data = rstd ? rstds.data<T>() : nullptr;
  std::vector<double> to_weight(static_cast<size_t>(batch * channels), 0.0), to_bias = to_weight;
  const auto run_groups = [&](T* to) {
    const double n = static_cast<double>(length);
    parallel_for(
        batch * groups, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length)), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const T *from = x_data + row * length, *incoming = g_data + row * length;
            const Moments m = mean_data != nullptr
                                  ? Moments{static_cast<double>(mean_data[row]), static_cast<double>(rstd_data[row])}
                                  : lane_moments(from, length, eps);
            const auto weight_of = [&](int64_t c) {
              return w_data ? static_cast<double>(w_data[row % groups * per_group + c]) : 1.0;
            };
            double sum_h = 0, sum_hx = 0;
            for (int64_t c = 0; c < per_group; ++c) {
              const ChannelSums sums = sum_channel(from + c * inner, incoming + c * inner, 1, inner, inner, &m.mean);
              to_weight[static_cast<size_t>(row * per_group + c)] = sums.sum_gx * m.rstd;
              to_bias[static_cast<size_t>(row * per_group + c)] = sums.sum_g;
              sum_h += weight_of(c) * sums.sum_g;
              sum_hx += weight_of(c) * sums.sum_gx;
            }
            for (int64_t c = 0; to != nullptr && c < per_group; ++c) {
              const ChannelSlopes<T> slopes{static_cast<T>(m.mean), static_cast<T>(m.rstd * weight_of(c)),
                                            static_cast<T>(-m.rstd * m.rstd * m.rstd * sum_hx / n),
                                            static_cast<T>(-m.rstd * sum_h / n)};
              backward_lane(incoming + c * inner, from + c * inner, slopes, to + row * length + c * inner, inner);
            }
          }
        });
  };
  if (mask[0]) {
    fill_as<T>(dx, run_groups);
  } else {
    run_groups(nullptr);
  }
  for (size_t i = static_cast<size_t>(channels); i < to_weight.size(); ++i) {
    to_weight[i % static_cast<size_t>(channels)] += to_weight[i];
    to_bias[i % static_cast<size_t>(channels)] += to_bias[i];
  }
  to_weight.resize(static_cast<size_t>(channels), 0.0);
  to_bias.resize(static_cast<size_t>(channels), 0.0);
  if (mask[1]) store_sums<T>(to_weight, dweight);
  if (mask[2]) store_sums<T>(to_bias, dbias);
}

void group_backward(const GroupBackward& call, const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  if (wide_dtype(call.x) == DType::kFloat64)
    call.run<double>(mask, dx, dweight, dbias);
  else
    call.run<float>(mask, dx, dweight, dbias);
}

// The groups become dimension 1, their channels and what follows 2 and 3.
std::vector<Value> group_backward_gradient(const ops::GradArgs& args, size_t weight, int64_t groups, bool has_moments) {
  const Tensor& x = args.inputs[1].to_tensor();
  const int64_t batch = x.sizes()[0], per_group = x.sizes()[1] / groups;
  const Dims grouped{batch, groups, per_group, x.numel() / std::max<int64_t>(1, batch * x.sizes()[1])},
      parameter{1, groups, per_group, 1}, moments{batch, groups, 1, 1};
  const auto shaped = [](const Tensor& t, const Dims& sizes) {
    return t.defined() ? ops::call("aten::reshape", t, sizes) : t;
  };
  NormBackward backward;
  backward.g = shaped(args.inputs[0].to_tensor(), grouped);
  backward.x = shaped(x, grouped);
  if (args.inputs[weight].is_tensor()) backward.weight = shaped(args.inputs[weight].to_tensor(), parameter);
  backward.dims = Dims{2, 3};
  if (has_moments) {
    backward.mean = shaped(args.inputs[2].to_tensor(), moments);
    backward.rstd = shaped(args.inputs[3].to_tensor(), moments);
  } else {
    backward.eps = args.inputs[4].to_float();
  }
  backward.to_dx = shaped(args.grad_outputs[0], grouped);
  backward.to_dweight = shaped(args.grad_outputs[1], parameter);
  backward.to_dbias = shaped(args.grad_outputs[2], parameter);
  const NormBackwardGradients gradients = differentiate(backward);
  std::vector<Value> out(args.inputs.size());
  out[0] = fitted(shaped(gradients.g, x.sizes()), args.inputs[0]);
  out[1] = fitted(shaped(gradients.x, x.sizes()), args.inputs[1]);
  if (gradients.weight.defined()) {
    const Tensor summed = gradient::fit_gradient(gradients.weight, Tensor::meta(parameter, x.dtype()));
    out[weight] = fitted(shaped(summed, Dims{x.sizes()[1]}), args.inputs[weight]);
  }
  return out;
}

OP("tensord::group_norm_backward(Tensor grad_out, Tensor input, int num_groups, Tensor? weight, float eps, bool[3] "
   "output_mask) -> (Tensor, Tensor, Tensor)")
    .infer([](const Tensor& g, const Tensor& x, int64_t groups, MaybeTensor weight, double, Mask mask) {
      check(x.ndim() >= 2 && groups > 0 && x.sizes()[1] % groups == 0, "the channels cannot be cut into ", groups,
            " groups");
      return infer_backward(g, x, Dims{x.sizes()[1]}, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) {
      return group_backward_gradient(args, 3, args.inputs[2].to_int(), false);
    })
    .saves("grad_out, input, weight");
void group_norm_backward(const KernelContext&, const Tensor& g, const Tensor& x, int64_t groups, MaybeTensor weight,
                         double eps, Mask mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1],
                inner = x.numel() / std::max<int64_t>(1, batch * channels);
  group_backward({g, x, weight, batch, channels, inner, groups, eps}, mask, dx, dweight, dbias);
}
KERNEL("tensord::group_norm_backward", kCPU, group_norm_backward);

OP("aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, "
   "int C, int HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd, MaybeTensor weight, int64_t n,
              int64_t c, int64_t inner, int64_t groups, Mask mask) {
      check(groups > 0 && n >= 0 && c >= 0 && inner >= 0 && c % groups == 0 && x.ndim() >= 2 && x.sizes()[0] == n &&
                x.sizes()[1] == c && x.numel() == n * c * inner,
            "the input is of size ", x.sizes(), ", expected ", n, ", ", c, " and ", inner);
      check(mean.numel() == n * groups && rstd.numel() == n * groups, "mean and rstd must have ", n * groups,
            " elements");
      return infer_backward(g, x, Dims{c}, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return group_backward_gradient(args, 4, args.inputs[8].to_int(), true); })
    .saves("grad_out, input, mean, rstd, weight");
KERNEL("aten::native_group_norm_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
          MaybeTensor weight, int64_t n, int64_t c, int64_t inner, int64_t groups, Mask mask, Tensor& dx,
          Tensor& dweight, Tensor& dbias) {
         group_backward({g, x, weight, n, c, inner, groups, 0, &mean, &rstd}, mask, dx, dweight, dbias);
       });

}  // namespace
}  // namespace tensord::kernels
