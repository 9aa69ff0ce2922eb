// The loops of the backward of pooling.
#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/pool/windows.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Value;
using MaybeInt = std::optional<int64_t>;

constexpr int64_t kChannels = 64;  // in memory order N, spatial…, C: the channels of an image that one part handles

// The input of every backward: tensors of T in one of two memory orders.
template <class T>
struct Operands {
  bool is_last;
  PoolExtents extents;
  Tensor g, dx;

  Operands(const Tensor& grad, const Tensor& x, const Tensor& out, size_t spatial)
      : is_last(is_pool_last(out, spatial)),
        extents(pool_extents(x, grad, spatial)),
        g(ordered(grad, is_last)),
        dx(out.dtype() == dtype_of<T> ? out : Tensor::empty_strided(out.sizes(), out.strides(), dtype_of<T>)) {
    T* to = dx.data<T>();
    std::fill(to, to + dx.numel(), T(0));
  }
  static Tensor ordered(const Tensor& x, bool last) {
    Tensor wide = x.to(dtype_of<T>);
    if (!last) return wide.contiguous();
    if (wide.is_channels_last()) return wide;
    const Tensor out = Tensor::empty_strided(x.sizes(), channels_last_strides(x.sizes()), dtype_of<T>);
    out.copy_from(wide);
    return out;
  }
  void finish(const Tensor& out) const {
    if (!dx.is_same(out)) out.copy_from(dx);
  }
  // Calls fn(image, first channel, channels) in parallel.
  template <class Fn>
  void for_each_block(Fn&& fn) const {
    const int64_t blocks = (extents.channels + kChannels - 1) / kChannels;
    parallel_for_cost(extents.batch * blocks, static_cast<double>(extents.in_plane() * kChannels) * 0.2,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t channel = i % blocks * kChannels;
                          fn(i / blocks, channel, std::min(kChannels, extents.channels - channel));
                        }
                      });
  }
};
template <class Fn>
void with_wide_type(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

// --- max pooling

// Adds g to the pixel that `indices` names, within its channel's plane.
void scatter(const Tensor& g, const Tensor& x, const Tensor& indices, size_t spatial, Tensor& out) {
  if (out.numel() == 0) return;
  if (out.device().kind == kCUDA) return max_pool_backward_cuda({{}, spatial, true}, g, x, indices, out);
  with_wide_type(x.dtype(), [&]<class T>() {
    const Operands<T> operands(g, x, out, spatial);
    const PoolExtents& e = operands.extents;
    const int64_t in_plane = e.in_plane(), out_plane = e.out_plane();
    const Tensor index = Operands<int64_t>::ordered(indices, operands.is_last);
    const int64_t* at = index.data<int64_t>();
    for (int64_t i = 0; i < index.numel(); ++i) {
      check(at[i] >= 0 && at[i] < in_plane, "found an invalid max index: ", at[i], " (output volumes are of size ",
            in_plane, ")");
    }
    const T* from = operands.g.template data<T>();
    T* to = operands.dx.template data<T>();
    if (operands.is_last) {
      operands.for_each_block([&](int64_t image, int64_t channel, int64_t count) {
        for (int64_t p = 0; p < out_plane; ++p) {
          const int64_t offset = (image * out_plane + p) * e.channels + channel;
          for (int64_t c = 0; c < count; ++c)
            to[(image * in_plane + at[offset + c]) * e.channels + channel + c] += from[offset + c];
        }
      });
    } else {
      parallel_for_cost(e.batch * e.channels, static_cast<double>(out_plane), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          for (int64_t p = plane * out_plane; p < (plane + 1) * out_plane; ++p) to[plane * in_plane + at[p]] += from[p];
        }
      });
    }
    operands.finish(out);
  });
}

// The windows and sizes of a max pooling's `result`.
PoolProblem max_problem(const Tensor& x, const Tensor& result, const PoolWindow& w) {
  return {make_pool_windows(x, result, w), w.kernel.size(), true};
}

void max_pool_backward(const KernelContext&, const Tensor& g, const Tensor& x, IntList kernel, IntList stride,
                       IntList padding, IntList dilation, bool ceil_mode, Tensor& out) {
  if (out.numel() == 0) return;
  const size_t spatial = kernel.size();
  const PoolWindow w = make_pool_window("max_pool_backward", spatial, kernel, stride, padding, dilation);
  const PoolProblem pool = max_problem(x, g, w);
  if (out.device().kind == kCUDA) return max_pool_backward_cuda(pool, g, x, Tensor(), out);
  if (!is_plain_max_pool(pool, pool_extents(x, g, spatial))) {
    constexpr const char* kNames[] = {"aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
                                      "aten::max_pool3d_with_indices"};
    const ops::Op& op = ops::get_op(kNames[spatial - 1]);
    std::vector<Value> results;
    ops::run_below(Functionality::kADInplaceOrView, op,
                   ops::bind(op, {x, ops::make_int_list(kernel), ops::make_int_list(stride),
                                  ops::make_int_list(padding), ops::make_int_list(dilation), ceil_mode}),
                   results);
    return scatter(g, x, results[1].to_tensor(), spatial, out);
  }
  with_wide_type(x.dtype(), [&]<class T>() {
    const Operands<T> operands(g, x, out, spatial);
    const Tensor from = Operands<T>::ordered(x, operands.is_last);
    run_max_pool<T>(pool, operands.extents, operands.is_last, from.data<T>(),
                    {nullptr, nullptr, operands.g.template data<T>(), operands.dx.template data<T>()});
    operands.finish(out);
  });
}

