// batch_norm, the backward of normalizations, and rows scaled to a norm. Sums are in double.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

constexpr int kThreads = 256;

struct Add {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};
// The sum over the threads t, t + lanes … of a block; each of them gets it. `parts` has one number for each thread, and
// can be used again at once.
__device__ __forceinline__ double lane_sum(double value, double* parts, int lanes) {
  if (lanes == 1) return block_reduce(value, parts, 0.0, Add());
  parts[threadIdx.x] = value;
  __syncthreads();
  double total = 0;
  for (unsigned i = threadIdx.x % static_cast<unsigned>(lanes); i < blockDim.x; i += static_cast<unsigned>(lanes))
    total += parts[i];
  __syncthreads();
  return total;
}

__device__ __forceinline__ double number_of(const ChannelVector& vector, int64_t i, double otherwise) {
  if (!vector.at.at) return otherwise;
  return load_element<double>(pointer<void>(vector.at), vector.dtype, i * vector.step);
}
__device__ __forceinline__ void set_number(const ChannelVector& vector, int64_t i, double value) {
  if (vector.at.at) store_element(pointer<void>(vector.at), vector.dtype, i * vector.step, value);
}

// --- batch_norm

struct ChannelSums {
  double mean = 0, rstd = 1, variance = 0, sum_g = 0, sum_gx = 0;
};

__device__ __forceinline__ void finish_channel(const BatchNormJob& job, int64_t c, const ChannelSums& sums) {
  const double count = static_cast<double>(job.batch * job.inner);
  double* const lines = pointer<double>(job.lines);
  const double scale = number_of(job.weight, c, 1) * sums.rstd;
  const bool is_fixed = job.statistics != NormStatistics::kOfBatch;
  double line[4] = {sums.mean, 0, scale, number_of(job.bias, c, 0)};
  if (job.is_backward) {
    line[1] = scale;
    line[2] =
        job.statistics == NormStatistics::kMeanAndVariance ? 0 : -scale * sums.rstd * sums.rstd * sums.sum_gx / count;
    line[3] = job.statistics == NormStatistics::kMeanAndVariance ? 0 : -scale * sums.sum_g / count;
    set_number(job.dweight, c, sums.sum_gx * sums.rstd);
    set_number(job.dbias, c, sums.sum_g);
  }
  for (int i = 0; i < 4; ++i) lines[i * job.channels + c] = line[i];
  set_number(job.saved_mean, c, sums.mean);
  set_number(job.saved_rstd, c, sums.rstd);
  if (!job.updates || is_fixed) return;
  const double kept = 1 - job.momentum, unbiased = sums.variance * (count / (count - 1));
  if (job.mean.at.at) set_number(job.mean, c, kept * number_of(job.mean, c, 0) + job.momentum * sums.mean);
  if (job.variance.at.at) set_number(job.variance, c, kept * number_of(job.variance, c, 0) + job.momentum * unbiased);
}

template <class T>
__global__ void batch_sums_kernel(const __grid_constant__ BatchNormJob job) {
  SHARED(parts, double[kThreads]);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * job.lanes + threadIdx.x % job.lanes;
  const int64_t count = c < job.channels ? job.batch * job.inner : 0, step = blockDim.x / job.lanes;
  const int64_t first = threadIdx.x / job.lanes;
  const void* const x = pointer<void>(job.x);
  const void* const g = pointer<void>(job.g);
  const auto x_at = [&](int64_t i) {
    const int64_t at = i / job.inner * job.x_strides[0] + c * job.x_strides[1] + i % job.inner * job.x_strides[2];
    return static_cast<double>(load_element<T>(x, job.dtype, at));
  };
  const auto g_at = [&](int64_t i) {
    const int64_t at = i / job.inner * job.g_strides[0] + c * job.g_strides[1] + i % job.inner * job.g_strides[2];
    return static_cast<double>(load_element<T>(g, job.g_dtype, at));
  };
  ChannelSums sums;
  const bool is_of_batch = job.statistics == NormStatistics::kOfBatch;
  if (is_of_batch) {
    double sum = 0;
    for (int64_t i = first; i < count; i += step) sum += x_at(i);
    sums.mean = lane_sum(sum, parts, job.lanes) / static_cast<double>(job.batch * job.inner);
  } else if (c < job.channels) {
    sums.mean = number_of(job.mean, c, 0);
  }
  if (is_of_batch || job.is_backward) {
    double squares = 0, of_g = 0, of_gx = 0;
    for (int64_t i = first; i < count; i += step) {
      const double centered = x_at(i) - sums.mean, incoming = job.is_backward ? g_at(i) : 0;
      squares += centered * centered;
      of_g += incoming;
      of_gx += incoming * centered;
    }
    sums.variance = lane_sum(squares, parts, job.lanes) / static_cast<double>(job.batch * job.inner);
    if (job.is_backward) {
      sums.sum_g = lane_sum(of_g, parts, job.lanes);
      sums.sum_gx = lane_sum(of_gx, parts, job.lanes);
    }
  }
  if (c >= job.channels || first != 0) return;
  if (is_of_batch)
    sums.rstd = 1 / ::sqrt(sums.variance + job.eps);
  else
    sums.rstd = job.statistics == NormStatistics::kMeanAndRstd ? number_of(job.variance, c, 1)
                                                               : 1 / ::sqrt(number_of(job.variance, c, 1) + job.eps);
  finish_channel(job, c, sums);
}

