// Upsampling and grid_sampler, and their backward.
#include "kernels/cuda/atomics.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

// --- upsampling

struct Pixel {
  int64_t n, c, at[3];
};
__device__ __forceinline__ Pixel pixel_of(const ResampleJob& job, int64_t i) {
  Pixel pixel;
  if (job.is_last) pixel.c = i % job.channels, i /= job.channels;
  for (int d = 2; d >= 0; --d) {
    pixel.at[d] = i % job.out[d];
    i /= job.out[d];
  }
  if (!job.is_last) pixel.c = i % job.channels, i /= job.channels;
  pixel.n = i;
  return pixel;
}
__device__ __forceinline__ int64_t plane_offset(const int64_t* strides, const Pixel& p) {
  return p.n * strides[0] + p.c * strides[1];
}
__device__ __forceinline__ int64_t results_of(const ResampleJob& job) {
  return job.batch * job.channels * job.out[0] * job.out[1] * job.out[2];
}

// Calls fn(offset in the input, weight) for each tap.
template <class T, class Fn>
__device__ __forceinline__ void for_each_tap(const ResampleJob& job, const Pixel& p, const Fn& fn) {
  const int64_t* const index = pointer<int64_t>(job.index);
  const double* const weight = pointer<double>(job.weight);
  const int64_t plane = plane_offset(job.in_strides, p);
  const int64_t d = job.first[0] + p.at[0] * job.taps[0], h = job.first[1] + p.at[1] * job.taps[1],
                w = job.first[2] + p.at[2] * job.taps[2];
  for (int64_t i = d; i < d + job.taps[0]; ++i) {
    for (int64_t j = h; j < h + job.taps[1]; ++j) {
      const int64_t row = plane + index[i] * job.in_strides[2] + index[j] * job.in_strides[3];
      const T by = static_cast<T>(weight[i]) * static_cast<T>(weight[j]);
      for (int64_t k = w; k < w + job.taps[2]; ++k)
        fn(row + index[k] * job.in_strides[4], by * static_cast<T>(weight[k]));
    }
  }
}
__device__ __forceinline__ int64_t out_offset(const ResampleJob& job, const Pixel& p) {
  return plane_offset(job.out_strides, p) + p.at[0] * job.out_strides[2] + p.at[1] * job.out_strides[3] +
         p.at[2] * job.out_strides[4];
}

template <class T>
__global__ void resample_kernel(const __grid_constant__ ResampleJob job) {
  for (int64_t i = thread_index(); i < results_of(job); i += thread_count()) {
    const Pixel pixel = pixel_of(job, i);
    T sum = 0;
    for_each_tap<T>(job, pixel,
                    [&](int64_t at, T by) { sum += by * load_element<T>(pointer<void>(job.in_at), job.in_dtype, at); });
    store_element(pointer<void>(job.out_at), job.out_dtype, out_offset(job, pixel), sum);
  }
}
template <class T>
__global__ void resample_backward_kernel(const __grid_constant__ ResampleJob job) {
  const int64_t elements = job.out[0] * job.out[1] * job.out[2];
  for_each_of_planes(job.is_ordered, job.is_last, job.batch, job.channels, elements, [&](int64_t i) {
    const Pixel pixel = pixel_of(job, i);
    const T g = load_element<T>(pointer<void>(job.out_at), job.out_dtype, out_offset(job, pixel));
    for_each_tap<T>(job, pixel,
                    [&](int64_t at, T by) { atomic_add_element(pointer<void>(job.in_at), job.in_dtype, at, by * g); });
  });
}

struct Wide {
  uint64_t low, high;
};
template <class Word>
__device__ __forceinline__ void copy_word(const ResampleJob& job, int64_t from, int64_t to) {
  pointer<Word>(job.out_at)[to] = pointer<Word>(job.in_at)[from];
}
// A single tap, of any dtype.
__global__ void resample_copy_kernel(const __grid_constant__ ResampleJob job) {
  for (int64_t i = thread_index(); i < results_of(job); i += thread_count()) {
    const Pixel pixel = pixel_of(job, i);
    const int64_t to = out_offset(job, pixel);
    for_each_tap<float>(job, pixel, [&](int64_t from, float) {
      switch (job.width) {
        case 1: return copy_word<uint8_t>(job, from, to);
        case 2: return copy_word<uint16_t>(job, from, to);
        case 4: return copy_word<uint32_t>(job, from, to);
        case 8: return copy_word<uint64_t>(job, from, to);
        default: return copy_word<Wide>(job, from, to);
      }
    });
  }
}

// --- grid_sampler, as in kernels/vision/grid_sampler_cpu.cpp

enum InterpolationCode : int8_t { kBilinear, kNearest, kBicubic };
enum PaddingCode : int8_t { kZeros, kBorder, kReflection };

