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
      store_relaxed(x + at.x, other[at.other]);
  }
}

// The offset in x of each position.
__global__ void places_kernel(const __grid_constant__ IndexJob job) {
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const IndexOffsets at = index_offsets(job, i);
    pointer<int64_t>(job.other)[i] = at.is_used ? at.x : INT64_MAX;
  }
}

template <class T>
__device__ __forceinline__ T factor_of(const IndexJob& job) {
  return sizeof(T) == 8 && T(1) / T(2) == T(0) ? static_cast<T>(job.integer_factor) : static_cast<T>(job.factor);
}
template <class T>
__global__ void add_kernel(const __grid_constant__ IndexJob job) {
  void* const x = pointer<void>(job.x);
  const void* const other = pointer<void>(job.other);
  const T factor = factor_of<T>(job);
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

// --- in the order of the positions: one thread has all that write to one element of x

// The last write to an element stays.
template <class Word>
__global__ void ordered_move_kernel(const __grid_constant__ IndexJob job) {
  const int64_t* const places = pointer<int64_t>(job.places);
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const bool is_last = i + 1 == job.numel || places[i + 1] != places[i];
    if (!is_last || places[i] == INT64_MAX) continue;
    const int64_t from = index_offsets(job, pointer<int64_t>(job.order)[i]).other;
    pointer<Word>(job.x)[places[i]] = pointer<Word>(job.other)[from];
  }
}

template <class T>
__global__ void ordered_join_kernel(const __grid_constant__ IndexJob job) {
  const int64_t* const places = pointer<int64_t>(job.places);
  const int64_t* const order = pointer<int64_t>(job.order);
  void* const x = pointer<void>(job.x);
  const T factor = factor_of<T>(job);
  const JoinOf<T> join{job.use};
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    const int64_t place = places[i];
    if (place == INT64_MAX || (i > 0 && places[i - 1] == place)) continue;
    T value = load_element<T>(x, job.dtype, place);
    for (int64_t k = i; k < job.numel && places[k] == place; ++k) {
      const T next = load_element<T>(pointer<void>(job.other), job.dtype, index_offsets(job, order[k]).other);
      value = job.use == IndexUse::kAdd ? value + next * factor : join(value, next);
    }
    store_element(x, job.dtype, place, value);
  }
}

template <class Word>
void launch_move(const IndexJob& job, StreamHandle stream) {
  const auto kernel = job.use == IndexUse::kRead ? move_kernel<Word, true>
                      : job.places.at            ? ordered_move_kernel<Word>
                                                 : move_kernel<Word, false>;
  launch(kernel, dim3(blocks_for(job.numel, 128)), dim3(128), 0, stream, job);
}

// --- embedding_bag

struct Bag {
  int64_t begin, end;
};
// Of a wrong offset: nothing.
__device__ __forceinline__ Bag bag_at(const BagJob& job, int64_t bag, bool notes) {
  const int64_t* const offsets = pointer<int64_t>(job.offsets);
  const int64_t begin = offsets[bag], end = bag + 1 < job.offset_count ? offsets[bag + 1] : job.index_count;
  const bool is_first = bag == 0;
  if (is_first && begin != 0) {
    if (notes) note_error(job.errors, KernelError::kBagOffsetNotZero, begin);
  } else if (begin > job.index_count || end > job.index_count) {
    if (notes) note_error(job.errors, KernelError::kBagOffsetTooLarge, job.index_count, begin > end ? begin : end);
  } else if (begin < 0 || end < begin) {
    if (notes) note_error(job.errors, KernelError::kBagOffsetsDecrease, end, begin);
  } else {
    return {begin, end};
  }
  return {0, 0};
}

// The next index of a row that counts, from i on, or the end.
__device__ __forceinline__ int64_t next_in_bag(const BagJob& job, int64_t i, int64_t end, bool notes) {
  const int64_t* const indices = pointer<int64_t>(job.indices);
  for (; i < end; ++i) {
    const bool is_inside = indices[i] >= 0 && indices[i] < job.rows;
    if (is_inside && indices[i] != job.padding) return i;
    if (!is_inside && notes) note_error(job.errors, KernelError::kBagIndexOutOfRange, indices[i]);
  }
  return end;
}

