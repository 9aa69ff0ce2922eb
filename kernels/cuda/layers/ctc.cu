// ctc_loss: one block for each sample walks over the steps, its threads share the states. A target of S labels has 2 S
// + 1 states, blanks at the even ones.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

__device__ __forceinline__ double log_add(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  return high == -INFINITY ? high : high + ::log1p(::exp(low - high));
}

struct Sample {
  const double* log_probs;
  const int64_t* labels;
  int64_t step, steps, length, blank, classes;

  __device__ __forceinline__ Sample(const CtcJob& job, int64_t n)
      : log_probs(pointer<double>(job.log_probs) + n * job.classes),
        labels(pointer<int64_t>(job.labels) + pointer<int64_t>(job.lengths)[3 * n + 2]),
        step(job.count * job.classes),
        steps(pointer<int64_t>(job.lengths)[3 * n]),
        length(pointer<int64_t>(job.lengths)[3 * n + 1]),
        blank(job.blank),
        classes(job.classes) {}
  __device__ __forceinline__ int64_t states() const { return 2 * length + 1; }
  // A label out of range, which is an error, counts as the blank.
  __device__ __forceinline__ int64_t label(int64_t s) const {
    const int64_t y = s % 2 == 0 ? blank : labels[s / 2];
    return y >= 0 && y < classes ? y : blank;
  }
  __device__ __forceinline__ double at(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
  // Whether the blank before state s may be skipped.
  __device__ __forceinline__ bool skips(int64_t s) const { return s >= 2 && label(s) != label(s - 2); }
};

// alpha[t][s]: the likelihood of the first t + 1 steps that end in state s. The loss is minus the logarithm of the
// whole likelihood.
__global__ void ctc_alpha_kernel(const __grid_constant__ CtcJob job) {
  for (int64_t n = blockIdx.x; n < job.count; n += gridDim.x) {
    const Sample sample(job, n);
    for (int64_t s = threadIdx.x; s < sample.length; s += blockDim.x) {
      if (sample.labels[s] < 0 || sample.labels[s] >= job.classes)
        note_error(job.errors, KernelError::kLabelOutOfRange, sample.labels[s], job.classes);
    }
    double* const alpha = pointer<double>(job.alpha) + n * job.steps * job.states;
    const int64_t states = sample.states();
    for (int64_t t = 0; t < job.steps; ++t) {
      double* const now = alpha + t * job.states;
      const double* const before = now - job.states;
      for (int64_t s = threadIdx.x; s < job.states; s += blockDim.x) {
        double sum = -INFINITY;
        if (s < states && t < sample.steps) {
          sum = t == 0 ? (s < 2 ? 0.0 : -INFINITY) : before[s];
          if (t > 0 && s > 0) sum = log_add(sum, before[s - 1]);
          if (t > 0 && sample.skips(s)) sum = log_add(sum, before[s - 2]);
          sum += sample.at(t, s);
        }
        now[s] = sum;
      }
      __syncthreads();
    }
    if (threadIdx.x != 0) continue;
    const double* const last = alpha + (sample.steps - 1) * job.states;
    double loss = sample.length == 0 ? 0.0 : INFINITY;
    if (sample.steps > 0) loss = -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
    pointer<double>(job.losses)[n] = loss;
  }
}

// beta[t][s]: the likelihood of the steps from t on that begin in state s.
__global__ void ctc_beta_kernel(const __grid_constant__ CtcJob job) {
  for (int64_t n = blockIdx.x; n < job.count; n += gridDim.x) {
    const Sample sample(job, n);
    double* const beta = pointer<double>(job.beta) + n * job.steps * job.states;
    const int64_t states = sample.states();
    for (int64_t t = sample.steps - 1; t >= 0; --t) {
      double* const now = beta + t * job.states;
      const double* const after = now + job.states;
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        double sum = -INFINITY;
        if (t == sample.steps - 1) {
          if (s >= states - 2) sum = 0;
        } else {
          sum = after[s];
          if (s + 1 < states) sum = log_add(sum, after[s + 1]);
          if (s + 2 < states && sample.skips(s + 2)) sum = log_add(sum, after[s + 2]);
        }
        now[s] = sum + sample.at(t, s);
      }
      __syncthreads();
    }
  }
}

// exp(log_probs) less the share of the likelihood that goes through each class, times the incoming gradient.
__global__ void ctc_gradient_kernel(const __grid_constant__ CtcJob job) {
  for (int64_t i = thread_index(); i < job.steps * job.count * job.classes; i += thread_count()) {
    const int64_t c = i % job.classes, n = i / job.classes % job.count, t = i / job.classes / job.count;
    const Sample sample(job, n);
    const double loss = pointer<double>(job.losses)[n];
    double value = 0;
    if (t < sample.steps && !(job.zero_infinity && loss == INFINITY)) {
      const int64_t row = (n * job.steps + t) * job.states;
      double through = -INFINITY;
      for (int64_t s = 0; s < sample.states(); ++s) {
        if (sample.label(s) != c) continue;
        through = log_add(through, pointer<double>(job.alpha)[row + s] + pointer<double>(job.beta)[row + s]);
      }
      const double p = pointer<double>(job.log_probs)[i];
      value = (::exp(p) - ::exp(through + loss - p)) * pointer<double>(job.g)[n];
    }
    pointer<double>(job.out)[i] = value;
  }
}

}  // namespace

void ctc_loss(const CtcJob& job, cuda::StreamHandle stream) {
  const dim3 samples(blocks_for(job.count, 1)), threads(job.states > 64 ? 128 : 32);
  if (!job.is_backward) return launch(ctc_alpha_kernel, samples, threads, 0, stream, job);
  launch(ctc_beta_kernel, samples, threads, 0, stream, job);
  launch(ctc_gradient_kernel, dim3(blocks_for(job.steps * job.count * job.classes, 128)), dim3(128), 0, stream, job);
}

}  // namespace tensord::kernels
