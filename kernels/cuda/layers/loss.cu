// Losses of labeled samples: nll_loss, cross_entropy, margins. Sums are in double.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

struct AddLoss {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};
struct LargerScore {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

__device__ __forceinline__ int64_t label_of(const ClassLossJob& job, int64_t i) {
  return load_element<int64_t>(pointer<void>(job.labels), job.label_dtype, i);
}
// Whether the label is a class. Records an error for one that is neither a class nor ignored.
__device__ __forceinline__ bool is_class(const ClassLossJob& job, int64_t label) {
  if (label == job.ignore_index) return false;
  if (label >= 0 && label < job.classes) return true;
  note_error(job.errors, KernelError::kClassOutOfRange, label);
  return false;
}
__device__ __forceinline__ double class_weight(const ClassLossJob& job, int64_t label) {
  return job.weight.at ? load_element<double>(pointer<void>(job.weight), job.weight_dtype, label) : 1.0;
}
template <class T>
__device__ __forceinline__ T score_of(const ClassLossJob& job, int64_t i, int64_t label) {
  const int64_t at = (i / job.inner * job.classes + label) * job.inner + i % job.inner;
  return load_element<T>(pointer<void>(job.scores), job.dtype, at);
}

template <class T>
__global__ void nll_kernel(const __grid_constant__ ClassLossJob job) {
  for (int64_t i = thread_index(); i < job.samples * job.inner; i += thread_count()) {
    const int64_t y = label_of(job, i);
    const double loss = is_class(job, y) ? -class_weight(job, y) * static_cast<double>(score_of<T>(job, i, y)) : 0.0;
    pointer<double>(job.losses)[i] = loss;
  }
}

// One block for each sample, or one thread where samples are contiguous.
template <class T, bool kByBlock>
__global__ void entropy_kernel(const __grid_constant__ ClassLossJob job) {
  SHARED(parts, double[kWarp]);
  SHARED(tops, T[kWarp]);
  const int64_t count = job.samples * job.inner, begin = kByBlock ? threadIdx.x : 0, step = kByBlock ? blockDim.x : 1;
  const auto summed = [&](double value) {
    if constexpr (kByBlock) return block_reduce(value, parts, 0.0, AddLoss());
    return value;
  };
  T* const moments = pointer<T>(job.moments);
  for (int64_t i = kByBlock ? blockIdx.x : thread_index(); i < count; i += kByBlock ? gridDim.x : thread_count()) {
    T top = T(-INFINITY);  // skips a NaN, which then makes the sum NaN
    for (int64_t c = begin; c < job.classes; c += step) top = LargerScore()(top, score_of<T>(job, i, c));
    if constexpr (kByBlock) top = block_reduce(top, tops, T(-INFINITY), LargerScore());
    double sum = 0;
    for (int64_t c = begin; c < job.classes; c += step) sum += ::exp(static_cast<double>(score_of<T>(job, i, c) - top));
    const double log_sum = static_cast<double>(static_cast<T>(::log(summed(sum)))), largest = static_cast<double>(top);
    const auto nll = [&](int64_t c) { return log_sum - (static_cast<double>(score_of<T>(job, i, c)) - largest); };
    double all = 0;
    if (job.smoothing > 0) {
      for (int64_t c = begin; c < job.classes; c += step) all += nll(c) * class_weight(job, c);
      all = summed(all);
    }
    if (begin != 0) continue;
    const int64_t y = label_of(job, i);
    double loss = 0;
    if (is_class(job, y))
      loss = (1 - job.smoothing) * class_weight(job, y) * nll(y) +
             (job.smoothing > 0 ? job.smoothing / static_cast<double>(job.classes) * all : 0.0);
    pointer<double>(job.losses)[i] = static_cast<double>(static_cast<T>(loss));
    moments[i] = top;
    moments[count + i] = static_cast<T>(log_sum);
  }
}

// One block: the sum of the losses, and that of the weights.
__global__ void class_sums_kernel(const __grid_constant__ ClassLossJob job) {
  SHARED(parts, double[kWarp]);
  double sum = 0, total = 0;
  for (int64_t i = threadIdx.x; i < job.samples * job.inner; i += blockDim.x) {
    sum += pointer<double>(job.losses)[i];
    const int64_t y = label_of(job, i);
    if (y != job.ignore_index && y >= 0 && y < job.classes) total += class_weight(job, y);
  }
  sum = block_reduce(sum, parts, 0.0, AddLoss());
  total = block_reduce(total, parts, 0.0, AddLoss());
  if (threadIdx.x != 0) return;
  if (job.is_reduced) store_element(pointer<void>(job.out), job.out_dtype, 0, job.is_mean ? sum / total : sum);
  store_element(pointer<void>(job.total_weight), job.total_dtype, 0, job.keeps_total ? total : 0.0);
}
__global__ void class_losses_kernel(const __grid_constant__ ClassLossJob job) {
  for (int64_t i = thread_index(); i < job.samples * job.inner; i += thread_count())
    store_element(pointer<void>(job.out), job.out_dtype, i, pointer<double>(job.losses)[i]);
}

// With own = (1 - smoothing) w_y and share = smoothing / classes: (own + share sum(w)) p_c - share w_c - [c = y] own.
template <class T>
__global__ void class_backward_kernel(const __grid_constant__ ClassLossJob job) {
  const int64_t numel = job.samples * job.classes * job.inner, count = job.samples * job.inner;
  const T* const moments = pointer<T>(job.moments);
  const double share = job.smoothing / static_cast<double>(job.classes);
  const double weights = job.weight_sum.at ? *pointer<double>(job.weight_sum) : static_cast<double>(job.classes);
  for (int64_t at = thread_index(); at < numel; at += thread_count()) {
    const int64_t c = at / job.inner % job.classes, i = at / job.inner / job.classes * job.inner + at % job.inner;
    const int64_t y = label_of(job, i);
    double value = 0;
    if (is_class(job, y)) {
      double by = load_element<double>(pointer<void>(job.g), job.g_dtype, job.is_reduced ? 0 : i);
      if (job.is_mean) by /= load_element<double>(pointer<void>(job.total_weight), job.total_dtype, 0);
      const double own = by * (1 - job.smoothing) * class_weight(job, y);
      if (job.is_entropy) {
        const T score = load_element<T>(pointer<void>(job.scores), job.dtype, at);
        const double p = ::exp(static_cast<double>((score - moments[i]) - moments[count + i]));
        value = (own + by * share * weights) * p;
        if (job.smoothing > 0) value -= by * share * class_weight(job, c);
      }
      if (c == y) value -= own;
    }
    store_element(pointer<void>(job.out), job.out_dtype, at, value);
  }
}

template <class T>
void launch_class_loss(const ClassLossJob& job, StreamHandle stream) {
  const int64_t count = job.samples * job.inner;
  const dim3 threads(128), samples(blocks_for(count, 128));
  if (job.is_backward)
    return launch(class_backward_kernel<T>, dim3(blocks_for(count * job.classes, 128)), threads, 0, stream, job);
  if (!job.is_entropy)
    launch(nll_kernel<T>, samples, threads, 0, stream, job);
  else if (job.inner > 1)
    launch(entropy_kernel<T, false>, samples, threads, 0, stream, job);
  else
    launch(entropy_kernel<T, true>, dim3(blocks_for(count, 1)), dim3(job.classes > 256 ? 256 : 32), 0, stream, job);
  if (!job.is_reduced) launch(class_losses_kernel, samples, threads, 0, stream, job);
  launch(class_sums_kernel, dim3(1), dim3(count > 4096 ? 1024 : count > 32 ? 128 : 32), 0, stream, job);
}

// --- margins

__global__ void multi_margin_kernel(const __grid_constant__ MarginJob job) {
  SHARED(parts, double[kWarp]);
  for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) {
    const int64_t y = pointer<int64_t>(job.labels)[row];
    if (y < 0 || y >= job.classes) {
      if (threadIdx.x == 0) note_error(job.errors, KernelError::kTargetOutOfRange, y);
      continue;
    }
    const double* const x = pointer<double>(job.scores) + row * job.classes;
    double by = job.share * (job.weight.at ? pointer<double>(job.weight)[y] : 1.0), sum = 0;
    if (job.is_backward) by *= pointer<double>(job.g)[job.is_reduced ? 0 : row];
    for (int64_t c = threadIdx.x; c < job.classes; c += blockDim.x) {
      const double z = job.margin - x[y] + x[c];
      const bool counts = c != y && z > 0;
      const double value = !counts ? 0 : job.is_backward ? (job.power == 1 ? 1 : 2 * z) : job.power == 1 ? z : z * z;
      sum += value * by;
      if (job.is_backward && c != y) pointer<double>(job.out)[row * job.classes + c] = value * by;
    }
    sum = block_reduce(sum, parts, 0.0, AddLoss());
    if (threadIdx.x == 0)
      pointer<double>(job.out)[job.is_backward ? row * job.classes + y : row] = job.is_backward ? -sum : sum;
  }
}

