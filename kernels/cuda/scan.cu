// Running sums and products, positions of extremes: a block for each line. Ranges and triangles: a thread for each
// element.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

struct ScanOffsets {
  int64_t in = 0, out = 0, position = 0;
};
__device__ __forceinline__ ScanOffsets scan_offsets(const ScanJob& job, int64_t line) {
  ScanOffsets at;
  for (int d = job.dims - 1; d >= 0; --d) {
    const int64_t index = line % job.sizes[d];
    line /= job.sizes[d];
    at.in += index * job.in_strides[d];
    at.out += index * job.out_strides[d];
    at.position += index * job.position_strides[d];
  }
  return at;
}

// log(exp(a) + exp(b)) without overflow; a NaN stays.
__device__ __forceinline__ double log_sum(double a, double b) {
  if (a != a || b != b) return a != a ? a : b;
  const double high = a > b ? a : b, low = a > b ? b : a;
  const bool is_infinite = high - high != 0;
  return is_infinite ? high : high + ::log1p(::exp(low - high));
}
template <class A>
__device__ __forceinline__ A run_join(LineUse use, A a, A b) {
  if constexpr (IsFloating<A>::value) {
    if (use == LineUse::kLogSum) return log_sum(a, b);
  }
  return use == LineUse::kCumulativeSum ? a + b : a * b;
}
template <class A>
__device__ __forceinline__ A run_identity(LineUse use) {
  if constexpr (IsFloating<A>::value) {
    if (use == LineUse::kLogSum) return -__builtin_huge_val();
  }
  return use == LineUse::kCumulativeSum ? A(0) : A(1);
}

// Scans a line piece by piece: within a warp, across warps, then adds the total of the pieces before. `A` is double or
// int64.
template <class A>
__global__ void scan_kernel(const __grid_constant__ ScanJob job) {
  SHARED(parts, A[kWarp]);
  SHARED(carried, A);
  const void* const in = pointer<void>(job.in);
  void* const out = pointer<void>(job.out);
  const A identity = run_identity<A>(job.use);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t line = blockIdx.x; line < job.lines; line += gridDim.x) {
    const ScanOffsets at = scan_offsets(job, line);
    if (threadIdx.x == 0) carried = identity;
    for (int64_t begin = 0; begin < job.length; begin += blockDim.x) {
      const int64_t i = begin + threadIdx.x;
      A value = i < job.length ? load_element<A>(in, job.in_dtype, at.in + i * job.in_step) : identity;
      for (unsigned delta = 1; delta < kWarp; delta *= 2) {
        const A before = __shfl_up_sync(kAllLanes, value, delta);
        if (lane >= delta) value = run_join(job.use, before, value);
      }
      if (lane == kWarp - 1) parts[warp] = value;
      __syncthreads();
      A before = carried;
      for (unsigned w = 0; w < warp; ++w) before = run_join(job.use, before, parts[w]);
      value = run_join(job.use, before, value);
      if (i < job.length) store_element(out, job.out_dtype, at.out + i * job.out_step, value);
      __syncthreads();
      if (threadIdx.x == blockDim.x - 1) carried = value;
      __syncthreads();
    }
  }
}

template <class T>
struct Best {
  T value;
  int64_t position;
};

// The first of equal extremes; the first NaN wins over all others. A position of -1 means none.
template <class T>
__device__ __forceinline__ bool is_better(bool is_largest, const Best<T>& a, const Best<T>& b) {
  if (b.position < 0) return true;
  if (a.position < 0) return false;
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || a.position < b.position);
  if (a.value != b.value) return is_largest ? a.value > b.value : a.value < b.value;
  return a.position < b.position;
}

template <class T>
__global__ void extreme_kernel(const __grid_constant__ ScanJob job) {
  SHARED(values, T[kWarp]);
  SHARED(places, int64_t[kWarp]);
  const void* const in = pointer<void>(job.in);
  const bool is_largest = job.use == LineUse::kLargest;
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (int64_t line = blockIdx.x; line < job.lines; line += gridDim.x) {
    const ScanOffsets at = scan_offsets(job, line);
    Best<T> best{T(0), -1};
    const auto take = [&](const Best<T>& other) {
      if (!is_better(is_largest, best, other)) best = other;
    };
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x)
      take({load_element<T>(in, job.in_dtype, at.in + i * job.in_step), i});
    for (int bits = 16; bits > 0; bits /= 2)
      take({__shfl_xor_sync(kAllLanes, best.value, bits), __shfl_xor_sync(kAllLanes, best.position, bits)});
    if (lane == 0) values[warp] = best.value, places[warp] = best.position;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned w = 1; w < warps; ++w) take({values[w], places[w]});
      pointer<int64_t>(job.positions)[at.position] = best.position;
      if (job.out.at) store_element(pointer<void>(job.out), job.out_dtype, at.out, best.value);
    }
    __syncthreads();
  }
}

