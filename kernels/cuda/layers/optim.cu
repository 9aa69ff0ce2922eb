// One step of an optimizer over some parameters; blockIdx.y selects the parameter.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

__device__ __forceinline__ float root_of(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double root_of(double x) { return ::sqrt(x); }

template <class T>
__device__ __forceinline__ T sgd(const OptimJob& job, const DeviceSpan& span, int64_t i, T p, T g) {
  T* const buffers = pointer<T>(span.state[0]);
  if (buffers) {
    T buffer = g;
    if (!job.is_first) buffer = buffers[i] * static_cast<T>(job.momentum) + g * static_cast<T>(1 - job.dampening);
    buffers[i] = buffer;
    g = job.nesterov ? buffer * static_cast<T>(job.momentum) + g : buffer;
  }
  return p + g * static_cast<T>(-job.lr);
}

template <class T>
__device__ __forceinline__ T adam(const OptimJob& job, const DeviceSpan& span, int64_t i, T p, T g) {
  T *const means = pointer<T>(span.state[0]), *const all = pointer<T>(span.state[1]);
  T* const largest = pointer<T>(span.state[2]);
  if (job.shrink != 1) p *= static_cast<T>(job.shrink);
  const T mean = g * static_cast<T>(1 - job.beta1) + means[i] * static_cast<T>(job.beta1);
  T squares = g * static_cast<T>(1 - job.beta2) * g + all[i] * static_cast<T>(job.beta2);
  means[i] = mean;
  all[i] = squares;
  if (largest) {
    const T before = largest[i];
    squares = squares != squares || squares > before ? squares : before;
    largest[i] = squares;
  }
  const T divisor = root_of(squares) * static_cast<T>(span.root_factor) + static_cast<T>(job.eps);
  return p + mean * static_cast<T>(-span.step_size) / divisor;
}

template <class T>
__device__ __forceinline__ T rmsprop(const OptimJob& job, const DeviceSpan& span, int64_t i, T p, T g) {
  T *const all = pointer<T>(span.state[0]), *const buffers = pointer<T>(span.state[1]);
  T* const means = pointer<T>(span.state[2]);
  const T alpha = static_cast<T>(job.alpha), rest = static_cast<T>(1 - job.alpha);
  T squares = g * rest * g + all[i] * alpha;
  all[i] = squares;
  if (means) {
    const T mean = g * rest + means[i] * alpha;
    means[i] = mean;
    squares -= mean * mean;
  }
  const T divisor = root_of(squares) + static_cast<T>(job.eps);
  if (!buffers) return p + g * static_cast<T>(-job.lr) / divisor;
  buffers[i] = buffers[i] * static_cast<T>(job.momentum) + g / divisor;
  return p + buffers[i] * static_cast<T>(-job.lr);
}

template <class T>
__device__ __forceinline__ T adagrad(const OptimJob& job, const DeviceSpan& span, int64_t i, T p, T g) {
  T* const sums = pointer<T>(span.state[0]);
  const T sum = sums[i] + g * g;
  sums[i] = sum;
  return p + g * static_cast<T>(-span.step_size) / (root_of(sum) + static_cast<T>(job.eps));
}

// As lerp: exact at both ends.
template <class T>
__device__ __forceinline__ T average(const OptimJob& job, T p, T to) {
  const T weight = static_cast<T>(job.number);
  return weight < static_cast<T>(0.5) ? p + weight * (to - p) : to - (to - p) * (static_cast<T>(1) - weight);
}

template <class T>
__global__ void optim_kernel(const __grid_constant__ OptimJob job) {
  const DeviceSpan& span = job.span[blockIdx.y];
  T* const params = pointer<T>(span.param);
  for (int64_t i = thread_index(); i < span.count; i += thread_count()) {
    T p = params[i], g = load_element<T>(pointer<void>(span.grad), span.grad_dtype, i);
    if (job.maximize) g = -g;
    if (job.weight_decay != 0) g += p * static_cast<T>(job.weight_decay);
    switch (job.step) {
      case OptimStep::kSgd: p = sgd(job, span, i, p, g); break;
      case OptimStep::kAdam: p = adam(job, span, i, p, g); break;
      case OptimStep::kAverage: p = average(job, p, g); break;
      case OptimStep::kRmsprop: p = rmsprop(job, span, i, p, g); break;
      default: p = adagrad(job, span, i, p, g); break;
    }
    params[i] = p;
    if (span.rounded.at) store_element(pointer<void>(span.rounded), span.rounded_dtype, i, p);
  }
}

// --- gradients

__device__ __forceinline__ double norm_term(const OptimJob& job, double x) {
  const double size = ::fabs(x);
  switch (job.norm) {
    case GradientNorm::kSquares: return x * x;
    case GradientNorm::kPowers: return ::pow(size, job.number);
    default: return size;
  }
}
struct JoinNorms {
  bool is_largest;
  __device__ __forceinline__ double operator()(double a, double b) const {
    if (!is_largest) return a + b;
    return a != a || a > b ? a : b;
  }
};

// Blocks and threads have fixed elements, so the norm has the same bits each time.
__global__ void norm_kernel(const __grid_constant__ OptimJob job) {
  SHARED(parts, double[32]);
  const DeviceSpan& span = job.span[blockIdx.y];
  const JoinNorms join{job.norm == GradientNorm::kLargest};
  double sum = 0;
  for (int64_t i = thread_index(); i < span.count; i += thread_count())
    sum = join(sum, norm_term(job, load_element<double>(pointer<void>(span.grad), span.grad_dtype, i)));
  sum = block_reduce(sum, parts, 0.0, join);
  if (threadIdx.x == 0) pointer<double>(job.parts)[static_cast<int64_t>(blockIdx.y) * kNormParts + blockIdx.x] = sum;
}

template <class T>
__global__ void change_kernel(const __grid_constant__ OptimJob job) {
  const DeviceSpan& span = job.span[blockIdx.y];
  void* const data = pointer<void>(span.grad);
  const T number = static_cast<T>(job.number);
  for (int64_t i = thread_index(); i < span.count; i += thread_count()) {
    const T x = load_element<T>(data, span.grad_dtype, i);
    const T clamped = x > number ? number : x < -number ? -number : x;
    store_element(data, span.grad_dtype, i, job.step == OptimStep::kScale ? x * number : clamped);
  }
}

}  // namespace

void optim_step(const OptimJob& job, cuda::StreamHandle stream) {
  int64_t longest = 0;
  for (int i = 0; i < job.spans; ++i) longest = job.span[i].count > longest ? job.span[i].count : longest;
  if (longest == 0) return;
  const bool is_norm = job.step == OptimStep::kNorm;
  const dim3 grid(is_norm ? kNormParts : blocks_for(longest, 128, 4096), static_cast<unsigned>(job.spans));
  auto* kernel = job.is_double ? optim_kernel<double> : optim_kernel<float>;
  if (is_norm) kernel = norm_kernel;
  if (job.step > OptimStep::kNorm) kernel = job.is_double ? change_kernel<double> : change_kernel<float>;
  launch(kernel, grid, dim3(128), 0, stream, job);
}

}  // namespace tensord::kernels