// One thread for each row, whose labels end before the first negative one.
__global__ void mark_labels_kernel(const __grid_constant__ MarginJob job) {
  for (int64_t row = thread_index(); row < job.rows; row += thread_count()) {
    const int64_t* const labels = pointer<int64_t>(job.labels) + row * job.classes;
    for (int64_t k = 0; k < job.classes; ++k) {
      if (labels[k] < -1 || labels[k] >= job.classes) note_error(job.errors, KernelError::kTargetOutOfRange, labels[k]);
    }
    for (int64_t k = 0; k < job.classes && labels[k] >= 0 && !job.is_backward; ++k) {
      if (labels[k] < job.classes) pointer<double>(job.is_right)[row * job.classes + labels[k]] = 1;
    }
  }
}
__global__ void multilabel_margin_kernel(const __grid_constant__ MarginJob job) {
  SHARED(parts, double[kWarp]);
  for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) {
    const int64_t offset = row * job.classes;
    const int64_t* const labels = pointer<int64_t>(job.labels) + offset;
    const double* const x = pointer<double>(job.scores) + offset;
    const double* const is_right = pointer<double>(job.is_right) + offset;
    const double by = job.share * (job.is_backward ? pointer<double>(job.g)[job.is_reduced ? 0 : row] : 1.0);
    double* const to = pointer<double>(job.out) + (job.is_backward ? offset : row);
    double all = 0;
    for (int64_t k = 0; k < job.classes && labels[k] >= 0; ++k) {
      const int64_t y = labels[k];
      if (y >= job.classes) continue;
      double sum = 0;
      for (int64_t c = threadIdx.x; c < job.classes; c += blockDim.x) {
        const double z = 1 - x[y] + x[c];
        if (is_right[c] != 0 || z <= 0) continue;
        sum += job.is_backward ? by : z;
        if (job.is_backward) to[c] += by;
      }
      sum = block_reduce(sum, parts, 0.0, AddLoss());
      if (job.is_backward && threadIdx.x == 0) to[y] -= sum;
      all += sum;
    }
    if (!job.is_backward && threadIdx.x == 0) *to = all * by;
  }
}

}  // namespace

void class_loss(const ClassLossJob& job, cuda::StreamHandle stream) {
  job.loop == kF64 ? launch_class_loss<double>(job, stream) : launch_class_loss<float>(job, stream);
}
void margin_loss(const MarginJob& job, cuda::StreamHandle stream) {
  const dim3 rows(blocks_for(job.rows, 1)), threads(job.classes > 256 ? 256 : 32);
  if (!job.has_lists) return launch(multi_margin_kernel, rows, threads, 0, stream, job);
  launch(mark_labels_kernel, dim3(blocks_for(job.rows, 128)), dim3(128), 0, stream, job);
  launch(multilabel_margin_kernel, rows, threads, 0, stream, job);
}

}  // namespace tensord::kernels