// What a thread of the first column does for all: counts, and the bag of each index.
__device__ void finish_bag(const BagJob& job, int64_t bag, const Bag& range, int64_t count) {
  if (job.counts.at && bag < job.bags) store_element(pointer<void>(job.counts), job.index_dtype, bag, count);
  if (!job.bag_of_index.at) return;
  for (int64_t i = range.begin; i < range.end; ++i)
    store_element(pointer<void>(job.bag_of_index), job.index_dtype, i, bag);
}

// Sums and means in double, as other sums; maxima are rows' elements, of which the first NaN stays only if it comes
// first, as on the processor. A thread for each column of each bag, and of what lies behind a last offset.
__global__ void bags_kernel(const __grid_constant__ BagJob job) {
  const int64_t* const indices = pointer<int64_t>(job.indices);
  const int64_t columns = job.width > 0 ? job.width : 1;
  for (int64_t t = thread_index(); t < job.offset_count * columns; t += thread_count()) {
    const int64_t bag = t / columns, column = t % columns;
    const bool is_first = column == 0;
    const Bag range = bag_at(job, bag, is_first);
    double sum = 0;
    int64_t count = 0, row_of_largest = 0;
    for (int64_t i = next_in_bag(job, range.begin, range.end, is_first); i < range.end;
         i = next_in_bag(job, i + 1, range.end, is_first)) {
      ++count;
      if (job.width == 0) continue;
      const double x =
          load_element<double>(pointer<void>(job.table), job.dtype, indices[i] * job.row_step + column * job.step);
      if (job.mode != 2)
        sum += job.weights.at ? x * load_element<double>(pointer<void>(job.weights), job.dtype, i) : x;
      else if (count == 1 || x > sum)
        sum = x, row_of_largest = indices[i];
    }
    if (is_first) finish_bag(job, bag, range, count);
    if (bag >= job.bags || job.width == 0) continue;
    const double scale = job.mode == 1 && count > 0 ? 1.0 / static_cast<double>(count) : 1.0;
    store_element(pointer<void>(job.out), job.dtype, bag * job.width + column, sum * scale);
    if (job.maxima.at)
      store_element(pointer<void>(job.maxima), job.index_dtype, bag * job.width + column, row_of_largest);
  }
}

struct alignas(16) IndexedPair {
  int64_t at[2];
};

}  // namespace

void index(const IndexJob& job, cuda::StreamHandle stream) {
  const auto run = [&](void (*kernel)(IndexJob)) {
    launch(kernel, dim3(blocks_for(job.numel, 128)), dim3(128), 0, stream, job);
  };
  if (job.use == IndexUse::kPlaces) return run(places_kernel);
  if (job.use >= IndexUse::kAdd) {
    const bool adds = job.use == IndexUse::kAdd;
    const auto run_of = [&]<class T>(T) {
      run(job.places.at ? ordered_join_kernel<T> : adds ? add_kernel<T> : join_kernel<T>);
    };
    if (job.dtype == kF64) return run_of(double());
    if (job.dtype == kF32 || job.dtype == kF16 || job.dtype == kBF16) return run_of(float());
    return run_of(int64_t());
  }
  switch (job.width) {
    case 1: return launch_move<uint8_t>(job, stream);
    case 2: return launch_move<uint16_t>(job, stream);
    case 4: return launch_move<uint32_t>(job, stream);
    case 8: return launch_move<uint64_t>(job, stream);
    default: return launch_move<IndexedPair>(job, stream);
  }
}

void bags(const BagJob& job, cuda::StreamHandle stream) {
  const int64_t threads = job.offset_count * (job.width > 0 ? job.width : 1);
  launch(bags_kernel, dim3(blocks_for(threads, 128)), dim3(128), 0, stream, job);
}

}  // namespace tensord::kernels
