// Pooling of one to three dimensions and its backward: one thread for each element of the result.
#include "kernels/cuda/atomics.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

struct PoolSpot {
  int64_t n, c, at[3];
};
// Indices in memory order.
__device__ __forceinline__ PoolSpot pool_spot(const PoolJob& job, int64_t i, const int64_t* sizes) {
  PoolSpot spot;
  if (job.is_last) spot.c = i % job.channels, i /= job.channels;
  for (int d = 2; d >= 0; --d) {
    spot.at[d] = i % sizes[d];
    i /= sizes[d];
  }
  if (!job.is_last) spot.c = i % job.channels, i /= job.channels;
  spot.n = i;
  return spot;
}
__device__ __forceinline__ int64_t pool_offset(const int64_t* strides, const PoolSpot& spot, int64_t d, int64_t h,
                                               int64_t w) {
  return spot.n * strides[0] + spot.c * strides[1] + d * strides[2] + h * strides[3] + w * strides[4];
}
__device__ __forceinline__ int64_t pool_offset(const int64_t* strides, const PoolSpot& spot) {
  return pool_offset(strides, spot, spot.at[0], spot.at[1], spot.at[2]);
}

struct Window {
  int64_t begin, end, extent;  // extent: including the padding
};
// The begin of a fractional window, in the type of the samples.
template <class T>
__device__ __forceinline__ int64_t fractional_start(const PoolJob& job, const PoolSpot& spot, int axis, int64_t o) {
  const int64_t in = job.in[axis], out = job.out[axis], kernel = job.kernel[axis];
  if (axis < 3 - job.spatial || o == out - 1) return in - kernel;
  const int dim = axis - (3 - job.spatial), own = job.spatial == 2 ? 1 - dim : dim;  // the width comes first
  const T sample = pointer<T>(job.samples)[(spot.n * job.channels + spot.c) * job.spatial + own];
  const T alpha = static_cast<T>(in - kernel) / static_cast<T>(out - 1);
  return static_cast<int64_t>((static_cast<T>(o) + sample) * alpha) - static_cast<int64_t>(sample * alpha);
}
template <class T>
__device__ __forceinline__ Window window_of(const PoolJob& job, const PoolSpot& spot, int axis, int64_t o) {
  const int64_t in = job.in[axis], out = job.out[axis], step = job.step[axis];
  if (job.places == PoolPlaces::kAdaptive) {
    const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    return {begin, end, end - begin};
  }
  if constexpr (IsFloating<T>::value) {
    if (job.places == PoolPlaces::kFractional) {
      const int64_t begin = fractional_start<T>(job, spot, axis, o);
      return {begin, begin + job.kernel[axis], job.kernel[axis]};
    }
  }
  int64_t begin = o * job.stride[axis] - job.padding[axis];
  const int64_t end = begin + (job.kernel[axis] - 1) * step + 1, last = in + job.padding[axis];
  const int64_t extent = (end < last ? end : last) - begin;
  if (begin < 0) begin += (-begin + step - 1) / step * step;
  return {begin, end < in ? end : in, extent};
}

// Repeats kernels/pool/pool.h, which nvcc does not read.
enum DivisorCode : int8_t { kInside, kWithPadding, kFixed };
__device__ __forceinline__ int64_t divisor_of(const PoolJob& job, const Window* windows) {
  if (job.divisor == kFixed) return job.fixed;
  int64_t product = 1;
  for (int d = 0; d < 3; ++d)
    product *= job.divisor == kWithPadding ? windows[d].extent : windows[d].end - windows[d].begin;
  return product;
}

// The value of a window without elements.
template <class T>
__device__ __forceinline__ T lowest_of(int8_t dtype) {
  if constexpr (IsFloating<T>::value) {
    return T(-INFINITY);
  } else {
    switch (dtype) {
      case kI8: return INT8_MIN;
      case kI16: return INT16_MIN;
      case kI32: return INT32_MIN;
      case kI64: return INT64_MIN;
      default: return 0;
    }
  }
}

template <class T>
struct Largest {
  T value;
  int64_t pixel;
};
template <class T>
__device__ __forceinline__ Largest<T> largest_of(const PoolJob& job, const PoolSpot& spot) {
  Window w[3];
  for (int d = 0; d < 3; ++d) w[d] = window_of<T>(job, spot, d, spot.at[d]);
  Largest<T> best{lowest_of<T>(job.x_dtype), (w[0].begin * job.in[1] + w[1].begin) * job.in[2] + w[2].begin};
  for (int64_t i = w[0].begin; i < w[0].end; i += job.step[0]) {
    for (int64_t j = w[1].begin; j < w[1].end; j += job.step[1]) {
      for (int64_t k = w[2].begin; k < w[2].end; k += job.step[2]) {
        const T x = load_element<T>(pointer<void>(job.x), job.x_dtype, pool_offset(job.x_strides, spot, i, j, k));
        if (x > best.value || x != x) best = {x, (i * job.in[1] + j) * job.in[2] + k};
      }
    }
  }
  return best;
}

template <class T>
__global__ void max_pool_kernel(const __grid_constant__ PoolJob job) {
  const int64_t results = job.batch * job.channels * job.out[0] * job.out[1] * job.out[2];
  for (int64_t i = thread_index(); i < results; i += thread_count()) {
    const PoolSpot spot = pool_spot(job, i, job.out);
    const Largest<T> best = largest_of<T>(job, spot);
    store_element(pointer<void>(job.small), job.small_dtype, pool_offset(job.small_strides, spot), best.value);
    if (job.indices.at) pointer<int64_t>(job.indices)[pool_offset(job.index_strides, spot)] = best.pixel;
  }
}

