// Sorting: entries of keys and positions, in runs that grow by merges. Each thread has one entry and finds its place by
// a binary search in the run that it is merged with; threads share nothing.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

constexpr uint64_t kSign = uint64_t{1} << 63, kNanKey = ~uint64_t{0};

// NaNs are larger than all numbers and equal to each other; so are 0 and -0.
TENSORD_DEVICE_CALL uint64_t key_of(const void* data, int8_t dtype, int64_t i) {
  const bool is_floating = dtype == kF32 || dtype == kF64 || dtype == kF16 || dtype == kBF16;
  if (!is_floating) return static_cast<uint64_t>(load_element<int64_t>(data, dtype, i)) ^ kSign;
  const double value = load_element<double>(data, dtype, i);
  if (value != value) return kNanKey;
  const uint64_t bits = __builtin_bit_cast(uint64_t, value == 0 ? 0.0 : value);
  return bits & kSign ? ~bits : bits | kSign;
}

__device__ __forceinline__ bool is_before(const SortEntry& a, const SortEntry& b) {
  return a.key < b.key || (a.key == b.key && a.position < b.position);
}

// How many of `count` sorted entries come before this one.
__device__ __forceinline__ int64_t count_before(const SortEntry* entries, int64_t count, const SortEntry& one) {
  int64_t begin = 0, end = count;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (is_before(entries[middle], one))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

__device__ __forceinline__ int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The destination of entry i of a line.
__device__ __forceinline__ int64_t place_in_tile(const SortEntry* line, int64_t length, int64_t i) {
  const int64_t begin = i / kSortTile * kSortTile, end = least(begin + kSortTile, length);
  const SortEntry one = line[i];
  int64_t place = begin;
  for (int64_t k = begin; k < end; ++k) place += is_before(line[k], one);
  return place;
}
__device__ __forceinline__ int64_t place_in_merge(const SortEntry* line, int64_t length, int64_t run, int64_t i) {
  const int64_t begin = i / (2 * run) * (2 * run), middle = least(begin + run, length);
  if (i < middle) return i + count_before(line + middle, least(middle + run, length) - middle, line[i]);
  return begin + (i - middle) + count_before(line + begin, run, line[i]);
}

__global__ void sort_kernel(const __grid_constant__ SortJob job) {
  const SortEntry* const from = pointer<SortEntry>(job.from);
  SortEntry* const to = pointer<SortEntry>(job.to);
  for (int64_t e = thread_index(); e < job.lines * job.length; e += thread_count()) {
    const int64_t line = e / job.length * job.length, i = e - line;
    if (job.use == SortUse::kKeys) {
      const uint64_t key = key_of(pointer<void>(job.in), job.dtype, e);
      to[e] = {job.is_descending ? ~key : key, i};
      continue;
    }
    const int64_t place = job.use == SortUse::kTiles ? place_in_tile(from + line, job.length, i)
                                                     : place_in_merge(from + line, job.length, job.run, i);
    to[line + place] = from[e];
  }
}

// The begin of the NaN entries, which come last.
__device__ __forceinline__ int64_t first_nan(const PickJob& job, const SortEntry* line) {
  return job.is_floating ? count_before(line, job.length, {kNanKey, -1}) : job.length;
}

__device__ __forceinline__ bool is_same_value(const PickJob& job, const SortEntry& a, const SortEntry& b) {
  return a.key == b.key && !(job.is_floating && a.key == kNanKey);
}

__device__ __forceinline__ int64_t mode_at(const PickJob& job, const SortEntry* line) {
  int64_t best = 0, most = 0, run = 0;
  for (int64_t i = 0; i < job.length; ++i) {
    ++run;
    if (i + 1 < job.length && is_same_value(job, line[i], line[i + 1])) continue;
    if (run > most) most = run, best = i;
    run = 0;
  }
  return best;
}

__device__ __forceinline__ int64_t picked_at(const PickJob& job, const SortEntry* line, int64_t k) {
  if (job.use == PickUse::kRange) return job.first + k;
  if (job.use == PickUse::kMode) return mode_at(job, line);
  const int64_t numbers = first_nan(job, line);
  if (numbers < job.length && (job.use == PickUse::kMedian || numbers == 0)) return numbers;
  return (numbers - 1) / 2;
}

__device__ __forceinline__ void copy_word(void* to, int64_t t, const void* from, int64_t f, int8_t width) {
  switch (width) {
    case 1: static_cast<uint8_t*>(to)[t] = static_cast<const uint8_t*>(from)[f]; break;
    case 2: static_cast<uint16_t*>(to)[t] = static_cast<const uint16_t*>(from)[f]; break;
    case 4: static_cast<uint32_t*>(to)[t] = static_cast<const uint32_t*>(from)[f]; break;
    default: static_cast<uint64_t*>(to)[t] = static_cast<const uint64_t*>(from)[f]; break;
  }
}

__global__ void pick_kernel(const __grid_constant__ PickJob job) {
  const SortEntry* const entries = pointer<SortEntry>(job.entries);
  for (int64_t e = thread_index(); e < job.lines * job.count; e += thread_count()) {
    const int64_t line = e / job.count * job.length;
    const int64_t position = entries[line + picked_at(job, entries + line, e % job.count)].position;
    if (job.positions.at) pointer<int64_t>(job.positions)[e] = position;
    if (job.values.at) copy_word(pointer<void>(job.values), e, pointer<void>(job.in), line + position, job.width);
  }
}

// One line.
__global__ void group_kernel(const __grid_constant__ PickJob job) {
  const SortEntry* const entries = pointer<SortEntry>(job.entries);
  int64_t* const positions = pointer<int64_t>(job.positions);
  for (int64_t i = thread_index(); i < job.length; i += thread_count()) {
    const bool is_first = i == 0 || !is_same_value(job, entries[i - 1], entries[i]);
    if (job.use == PickUse::kMark) {
      positions[i] = is_first ? 1 : 0;
      continue;
    }
    const int64_t group = pointer<int64_t>(job.groups)[i] - 1;
    pointer<int64_t>(job.members)[entries[i].position] = group;
    if (!is_first) continue;
    positions[group] = entries[i].position;
    pointer<int64_t>(job.starts)[group] = i;
  }
}

// NaN is larger than everything, so a NaN belongs at the end.
template <class T>
__global__ void search_kernel(const __grid_constant__ SearchJob job) {
  const T* const values = pointer<T>(job.values);
  const int64_t* const order = pointer<int64_t>(job.order);
  for (int64_t i = thread_index(); i < job.values_count; i += thread_count()) {
    const int64_t start = job.is_shared ? 0 : i / job.row * job.length;
    const T* const items = pointer<T>(job.sequences) + start;
    const T value = values[i];
    int64_t begin = 0, end = job.length;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      const T item = items[job.order.at ? order[start + middle] : middle];
      if (job.is_right ? !(item > value) : !(item >= value))
        begin = middle + 1;
      else
        end = middle;
    }
    if (job.is_narrow)
      pointer<int32_t>(job.out)[i] = static_cast<int32_t>(begin);
    else
      pointer<int64_t>(job.out)[i] = begin;
  }
}

}  // namespace

void sort(const SortJob& job, cuda::StreamHandle stream) {
  launch(sort_kernel, dim3(blocks_for(job.lines * job.length, 128)), dim3(128), 0, stream, job);
}

void pick(const PickJob& job, cuda::StreamHandle stream) {
  const bool is_of_groups = job.use == PickUse::kMark || job.use == PickUse::kGroups;
  const int64_t threads = is_of_groups ? job.length : job.lines * job.count;
  launch(is_of_groups ? group_kernel : pick_kernel, dim3(blocks_for(threads, 128)), dim3(128), 0, stream, job);
}

void search(const SearchJob& job, cuda::StreamHandle stream) {
  launch(job.is_integer ? search_kernel<int64_t> : search_kernel<double>, dim3(blocks_for(job.values_count, 128)),
         dim3(128), 0, stream, job);
}

}  // namespace tensord::kernels
