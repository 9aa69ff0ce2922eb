// The backward of layer_norm and group_norm over whole tensors.
#include "kernels/norm/norm_backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/norm/channels.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
template <class T>
Tensor dense(const Tensor& x) {
  return x.to(dtype_of<T>).contiguous();
}
// Writes through a tensor of T when `out` has another dtype.
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

// --- layer_norm

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

// The division of rows into parts does not depend on the threads, so neither do the sums.
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
                                    : row_moments(from, length, eps);
        normalize_row_backward(incoming, from, w_data, moments, to ? to + row * length : nullptr,
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

IMPL("tensord::layer_norm_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& x, const IntList& shape, MaybeTensor weight, double eps,
        const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
       layer_backward({g, x, weight, normalized_length(x, shape), eps}, mask, dx, dweight, dbias);
     });

IMPL("tensord::native_layer_norm_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& x, const IntList& shape, const Tensor& mean,
        const Tensor& rstd, MaybeTensor weight, MaybeTensor, const Mask& mask, Tensor& dx, Tensor& dweight,
        Tensor& dbias) {
       layer_backward({g, x, weight, normalized_length(x, shape), 0, &mean, &rstd}, mask, dx, dweight, dbias);
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
                                  : row_moments(from, length, eps);
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
              backward_row(incoming + c * inner, from + c * inner, slopes, to + row * length + c * inner, inner);
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

void group_norm_backward(const KernelContext&, const Tensor& g, const Tensor& x, int64_t groups, MaybeTensor weight,
                         double eps, const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1],
                inner = x.numel() / std::max<int64_t>(1, batch * channels);
  group_backward({g, x, weight, batch, channels, inner, groups, eps}, mask, dx, dweight, dbias);
}

IMPL("tensord::group_norm_backward", kCPU, group_norm_backward);
IMPL("tensord::native_group_norm_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
        MaybeTensor weight, int64_t n, int64_t c, int64_t inner, int64_t groups, const Mask& mask, Tensor& dx,
        Tensor& dweight, Tensor& dbias) {
       group_backward({g, x, weight, n, c, inner, groups, 0, &mean, &rstd}, mask, dx, dweight, dbias);
     });

}  // namespace
}  // namespace tensord::kernels
