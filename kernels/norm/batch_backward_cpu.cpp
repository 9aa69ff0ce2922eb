// The loops of the backward of batch_norm.
#include <cmath>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/norm/channels.h"
#include "kernels/norm/norm.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

std::vector<double> values_of(const MaybeTensor& tensor) {
  if (!tensor || tensor->numel() == 0) return {};
  const Tensor wide = tensor->to(DType::kFloat64).contiguous();
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

// The values that are known before the sums; none in training without saved statistics.
struct BatchBackward {
  bool training = true;
  double eps = 0;
  std::vector<double> weight, mean, rstd;

  double rstd_of(size_t c, const ChannelSums& sums) const {
    return rstd.empty() ? 1.0 / std::sqrt(sums.squares / sums.count + eps) : rstd[c];
  }
  // The line that gives dx; in evaluation it has neither slope nor shift.
  template <class T>
  ChannelSlopes<T> slopes(size_t c, const ChannelSums& sums) const {
    const double r = rstd_of(c, sums), scale = weight.empty() ? r : r * weight[c];
    if (!training) return {T(0), static_cast<T>(scale), T(0), T(0)};
    return {static_cast<T>(sums.mean), static_cast<T>(scale), static_cast<T>(-scale * r * r * sums.sum_gx / sums.count),
            static_cast<T>(-scale * sums.sum_g / sums.count)};
  }
  template <class T>
  void apply(ChannelSlopes<T> line, const T* g, const T* x, T* dx, int64_t count) const {
    if (training)
      backward_row(g, x, line, dx, count);
    else
      affine_row(g, static_cast<double>(line.scale), 0.0, dx, count);
  }

  template <class T>
  std::vector<ChannelSums> run_planes(const Tensor& x, const Tensor& g, const Tensor& dx) const;
  template <class T>
  std::vector<ChannelSums> run_rows(const Tensor& x, const Tensor& g, const Tensor& dx) const;
};

// Writes a channel's gradient while the channel is still in the cache after it was summed.
template <class T>
std::vector<ChannelSums> BatchBackward::run_planes(const Tensor& x, const Tensor& g, const Tensor& dx) const {
  const ChannelLayout layout(x);
  std::vector<ChannelSums> sums(static_cast<size_t>(layout.channels));
  const T *from = x.data<T>(), *incoming = g.data<T>();
  T* to = dx.defined() ? dx.data<T>() : nullptr;
  parallel_for_cost(layout.channels, 0.5 * static_cast<double>(layout.rows()), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const auto i = static_cast<size_t>(c);
      const int64_t first = c * layout.inner;
      sums[i] = sum_channel(from + first, incoming + first, layout.batch, layout.step(), layout.inner,
                            mean.empty() ? nullptr : &mean[i]);
      if (to == nullptr) continue;
      const ChannelSlopes<T> line = slopes<T>(i, sums[i]);
      for (int64_t n = 0; n < layout.batch; ++n) {
        const int64_t offset = first + n * layout.step();
        apply(line, incoming + offset, from + offset, to + offset, layout.inner);
      }
    }
  });
  return sums;
}

template <class T>
std::vector<ChannelSums> BatchBackward::run_rows(const Tensor& x, const Tensor& g, const Tensor& dx) const {
  const ChannelLayout layout(x);
  const std::vector<ChannelSums> sums = channel_sums(x, g, mean);
  if (!dx.defined()) return sums;
  const auto channels = static_cast<size_t>(layout.channels);
  std::vector<T> lines(4 * channels);
  for (size_t c = 0; c < channels; ++c) {
    const ChannelSlopes<T> line = slopes<T>(c, sums[c]);
    lines[c] = line.center;
    lines[channels + c] = line.scale;
    lines[2 * channels + c] = line.slope;
    lines[3 * channels + c] = line.shift;
  }
  parallel_for_cost(layout.rows(), 0.3 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * layout.channels;
    backward_rows(g.data<T>() + offset, x.data<T>() + offset, lines.data(), dx.data<T>() + offset, end - begin,
                  layout.channels);
  });
  return sums;
}

template <class T>
void run(const BatchBackward& call, const Mask& mask, const Tensor& g, const Tensor& x, Tensor& dx, Tensor& dweight,
         Tensor& dbias) {
  const Tensor from = dense_channels(x), incoming = dense_channels_like(g, from);
  Tensor to;
  if (mask[0]) {
    const bool is_direct = dx.dtype() == dtype_of<T> && dx.strides() == from.strides();
    to = is_direct ? dx : Tensor::empty_strided(from.sizes(), from.strides(), dtype_of<T>);
  }
  const std::vector<ChannelSums> sums =
      ChannelLayout(from).by_rows ? call.run_rows<T>(from, incoming, to) : call.run_planes<T>(from, incoming, to);
  if (mask[0] && !to.is_same(dx)) dx.copy_from(to);
  const Tensor wide = Tensor::empty(Dims{static_cast<int64_t>(sums.size())}, DType::kFloat64);
  if (mask[1]) {
    for (size_t c = 0; c < sums.size(); ++c) wide.data<double>()[c] = sums[c].sum_gx * call.rstd_of(c, sums[c]);
    dweight.copy_from(wide);
  }
  if (mask[2]) {
    for (size_t c = 0; c < sums.size(); ++c) wide.data<double>()[c] = sums[c].sum_g;
    dbias.copy_from(wide);
  }
}

void batch_norm_backward(const KernelContext&, const Tensor& g, const Tensor& x, MaybeTensor weight,
                         MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor save_mean,
                         MaybeTensor save_invstd, bool training, double eps, Mask mask, Tensor& dx, Tensor& dweight,
                         Tensor& dbias) {
  BatchBackward call;
  call.training = training;
  call.eps = eps;
  call.weight = values_of(weight);
  if (training && save_mean && save_invstd) {
    call.mean = values_of(save_mean);
    call.rstd = values_of(save_invstd);
  } else if (!training) {
    call.mean = values_of(running_mean);
    call.rstd = values_of(running_var);
    for (double& v : call.rstd) v = 1.0 / std::sqrt(v + eps);
  }
  if (x.numel() == 0) {
    if (mask[1]) dweight.copy_from(Tensor::scalar(0.0));
    if (mask[2]) dbias.copy_from(Tensor::scalar(0.0));
    return;
  }
  if (x.dtype() == DType::kFloat64)
    run<double>(call, mask, g, x, dx, dweight, dbias);
  else
    run<float>(call, mask, g, x, dx, dweight, dbias);
}

IMPL("tensord::native_batch_norm_backward", kCPU, batch_norm_backward);

}  // namespace
}  // namespace tensord::kernels