// Walks in the memory order of `out`: channels are contiguous where they are in x.
template <class T>
__global__ void batch_apply_kernel(const __grid_constant__ BatchNormJob job) {
  const double* const lines = pointer<double>(job.lines);
  const int64_t numel = job.batch * job.channels * job.inner;
  for (int64_t i = thread_index(); i < numel; i += thread_count()) {
    const int64_t within = job.lanes > 1 ? i / job.channels : i;
    const int64_t c = job.lanes > 1 ? i % job.channels : i / job.inner % job.channels, at = within % job.inner;
    const int64_t n = job.lanes > 1 ? within / job.inner : i / job.inner / job.channels;
    const auto offset = [&](const int64_t* strides) { return n * strides[0] + c * strides[1] + at * strides[2]; };
    const T x = load_element<T>(pointer<void>(job.x), job.dtype, offset(job.x_strides));
    T y = (x - static_cast<T>(lines[c])) * static_cast<T>(lines[2 * job.channels + c]) +
          static_cast<T>(lines[3 * job.channels + c]);
    if (job.is_backward) {
      const T g = load_element<T>(pointer<void>(job.g), job.g_dtype, offset(job.g_strides));
      y += g * static_cast<T>(lines[job.channels + c]);
    }
    store_element(pointer<void>(job.out), job.out_dtype, offset(job.out_strides), y);
  }
}

template <class T>
void launch_batch_norm(const BatchNormJob& job, StreamHandle stream) {
  const int64_t blocks = (job.channels + job.lanes - 1) / job.lanes;
  const int64_t rows = job.batch * job.inner;
  const unsigned threads = job.lanes > 1 || rows >= 256 ? kThreads : rows > 32 ? 128 : 32;
  launch(batch_sums_kernel<T>, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, stream, job);
  if (!job.out.at) return;
  launch(batch_apply_kernel<T>, dim3(blocks_for(rows * job.channels, 128)), dim3(128), 0, stream, job);
}

// --- layer_norm and group_norm

