// Reads and writes by tensors of indices.
#include "kernels/cuda/atomics.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

struct IndexOffsets {
  int64_t x = 0, other = 0;
  bool is_used = true;
};

__device__ __forceinline__ int64_t index_at(const IndexJob& job, int k, int64_t offset) {
  return job.is_int32[k] ? pointer<int32_t>(job.indices[k])[offset] : pointer<int64_t>(job.indices[k])[offset];
}

TENSORD_DEVICE_CALL IndexOffsets index_offsets(const IndexJob& job, int64_t position) {
  IndexOffsets at;
  int64_t index_offset[kIndexTensors] = {};
  for (int d = job.dims - 1; d >= 0; --d) {
    const int64_t i = position % job.sizes[d];
    position /= job.sizes[d];
    at.x += i * job.x_strides[d];
    at.other += i * job.other_strides[d];
    for (int k = 0; k < job.tensors; ++k) index_offset[k] += i * job.index_strides[k][d];
  }
  for (int k = 0; k < job.tensors; ++k) {
    int64_t index = index_at(job, k, index_offset[k]);
    if (index == job.skipped) at.is_used = false;
    const int64_t size = job.index_sizes[k], lowest = job.takes_negative ? -size : 0;
    if (index < lowest || index >= size) {
      note_error(job.errors, static_cast<KernelError>(job.error), index, job.index_dims[k], size);
      at.is_used = false;
      continue;
    }
    at.x += (index < 0 ? index + size : index) * job.index_steps[k];
  }
  return at;
}

template <class Word, bool kReads>
__global__ void move_kernel(const __grid_constant__ IndexJob job) {
  Word* const x = pointer<Word>(job.x);
  Word* const other = pointer<Word>(job.other);
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const IndexOffsets at = index_offsets(job, i);
    if (!at.is_used) continue;
    if (kReads)
      other[at.other] = x[at.x];
    else
      x[at.x] = other[at.other];
  }
}

template <class T>
__global__ void add_kernel(const __grid_constant__ IndexJob job) {
  void* const x = pointer<void>(job.x);
  const void* const other = pointer<void>(job.other);
  const T factor =
      sizeof(T) == 8 && T(1) / T(2) == T(0) ? static_cast<T>(job.integer_factor) : static_cast<T>(job.factor);
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const IndexOffsets at = index_offsets(job, i);
    if (at.is_used) atomic_add_element(x, job.dtype, at.x, load_element<T>(other, job.dtype, at.other) * factor);
  }
}

template <class T>
struct JoinOf {
  IndexUse use;
  __device__ __forceinline__ T operator()(T a, T b) const {
    if (use == IndexUse::kMultiply) {
      if constexpr (T(1) / T(2) == T(0))
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      else
        return a * b;
    }
    const bool is_better = use == IndexUse::kLargest ? b > a : b < a;
    return is_better || b != b ? b : a;
  }
};
template <class T>
__global__ void join_kernel(const __grid_constant__ IndexJob job) {
  void* const x = pointer<void>(job.x);
  const void* const other = pointer<void>(job.other);
  const JoinOf<T> join{job.use};
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const IndexOffsets at = index_offsets(job, i);
    if (at.is_used) atomic_join_element(x, job.dtype, at.x, load_element<T>(other, job.dtype, at.other), join);
  }
}

template <class Word>
void launch_move(const IndexJob& job, StreamHandle stream) {
  launch(job.use == IndexUse::kRead ? move_kernel<Word, true> : move_kernel<Word, false>,
         dim3(blocks_for(job.numel, 128)), dim3(128), 0, stream, job);
}

struct alignas(16) IndexedPair {
  int64_t at[2];
};

}  // namespace

void index(const IndexJob& job, cuda::StreamHandle stream) {
  if (job.use >= IndexUse::kAdd) {
    const bool adds = job.use == IndexUse::kAdd,
               is_single = job.dtype == kF32 || job.dtype == kF16 || job.dtype == kBF16;
    const auto kernel = job.dtype == kF64 ? (adds ? add_kernel<double> : join_kernel<double>)
                        : is_single       ? (adds ? add_kernel<float> : join_kernel<float>)
                                          : (adds ? add_kernel<int64_t> : join_kernel<int64_t>);
    return launch(kernel, dim3(blocks_for(job.numel, 128)), dim3(128), 0, stream, job);
  }
  switch (job.width) {
    case 1: return launch_move<uint8_t>(job, stream);
    case 2: return launch_move<uint16_t>(job, stream);
    case 4: return launch_move<uint32_t>(job, stream);
    case 8: return launch_move<uint64_t>(job, stream);
    default: return launch_move<IndexedPair>(job, stream);
  }
}

}  // namespace tensord::kernels