// Windows may share a pixel, so gradients are added.
template <class T>
__global__ void max_pool_backward_kernel(const __grid_constant__ PoolJob job) {
  const int64_t plane = job.in[0] * job.in[1] * job.in[2], elements = job.out[0] * job.out[1] * job.out[2];
  for_each_of_planes(job.is_ordered, job.is_last, job.batch, job.channels, elements, [&](int64_t i) {
    const PoolSpot spot = pool_spot(job, i, job.out);
    const int64_t pixel = job.indices.at ? pointer<int64_t>(job.indices)[pool_offset(job.index_strides, spot)]
                                         : largest_of<T>(job, spot).pixel;
    if (pixel < 0 || pixel >= plane) {
      note_error(job.errors, KernelError::kMaxIndexOutOfRange, pixel, plane);
      return;
    }
    const T g = load_element<T>(pointer<void>(job.small), job.small_dtype, pool_offset(job.small_strides, spot));
    const int64_t to = pool_offset(job.large_strides, spot, pixel / (job.in[1] * job.in[2]),
                                   pixel / job.in[2] % job.in[1], pixel % job.in[2]);
    atomic_add_element(pointer<void>(job.large), job.large_dtype, to, g);
  });
}

template <class T>
__global__ void avg_pool_kernel(const __grid_constant__ PoolJob job) {
  const int64_t results = job.batch * job.channels * job.out[0] * job.out[1] * job.out[2];
  for (int64_t i = thread_index(); i < results; i += thread_count()) {
    const PoolSpot spot = pool_spot(job, i, job.out);
    Window w[3];
    for (int d = 0; d < 3; ++d) w[d] = window_of<T>(job, spot, d, spot.at[d]);
    T sum = 0;
    int64_t pixels = 0;
    for (int64_t d = w[0].begin; d < w[0].end; ++d) {
      for (int64_t h = w[1].begin; h < w[1].end; ++h) {
        for (int64_t k = w[2].begin; k < w[2].end; ++k, ++pixels)
          sum += load_element<T>(pointer<void>(job.x), job.x_dtype, pool_offset(job.x_strides, spot, d, h, k));
      }
    }
    const T mean = pixels == 0 ? T(0) : sum / static_cast<T>(divisor_of(job, w));
    store_element(pointer<void>(job.small), job.small_dtype, pool_offset(job.small_strides, spot), mean);
  }
}

struct Range {
  int64_t first, last;
};
// The windows that may contain a pixel.
__device__ __forceinline__ Range windows_with(const PoolJob& job, int axis, int64_t pixel) {
  const int64_t in = job.in[axis], out = job.out[axis];
  Range range{pixel * out / in, (pixel + 1) * out / in};
  if (job.places == PoolPlaces::kStrided) {
    const int64_t at = pixel + job.padding[axis], before = at - job.kernel[axis] + 1;
    range = {before <= 0 ? 0 : (before + job.stride[axis] - 1) / job.stride[axis], at / job.stride[axis]};
  }
  if (range.last >= out) range.last = out - 1;
  return range;
}

// One thread for each pixel of the input, which adds the gradients of its windows.
template <class T>
__global__ void avg_pool_backward_kernel(const __grid_constant__ PoolJob job) {
  const int64_t pixels = job.batch * job.channels * job.in[0] * job.in[1] * job.in[2];
  for (int64_t i = thread_index(); i < pixels; i += thread_count()) {
    const PoolSpot spot = pool_spot(job, i, job.in);
    Range ranges[3];
    for (int d = 0; d < 3; ++d) ranges[d] = windows_with(job, d, spot.at[d]);
    T sum = 0;
    Window w[3];
    const auto has_pixel = [&](int axis, int64_t o) {
      w[axis] = window_of<T>(job, spot, axis, o);
      return w[axis].begin <= spot.at[axis] && spot.at[axis] < w[axis].end;
    };
    for (int64_t d = ranges[0].first; d <= ranges[0].last; ++d) {
      if (!has_pixel(0, d)) continue;
      for (int64_t h = ranges[1].first; h <= ranges[1].last; ++h) {
        if (!has_pixel(1, h)) continue;
        for (int64_t k = ranges[2].first; k <= ranges[2].last; ++k) {
          if (!has_pixel(2, k)) continue;
          const int64_t from = pool_offset(job.small_strides, spot, d, h, k);
          const T g = load_element<T>(pointer<void>(job.small), job.small_dtype, from);
          sum += g / static_cast<T>(divisor_of(job, w));
        }
      }
    }
    store_element(pointer<void>(job.large), job.large_dtype, pool_offset(job.large_strides, spot), sum);
  }
}

template <class T>
void launch_pool(const PoolJob& job, StreamHandle stream) {
  constexpr int kThreads = 128;
  const bool is_over_input = job.task == PoolTask::kAverageBackward;
  const int64_t* const sizes = is_over_input ? job.in : job.out;
  const int64_t elements = job.batch * job.channels * sizes[0] * sizes[1] * sizes[2];
  const auto run = [&](auto kernel) {
    launch(kernel, dim3(blocks_for(elements, kThreads)), dim3(kThreads), 0, stream, job);
  };
  switch (job.task) {
    case PoolTask::kMax: return run(max_pool_kernel<T>);
    case PoolTask::kAverage: return run(avg_pool_kernel<T>);
    default: break;
  }
  if constexpr (IsFloating<T>::value) run(is_over_input ? avg_pool_backward_kernel<T> : max_pool_backward_kernel<T>);
}

}  // namespace

void pool(const PoolJob& job, cuda::StreamHandle stream) {
  switch (job.loop) {
    case kF32: return launch_pool<float>(job, stream);
    case kF64: return launch_pool<double>(job, stream);
    default: return launch_pool<int64_t>(job, stream);
  }
}

}  // namespace tensord::kernels