// Of two neighbors, the second later: the best so far. Later equals win, and the last NaN stays.
template <class T>
__device__ __forceinline__ Best<T> running_best(bool is_largest, const Best<T>& a, const Best<T>& b) {
  if (a.position < 0) return b;
  if (b.position < 0) return a;
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  const bool is_better = is_largest ? b.value >= a.value : b.value <= a.value;
  return b_is_nan || (!a_is_nan && is_better) ? b : a;
}

// As scan_kernel, with positions.
template <class T>
__global__ void running_kernel(const __grid_constant__ ScanJob job) {
  SHARED(values, T[kWarp]);
  SHARED(places, int64_t[kWarp]);
  SHARED(carried_value, T);
  SHARED(carried_place, int64_t);
  const void* const in = pointer<void>(job.in);
  const bool is_largest = job.use == LineUse::kRunningLargest;
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t line = blockIdx.x; line < job.lines; line += gridDim.x) {
    const ScanOffsets at = scan_offsets(job, line);
    if (threadIdx.x == 0) carried_value = T(0), carried_place = -1;
    for (int64_t begin = 0; begin < job.length; begin += blockDim.x) {
      const int64_t i = begin + threadIdx.x;
      Best<T> best{T(0), -1};
      if (i < job.length) best = {load_element<T>(in, job.in_dtype, at.in + i * job.in_step), i};
      for (unsigned delta = 1; delta < kWarp; delta *= 2) {
        const Best<T> before{__shfl_up_sync(kAllLanes, best.value, delta),
                             __shfl_up_sync(kAllLanes, best.position, delta)};
        if (lane >= delta) best = running_best(is_largest, before, best);
      }
      if (lane == kWarp - 1) values[warp] = best.value, places[warp] = best.position;
      __syncthreads();
      Best<T> before{carried_value, carried_place};
      for (unsigned w = 0; w < warp; ++w) before = running_best(is_largest, before, {values[w], places[w]});
      best = running_best(is_largest, before, best);
      if (i < job.length) {
        store_element(pointer<void>(job.out), job.out_dtype, at.out + i * job.out_step, best.value);
        pointer<int64_t>(job.positions)[at.position + i * job.position_step] = best.position;
      }
      __syncthreads();
      if (threadIdx.x == blockDim.x - 1) carried_value = best.value, carried_place = best.position;
      __syncthreads();
    }
  }
}

__global__ void fill_kernel(const __grid_constant__ FillJob job) {
  void* const out = pointer<void>(job.out);
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    if (job.use == FillUse::kTriangle) {
      const int64_t column = i % job.columns, row = i / job.columns % job.rows;
      const bool is_kept = job.is_lower ? column - row <= job.diagonal : column - row >= job.diagonal;
      if (!is_kept) store_element(out, job.dtype, i, int64_t{0});
      continue;
    }
    if (job.use == FillUse::kRange) {
      if (job.is_integer)
        store_element(out, job.dtype, i, job.first + job.step * i);
      else
        store_element(out, job.dtype, i, job.start + job.stride * static_cast<double>(i));
      continue;
    }
    // Counts from both ends, so that the last element is exactly the end.
    const bool is_first_half = i < job.numel / 2;
    const int64_t rest = job.numel - i - 1;
    if (job.use == FillUse::kLinear && !job.is_double) {
      const float start = static_cast<float>(job.start), end = static_cast<float>(job.end),
                  step = static_cast<float>(job.stride);
      const float value = job.numel == 1  ? start
                          : is_first_half ? start + step * static_cast<float>(i)
                                          : end - step * static_cast<float>(rest);
      store_element(out, job.dtype, i, value);
      continue;
    }
    const double value = job.numel == 1 && job.use == FillUse::kLinear ? job.start
                         : is_first_half                               ? job.start + job.stride * static_cast<double>(i)
                                         : job.end - job.stride * static_cast<double>(rest);
    if (job.use == FillUse::kLinear)
      store_element(out, job.dtype, i, value);
    else if (job.is_double)
      store_element(out, job.dtype, i, ::pow(job.base, value));
    else
      store_element(out, job.dtype, i, static_cast<float>(::pow(job.base, value)));
  }
}

dim3 threads_for_line(int64_t length) { return dim3(length >= 1024 ? 256 : length > 64 ? 128 : 32); }

}  // namespace

void scan(const ScanJob& job, cuda::StreamHandle stream) {
  const dim3 blocks(blocks_for(job.lines, 1)), threads = threads_for_line(job.length);
  if (job.use <= LineUse::kLogSum)
    return launch(job.loop == kI64 ? scan_kernel<int64_t> : scan_kernel<double>, blocks, threads, 0, stream, job);
  const bool is_running = job.use <= LineUse::kRunningSmallest;
  const auto kernel = job.loop == kI64   ? (is_running ? running_kernel<int64_t> : extreme_kernel<int64_t>)
                      : job.loop == kF64 ? (is_running ? running_kernel<double> : extreme_kernel<double>)
                                         : (is_running ? running_kernel<float> : extreme_kernel<float>);
  launch(kernel, blocks, threads, 0, stream, job);
}

void fill(const FillJob& job, cuda::StreamHandle stream) {
  launch(fill_kernel, dim3(blocks_for(job.numel, 256)), dim3(256), 0, stream, job);
}

}  // namespace tensord::kernels