// The moments of each row, and dx = g weight rstd - rstd (mean(h) + (x - mean) rstd² mean(h (x - mean))) with h = g
// weight.
template <class T>
__global__ void row_backward_kernel(const __grid_constant__ NormBackwardJob job) {
  SHARED(parts, double[kWarp]);
  const void* const weight = pointer<void>(job.weight);
  double* const moments = pointer<double>(job.moments);
  const double length = static_cast<double>(job.length);
  for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) {
    const int64_t first = row * job.length, weights = row % job.groups * (job.length / job.inner);
    const auto x_at = [&](int64_t i) { return double(load_element<T>(pointer<void>(job.x), job.dtype, first + i)); };
    const auto h_at = [&](int64_t i) {
      const double g = double(load_element<T>(pointer<void>(job.g), job.g_dtype, first + i));
      return weight ? g * double(load_element<T>(weight, job.weight_dtype, weights + i / job.inner)) : g;
    };
    const auto sum_of = [&](const auto& element) {
      double sum = 0;
      for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) sum += element(i);
      return block_reduce(sum, parts, 0.0, Add());
    };
    double mean = 0, rstd = 1;
    if (job.mean.at) {
      mean = load_element<double>(pointer<void>(job.mean), job.stats_dtype, row);
      rstd = load_element<double>(pointer<void>(job.rstd), job.stats_dtype, row);
    } else {
      mean = sum_of(x_at) / length;
      rstd = 1 / ::sqrt(sum_of([&](int64_t i) { return (x_at(i) - mean) * (x_at(i) - mean); }) / length + job.eps);
    }
    if (threadIdx.x == 0) moments[2 * row] = mean, moments[2 * row + 1] = rstd;
    if (!job.dx.at) continue;
    const double sum_h = sum_of(h_at), sum_hx = sum_of([&](int64_t i) { return h_at(i) * (x_at(i) - mean); });
    const double slope = -rstd * rstd * rstd * sum_hx / length, shift = -rstd * sum_h / length;
    for (int64_t i = threadIdx.x; i < job.length; i += blockDim.x) {
      const double dx = h_at(i) * rstd + (x_at(i) - mean) * slope + shift;
      store_element(pointer<void>(job.dx), job.dtype, first + i, static_cast<T>(dx));
    }
  }
}

// For each parameter, the sum over the rows that contain it. Where rows have one element of each parameter, 32
// neighboring threads of a block share it.
template <class T>
__global__ void parameter_sums_kernel(const __grid_constant__ NormBackwardJob job) {
  SHARED(parts, double[kThreads]);
  const int lanes = job.inner == 1 ? 32 : 1;
  const int64_t per_row = job.length / job.inner, parameters = per_row * job.groups;
  const int64_t p = static_cast<int64_t>(blockIdx.x) * lanes + threadIdx.x % lanes;
  const int64_t count = p < parameters ? job.rows / job.groups * job.inner : 0, step = blockDim.x / lanes;
  const double* const moments = pointer<double>(job.moments);
  double of_g = 0, of_gx = 0;
  for (int64_t i = threadIdx.x / lanes; i < count; i += step) {
    const int64_t row = i / job.inner * job.groups + p / per_row;
    const int64_t at = row * job.length + p % per_row * job.inner + i % job.inner;
    const double g = double(load_element<T>(pointer<void>(job.g), job.g_dtype, at));
    const double x = double(load_element<T>(pointer<void>(job.x), job.dtype, at));
    of_g += g;
    of_gx += g * ((x - moments[2 * row]) * moments[2 * row + 1]);
  }
  of_g = lane_sum(of_g, parts, lanes);
  of_gx = lane_sum(of_gx, parts, lanes);
  if (p >= parameters || threadIdx.x >= static_cast<unsigned>(lanes)) return;
  set_number(job.dweight, p, of_gx);
  set_number(job.dbias, p, of_g);
}

template <class T>
void launch_norm_backward(const NormBackwardJob& job, StreamHandle stream) {
  const unsigned threads = job.length >= 1024 ? 256 : job.length > 64 ? 128 : 32;
  launch(row_backward_kernel<T>, dim3(blocks_for(job.rows, 1)), dim3(threads), 0, stream, job);
  if (!job.dweight.at.at && !job.dbias.at.at) return;
  const int64_t parameters = job.length / job.inner * job.groups, lanes = job.inner == 1 ? 32 : 1;
  const unsigned blocks = static_cast<unsigned>((parameters + lanes - 1) / lanes);
  launch(parameter_sums_kernel<T>, dim3(blocks), dim3(kThreads), 0, stream, job);
}

// --- rows of a table, scaled to a norm

__global__ void name_rows_kernel(const __grid_constant__ RenormJob job) {
  for (int64_t i = thread_index(); i < job.indices; i += thread_count()) {
    const int64_t row = job.is_int32 ? pointer<int32_t>(job.index)[i] : pointer<int64_t>(job.index)[i];
    if (row < 0 || row >= job.rows)
      note_error(job.errors, KernelError::kRowOutOfRange, row);
    else
      atomicExch(pointer<int>(job.named) + row, 1);
  }
}