IMPL("tensord::max_pool_backward", kCPU, max_pool_backward);
IMPL("tensord::max_pool_scatter", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& indices, int64_t spatial, Tensor& out) {
       scatter(g, x, indices, static_cast<size_t>(spatial), out);
     });

template <size_t kSpatial>
void windowed_backward(const KernelContext&, const Tensor& g, const Tensor& x, const IntList&, const IntList&,
                       const IntList&, const IntList&, bool, const Tensor& indices, Tensor& out) {
  scatter(g, x, indices, kSpatial, out);
}

template <size_t kSpatial>
void adaptive_max_backward(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& indices, Tensor& out) {
  scatter(g, x, indices, kSpatial, out);
}

// --- averages

void average(const PoolProblem& pool, const Tensor& g, const Tensor& x, Tensor& out) {
  if (out.numel() == 0) return;
  if (out.device().kind == kCUDA) return avg_pool_backward_cuda(pool, g, out);
  with_wide_type(x.dtype(), [&]<class T>() {
    const Operands<T> operands(g, x, out, pool.spatial);
    const PoolExtents& e = operands.extents;
    const T* from = operands.g.template data<T>();
    T* to = operands.dx.template data<T>();
    if (g.numel() == 0) {
    } else if (operands.is_last) {
      operands.for_each_block([&](int64_t image, int64_t channel, int64_t count) {
        avg_pool_backward_last(pool, e, from, to, channel, count, image);
      });
    } else {
      parallel_for_cost(e.batch * e.channels, static_cast<double>(e.in_plane()),
                        [&](int64_t begin, int64_t end) { avg_pool_backward_planes(pool, e, from, to, begin, end); });
    }
    operands.finish(out);
  });
}

PoolProblem average_problem(const Tensor& g, const Tensor& x, size_t spatial, const IntList& kernel,
                            const IntList& stride, const IntList& padding, bool count_include_pad,
                            const MaybeInt& divisor) {
  const PoolWindow w = make_pool_window("avg_pool_backward", spatial, kernel, stride, padding, Dims{1});
  PoolProblem pool{make_pool_windows(x, g, w), spatial, false,
                   count_include_pad ? PoolDivisor::kWithPadding : PoolDivisor::kInside};
  if (divisor) {
    pool.divisor = PoolDivisor::kFixed;
    pool.fixed = *divisor;
  }
  return pool;
}

template <size_t kSpatial>
void average_backward(const KernelContext&, const Tensor& g, const Tensor& x, const IntList& kernel,
                      const IntList& stride, const IntList& padding, bool, bool count_include_pad, MaybeInt divisor,
                      Tensor& out) {
  average(average_problem(g, x, kSpatial, kernel, stride, padding, count_include_pad, divisor), g, x, out);
}

template <size_t kSpatial>
void adaptive_average_backward(const KernelContext&, const Tensor& g, const Tensor& x, Tensor& out) {
  average({adaptive_pool_windows(x, g, kSpatial), kSpatial}, g, x, out);
}

IMPL("aten::max_pool2d_with_indices_backward", kCPU, windowed_backward<2>);
IMPL("aten::max_pool3d_with_indices_backward", kCPU, windowed_backward<3>);
IMPL("aten::adaptive_max_pool2d_backward", kCPU, adaptive_max_backward<2>);
IMPL("aten::adaptive_max_pool3d_backward", kCPU, adaptive_max_backward<3>);
IMPL("tensord::avg_pool1d_backward", kCPU, average_backward<1>);
IMPL("aten::avg_pool2d_backward", kCPU, average_backward<2>);
IMPL("aten::avg_pool3d_backward", kCPU, average_backward<3>);
IMPL("tensord::_adaptive_avg_pool1d_backward", kCPU, adaptive_average_backward<1>);
IMPL("aten::_adaptive_avg_pool2d_backward", kCPU, adaptive_average_backward<2>);
IMPL("aten::_adaptive_avg_pool3d_backward", kCPU, adaptive_average_backward<3>);

}  // namespace
}  // namespace tensord::kernels
