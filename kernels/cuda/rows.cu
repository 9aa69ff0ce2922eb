// Softmax and normalization: a block for each line or row.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

__device__ __forceinline__ float exp_of(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of(double x) { return ::exp(x); }
__device__ __forceinline__ double log_of(double x) { return ::log(x); }

template <class T>
struct Largest {
  __device__ __forceinline__ T operator()(T a, T b) const { return a != a ? a : b > a || b != b ? b : a; }
};
template <class T>
struct Sum {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};

struct LineOffsets {
  int64_t in = 0, y = 0, out = 0;
};
__device__ __forceinline__ LineOffsets line_offsets(const SoftmaxJob& job, int64_t line) {
  LineOffsets at;
  for (int d = job.dims - 1; d >= 0; --d) {
    const int64_t index = line % job.sizes[d];
    line /= job.sizes[d];
    at.in += index * job.in_strides[d];
    at.y += index * job.y_strides[d];
    at.out += index * job.out_strides[d];
  }
  return at;
}

template <class T>
__global__ void softmax_kernel(const __grid_constant__ SoftmaxJob job) {
  SHARED(parts, T[kWarp]);
  SHARED(sums, double[kWarp]);
  const void* const in = pointer<void>(job.in);
  void* const out = pointer<void>(job.out);
  for (int64_t line = blockIdx.x; line < job.lines; line += gridDim.x) {
    const LineOffsets at = line_offsets(job, line);
    const auto element = [&](int64_t i) { return load_element<T>(in, job.in_dtype, at.in + i * job.in_step); };
    T top = T(-INFINITY);
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) top = Largest<T>()(top, element(i));
    top = block_reduce(top, parts, T(-INFINITY), Largest<T>());
    double sum = 0;
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) sum += exp_of(element(i) - top);
    sum = block_reduce(sum, sums, 0.0, Sum<double>());
    const T scale = static_cast<T>(1 / sum), shift = static_cast<T>(log_of(sum));
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) {
      const T x = element(i) - top;
      store_element(out, job.out_dtype, at.out + i * job.out_step, job.is_log ? x - shift : exp_of(x) * scale);
    }
    __syncthreads();
  }
}

// softmax: y (g - sum(g y)); log_softmax: g - exp(y) sum(g).
template <class T>
__global__ void softmax_backward_kernel(const __grid_constant__ SoftmaxJob job) {
  SHARED(sums, double[kWarp]);
  const void* const g = pointer<void>(job.in);
  const void* const y = pointer<void>(job.y);
  void* const out = pointer<void>(job.out);
  for (int64_t line = blockIdx.x; line < job.lines; line += gridDim.x) {
    const LineOffsets at = line_offsets(job, line);
    const auto gradient = [&](int64_t i) { return load_element<T>(g, job.in_dtype, at.in + i * job.in_step); };
    const auto result = [&](int64_t i) { return load_element<T>(y, job.y_dtype, at.y + i * job.y_step); };
    double sum = 0;
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x)
      sum += job.is_log ? gradient(i) : gradient(i) * result(i);
    const T total = static_cast<T>(block_reduce(sum, sums, 0.0, Sum<double>()));
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) {
      const T value = job.is_log ? gradient(i) - exp_of(result(i)) * total : result(i) * (gradient(i) - total);
      store_element(out, job.out_dtype, at.out + i * job.out_step, value);
    }
    __syncthreads();
  }
}

template <class T>
__global__ void norm_kernel(const __grid_constant__ NormJob job) {
  SHARED(sums, double[kWarp]);
  const void* const in = pointer<void>(job.in);
  void* const out = pointer<void>(job.out);
  const void* const weight = pointer<void>(job.weight);
  const void* const bias = pointer<void>(job.bias);
  for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) {
    const int64_t first = row * job.length;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x)
      sum += static_cast<double>(load_element<T>(in, job.dtype, first + i));
    const double mean = block_reduce(sum, sums, 0.0, Sum<double>()) / static_cast<double>(job.length);
    double squares = 0;
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) {
      const double x = static_cast<double>(load_element<T>(in, job.dtype, first + i)) - mean;
      squares += x * x;
    }
    const double variance = block_reduce(squares, sums, 0.0, Sum<double>()) / static_cast<double>(job.length);
    const double rstd = 1 / ::sqrt(variance + job.eps);
    const int64_t weights = row % job.groups * (job.length / job.inner);
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) {
      const int64_t at = weights + i / job.inner;
      const double x = (static_cast<double>(load_element<T>(in, job.dtype, first + i)) - mean) * rstd;
      const double w = weight ? static_cast<double>(load_element<T>(weight, job.weight_dtype, at)) : 1.0;
      const double b = bias ? static_cast<double>(load_element<T>(bias, job.bias_dtype, at)) : 0.0;
      store_element(out, job.dtype, first + i, static_cast<T>(x * w + b));
    }
    if (threadIdx.x == 0 && job.mean.at) store_element(pointer<void>(job.mean), job.stats_dtype, row, mean);
    if (threadIdx.x == 0 && job.rstd.at) store_element(pointer<void>(job.rstd), job.stats_dtype, row, rstd);
    __syncthreads();
  }
}

dim3 threads_for_row(int64_t length) { return dim3(length >= 1024 ? 256 : length > 64 ? 128 : 32); }

template <class T>
void launch_softmax(const SoftmaxJob& job, StreamHandle stream) {
  launch(job.is_backward ? softmax_backward_kernel<T> : softmax_kernel<T>, dim3(blocks_for(job.lines, 1)),
         threads_for_row(job.length), 0, stream, job);
}

}  // namespace

void softmax(const SoftmaxJob& job, cuda::StreamHandle stream) {
  job.loop == kF64 ? launch_softmax<double>(job, stream) : launch_softmax<float>(job, stream);
}
void norm_rows(const NormJob& job, cuda::StreamHandle stream) {
  launch(job.loop == kF64 ? norm_kernel<double> : norm_kernel<float>, dim3(blocks_for(job.rows, 1)),
         threads_for_row(job.length), 0, stream, job);
}

}  // namespace tensord::kernels