struct Larger {
  __device__ __forceinline__ double operator()(double a, double b) const { return a > b ? a : b; }
};
__global__ void renorm_kernel(const __grid_constant__ RenormJob job) {
  SHARED(parts, double[kWarp]);
  void* const table = pointer<void>(job.table);
  const bool is_max = job.power == INFINITY;
  for (int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) {
    if (pointer<int>(job.named)[row] == 0) continue;
    const auto place = [&](int64_t i) { return row * job.row_stride + i * job.column_stride; };
    double norm = 0;
    for (int64_t i = threadIdx.x; i < job.width; i += blockDim.x) {
      const double x = ::fabs(load_element<double>(table, job.dtype, place(i)));
      norm = is_max ? Larger()(norm, x) : norm + (job.power == 2 ? x * x : ::pow(x, job.power));
    }
    norm = is_max ? block_reduce(norm, parts, 0.0, Larger()) : block_reduce(norm, parts, 0.0, Add());
    if (!is_max) norm = job.power == 2 ? ::sqrt(norm) : ::pow(norm, 1 / job.power);
    if (!(norm > job.most)) continue;
    for (int64_t i = threadIdx.x; i < job.width; i += blockDim.x) {
      const double x = load_element<double>(table, job.dtype, place(i));
      store_element(table, job.dtype, place(i), x * (job.most / (norm + 1e-7)));
    }
  }
}

// --- softmax within groups

// The larger one; NaN wins.
__device__ __forceinline__ void keep_larger(double* to, double value) {
  using Bits = unsigned long long;
  Bits seen = load_relaxed(reinterpret_cast<const Bits*>(to));
  for (;;) {
    const double before = __builtin_bit_cast(double, seen);
    if (before != before || value <= before) return;
    const Bits found = atomicCAS(reinterpret_cast<Bits*>(to), seen, __builtin_bit_cast(Bits, value));
    if (found == seen) return;
    seen = found;
  }
}

enum class GroupPass { kTops, kTotals, kResults };
template <GroupPass kPass>
__global__ void group_softmax_kernel(const __grid_constant__ GroupSoftmaxJob job) {
  for (int64_t i = thread_index(); i < job.elements * job.width; i += thread_count()) {
    const int64_t group = pointer<int64_t>(job.group)[i / job.width];
    if (group < 0 || group >= job.groups) {
      note_error(job.errors, KernelError::kElementIndexOutOfRange, group, job.groups);
      continue;
    }
    const double x = load_element<double>(pointer<void>(job.values), job.dtype, i);
    double* const top = pointer<double>(job.tops) + group * job.width + i % job.width;
    double* const total = pointer<double>(job.totals) + group * job.width + i % job.width;
    if constexpr (kPass == GroupPass::kTops) keep_larger(top, x);
    if constexpr (kPass == GroupPass::kTotals) atomicAdd(total, ::exp(x - *top));
    if constexpr (kPass == GroupPass::kResults) {
      const double y = job.is_log ? x - *top - ::log(*total) : ::exp(x - *top) / *total;
      store_element(pointer<void>(job.out), job.dtype, i, y);
    }
  }
}

}  // namespace

void batch_norm(const BatchNormJob& job, cuda::StreamHandle stream) {
  job.loop == kF64 ? launch_batch_norm<double>(job, stream) : launch_batch_norm<float>(job, stream);
}
void norm_backward(const NormBackwardJob& job, cuda::StreamHandle stream) {
  job.loop == kF64 ? launch_norm_backward<double>(job, stream) : launch_norm_backward<float>(job, stream);
}
void renorm_rows(const RenormJob& job, cuda::StreamHandle stream) {
  launch(name_rows_kernel, dim3(blocks_for(job.indices, 128)), dim3(128), 0, stream, job);
  launch(renorm_kernel, dim3(blocks_for(job.rows, 1)), dim3(job.width > 256 ? 256 : 32), 0, stream, job);
}

void group_softmax(const GroupSoftmaxJob& job, cuda::StreamHandle stream) {
  const dim3 grid(blocks_for(job.elements * job.width, 128)), threads(128);
  launch(group_softmax_kernel<GroupPass::kTops>, grid, threads, 0, stream, job);
  launch(group_softmax_kernel<GroupPass::kTotals>, grid, threads, 0, stream, job);
  launch(group_softmax_kernel<GroupPass::kResults>, grid, threads, 0, stream, job);
}

}  // namespace tensord::kernels