__device__ __forceinline__ float floor_of(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor_of(double x) { return ::floor(x); }
__device__ __forceinline__ float rest_of(float x, float by) { return ::fmodf(x, by); }
__device__ __forceinline__ double rest_of(double x, double by) { return ::fmod(x, by); }
__device__ __forceinline__ float nearest_of(float x) { return ::rintf(x); }
__device__ __forceinline__ double nearest_of(double x) { return ::rint(x); }

// A position along one dimension in pixels, and its derivative by the grid's number.
template <class T>
struct Position {
  T at, slope;
};
template <class T>
__device__ __forceinline__ Position<T> reflected(Position<T> p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {0, 0};
  const T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  T at = p.at - low, slope = p.slope;
  if (at < 0) at = -at, slope = -slope;
  const T rest = rest_of(at, span);
  if (rest_of(floor_of(at / span), T(2)) == 0) return {rest + low, slope};
  return {span - rest + low, -slope};
}
template <class T>
__device__ __forceinline__ Position<T> padded(Position<T> p, int64_t size, const GridSampleJob& job) {
  if (job.padding == kZeros) return p;
  if (job.padding == kReflection)
    p = job.align_corners ? reflected(p, 0, 2 * (size - 1)) : reflected(p, -1, 2 * size - 1);
  const T last = static_cast<T>(size - 1);
  if (!(p.at > 0)) return {0, 0};
  return p.at >= last ? Position<T>{last, 0} : p;
}

// The pixels that a point reads along one dimension (-1: outside), with their weights and the weights' derivatives.
template <class T>
struct Taps {
  int count;
  int64_t pixel[4];
  T weight[4], slope[4];

  __device__ __forceinline__ void add(T at, int64_t size, T w, T s) {
    pixel[count] = at >= 0 && at <= static_cast<T>(size - 1) ? static_cast<int64_t>(at) : -1;
    weight[count] = w;
    slope[count++] = s;
  }
};
// Keys' cubic convolution with a = -0.75 for the pixel `i` - 1 from the floor of a point at t beyond it.
template <class T>
__device__ __forceinline__ Position<T> cubic(T t, int i) {
  const T a = T(-0.75), d = i == 0 ? t + 1 : i == 1 ? t : i == 2 ? 1 - t : 2 - t, sign = i < 2 ? T(1) : T(-1);
  if (i == 0 || i == 3) return {((a * d - 5 * a) * d + 8 * a) * d - 4 * a, sign * ((3 * a * d - 10 * a) * d + 8 * a)};
  return {((a + 2) * d - (a + 3)) * d * d + 1, sign * ((3 * (a + 2) * d - 2 * (a + 3)) * d)};
}
template <class T>
__device__ __forceinline__ Taps<T> taps_of(const GridSampleJob& job, T x, int64_t size) {
  Taps<T> taps;
  taps.count = 0;
  const T n = static_cast<T>(size);
  const Position<T> raw =
      job.align_corners ? Position<T>{(x + 1) / 2 * (n - 1), (n - 1) / 2} : Position<T>{((x + 1) * n - 1) / 2, n / 2};
  if (job.interpolation == kBicubic) {
    const T low = floor_of(raw.at);
    for (int i = 0; i < 4; ++i) {
      const Position<T> weight = cubic(raw.at - low, i);
      const T at = padded(Position<T>{low + static_cast<T>(i) - 1, 0}, size, job).at;
      taps.add(at, size, weight.at, weight.slope * raw.slope);
    }
    return taps;
  }
  const Position<T> p = padded(raw, size, job);
  if (job.interpolation == kNearest) {
    taps.add(nearest_of(p.at), size, 1, 0);
    return taps;
  }
  const T low = floor_of(p.at), high = p.at - low;
  taps.add(low, size, 1 - high, -p.slope);
  taps.add(low + 1, size, high, p.slope);
  return taps;
}

// A point of the grid: its sample and place, and the offsets of its numbers and of its result.
struct GridPlace {
  int64_t n, in_grid, in_out;
};
template <class T>
__device__ __forceinline__ GridPlace place_of(const GridSampleJob& job, int64_t i, Taps<T> (&taps)[3]) {
  GridPlace place{0, 0, 0};
  for (int d = 2; d >= 0; --d) {
    const int64_t at = i % job.out[d];
    i /= job.out[d];
    place.in_grid += at * job.grid_strides[d + 1];
    place.in_out += at * job.out_strides[d + 2];
  }
  place.n = i;
  place.in_grid += i * job.grid_strides[0];
  place.in_out += i * job.out_strides[0];
  for (int d = 0; d < 3; ++d) {
    if (d < 3 - job.spatial) {
      taps[d].count = 1;
      taps[d].pixel[0] = 0, taps[d].weight[0] = 1, taps[d].slope[0] = 0;
      continue;
    }
    // x, the last dimension, comes first in the grid.
    const T x = pointer<T>(job.grid)[place.in_grid + (2 - d) * job.grid_strides[4]];
    taps[d] = taps_of(job, x, job.in[d]);
  }
  return place;
}
// Calls fn(pixels, each -1 if outside, weight, derivatives by the numbers of each dimension).
template <class T, class Fn>
__device__ __forceinline__ void for_each_point(const Taps<T> (&taps)[3], const Fn& fn) {
  for (int i = 0; i < taps[0].count; ++i) {
    for (int j = 0; j < taps[1].count; ++j) {
      for (int k = 0; k < taps[2].count; ++k) {
        const int64_t pixel[3] = {taps[0].pixel[i], taps[1].pixel[j], taps[2].pixel[k]};
        const T a = taps[0].weight[i], b = taps[1].weight[j], c = taps[2].weight[k];
        const T slope[3] = {taps[0].slope[i] * b * c, taps[1].slope[j] * a * c, taps[2].slope[k] * a * b};
        fn(pixel, a * b * c, slope, pixel[0] >= 0 && pixel[1] >= 0 && pixel[2] >= 0);
      }
    }
  }
}
__device__ __forceinline__ int64_t image_offset(const int64_t* strides, const int64_t (&pixel)[3]) {
  return pixel[0] * strides[2] + pixel[1] * strides[3] + pixel[2] * strides[4];
}

template <class T>
__global__ void grid_sample_kernel(const __grid_constant__ GridSampleJob job) {
  const int64_t points = job.batch * job.out[0] * job.out[1] * job.out[2];
  for (int64_t i = thread_index(); i < points; i += thread_count()) {
    Taps<T> taps[3];
    const GridPlace place = place_of(job, i, taps);
    for (int64_t c = 0; c < job.channels; ++c) {
      const T* const plane = pointer<T>(job.input) + place.n * job.input_strides[0] + c * job.input_strides[1];
      T sum = 0;
      for_each_point<T>(taps, [&](const int64_t(&pixel)[3], T weight, const T(&)[3], bool is_inside) {
        sum += (is_inside ? plane[image_offset(job.input_strides, pixel)] : T(0)) * weight;
      });
      pointer<T>(job.result)[place.in_out + c * job.out_strides[1]] = sum;
    }
  }
}

template <class T>
__global__ void grid_sample_backward_kernel(const __grid_constant__ GridSampleJob job) {
  const int64_t points = job.batch * job.out[0] * job.out[1] * job.out[2];
  for (int64_t i = thread_index(); i < points; i += thread_count()) {
    Taps<T> taps[3];
    const GridPlace place = place_of(job, i, taps);
    T sums[3] = {};
    for (int64_t c = 0; c < job.channels; ++c) {
      const T g = pointer<T>(job.result)[place.in_out + c * job.out_strides[1]];
      const T* const plane = pointer<T>(job.input) + place.n * job.input_strides[0] + c * job.input_strides[1];
      const int64_t to = place.n * job.of_input_strides[0] + c * job.of_input_strides[1];
      for_each_point<T>(taps, [&](const int64_t(&pixel)[3], T weight, const T(&slope)[3], bool is_inside) {
        if (!is_inside) return;
        if (job.of_input.at)
          atomicAdd(pointer<T>(job.of_input) + to + image_offset(job.of_input_strides, pixel), g * weight);
        const T value = plane[image_offset(job.input_strides, pixel)] * g;
        for (int d = 0; d < 3; ++d) sums[d] += value * slope[d];
      });
    }
    if (!job.of_grid.at) continue;
    for (int d = 3 - job.spatial; d < 3; ++d) pointer<T>(job.of_grid)[i * job.spatial + 2 - d] = sums[d];
  }
}

template <class T>
void launch_grid_sample(const GridSampleJob& job, StreamHandle stream) {
  const int64_t points = job.batch * job.out[0] * job.out[1] * job.out[2];
  launch(job.is_backward ? grid_sample_backward_kernel<T> : grid_sample_kernel<T>, dim3(blocks_for(points, 128)),
         dim3(128), 0, stream, job);
}

}  // namespace

void resample(const ResampleJob& job, cuda::StreamHandle stream) {
  const dim3 grid(blocks_for(job.batch * job.channels * job.out[0] * job.out[1] * job.out[2], 128));
  const bool is_double = job.loop == kF64;
  auto* const kernel = job.width != 0 ? resample_copy_kernel
                       : job.is_backward
                           ? (is_double ? resample_backward_kernel<double> : resample_backward_kernel<float>)
                           : (is_double ? resample_kernel<double> : resample_kernel<float>);
  launch(kernel, grid, dim3(128), 0, stream, job);
}
void grid_sample(const GridSampleJob& job, cuda::StreamHandle stream) {
  job.dtype == kF64 ? launch_grid_sample<double>(job, stream) : launch_grid_sample<float>(job, stream);
}

}  // namespace tensord::kernels
