// Copies within a device: any strides, any dtypes.
#include "core/tensor/cuda/copy_job.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

struct CopyOffsets {
  int64_t to, from;
};
__device__ __forceinline__ CopyOffsets copy_offsets(const StridedCopyJob& job, int64_t index) {
  CopyOffsets out{0, 0};
  for (int d = job.ndim - 1; d > 0; --d) {
    const int64_t at = index % job.sizes[d];
    index /= job.sizes[d];
    out.to += at * job.to_strides[d];
    out.from += at * job.from_strides[d];
  }
  out.to += index * job.to_strides[0];
  out.from += index * job.from_strides[0];
  return out;
}

// Copies between tensors of one dtype move words of its width.
template <class Word>
__global__ void copy_words_kernel(const __grid_constant__ StridedCopyJob job) {
  Word* const to = pointer<Word>(job.to);
  const Word* const from = pointer<Word>(job.from);
  for (int64_t index = thread_index(); index < job.numel; index += thread_count()) {
    const CopyOffsets at = copy_offsets(job, index);
    to[at.to] = from[at.from];
  }
}

// Transposes by tiles in shared memory: source and target are dense in different dimensions. blockIdx.z goes over the
// other dimensions. The last dimension is the one in which the target is dense; the source is dense in `across`.
constexpr int kTile = 32, kTileRows = 8;
template <class Word>
__global__ void transpose_kernel(const __grid_constant__ StridedCopyJob job, int across) {
  SHARED(tile, Word[kTile][kTile + 1]);
  const int inner = job.ndim - 1;
  int64_t to = 0, from = 0, rest = blockIdx.z;
  for (int d = inner - 1; d >= 0; --d) {
    if (d == across) continue;
    to += rest % job.sizes[d] * job.to_strides[d];
    from += rest % job.sizes[d] * job.from_strides[d];
    rest /= job.sizes[d];
  }
  const int64_t columns = job.sizes[inner], rows = job.sizes[across];
  const int64_t column0 = int64_t{blockIdx.x} * kTile, row0 = int64_t{blockIdx.y} * kTile;
  const Word* const source = pointer<Word>(job.from) + from;
  Word* const target = pointer<Word>(job.to) + to;
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int64_t column = column0 + i, row = row0 + threadIdx.x;
    if (column < columns && row < rows) tile[i][threadIdx.x] = source[column * job.from_strides[inner] + row];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int64_t row = row0 + i, column = column0 + threadIdx.x;
    if (column < columns && row < rows) target[row * job.to_strides[across] + column] = tile[threadIdx.x][i];
  }
}

// An element of any dtype, in a type that is wide enough to hold it.
struct Wide {
  bool is_integer;
  int64_t integer;
  double real, imaginary;
};

TENSORD_DEVICE_CALL Wide load_wide(const void* data, int8_t dtype, int64_t i) {
  switch (dtype) {
    case kF16:
    case kBF16:
    case kF32:
    case kF64: return {false, 0, load_element<double>(data, dtype, i), 0};
    case kC64: return {false, 0, static_cast<const float*>(data)[2 * i], static_cast<const float*>(data)[2 * i + 1]};
    case kC128: return {false, 0, static_cast<const double*>(data)[2 * i], static_cast<const double*>(data)[2 * i + 1]};
    default: return {true, load_element<int64_t>(data, dtype, i), 0, 0};
  }
}
template <class Part>
__device__ __forceinline__ void store_complex(Part* data, int64_t i, const Wide& value) {
  data[2 * i] = value.is_integer ? static_cast<Part>(value.integer) : static_cast<Part>(value.real);
  data[2 * i + 1] = value.is_integer ? Part(0) : static_cast<Part>(value.imaginary);
}
TENSORD_DEVICE_CALL void store_wide(void* data, int8_t dtype, int64_t i, const Wide& value) {
  if (dtype == kC64) return store_complex(static_cast<float*>(data), i, value);
  if (dtype == kC128) return store_complex(static_cast<double*>(data), i, value);
  if (dtype == kBoolean) {
    static_cast<bool*>(data)[i] = value.is_integer ? value.integer != 0 : value.real != 0 || value.imaginary != 0;
  } else if (value.is_integer) {
    store_element(data, dtype, i, value.integer);
  } else {
    store_element(data, dtype, i, value.real);
  }
}

__global__ void convert_kernel(const __grid_constant__ StridedCopyJob job) {
  void* const to = pointer<void>(job.to);
  const void* const from = pointer<void>(job.from);
  for (int64_t index = thread_index(); index < job.numel; index += thread_count()) {
    const CopyOffsets at = copy_offsets(job, index);
    store_wide(to, job.to_dtype, at.to, load_wide(from, job.from_dtype, at.from));
  }
}

// Between float32 and the 16-bit types, four at a time where both sides are contiguous.
__global__ void convert_floats_kernel(const __grid_constant__ StridedCopyJob job, bool is_dense) {
  void* const to = pointer<void>(job.to);
  const void* const from = pointer<void>(job.from);
  if (!is_dense) {
    for (int64_t index = thread_index(); index < job.numel; index += thread_count()) {
      const CopyOffsets at = copy_offsets(job, index);
      store_element(to, job.to_dtype, at.to, load_element<float>(from, job.from_dtype, at.from));
    }
    return;
  }
  for (int64_t index = thread_index() * 4; index < job.numel; index += thread_count() * 4) {
    if (index + 4 <= job.numel) {
      store_four(to, job.to_dtype, index, load_four<float>(from, job.from_dtype, index));
      continue;
    }
    for (int64_t i = index; i < job.numel; ++i)
      store_element(to, job.to_dtype, i, load_element<float>(from, job.from_dtype, i));
  }
}

int width_of(int8_t dtype) {
  switch (dtype) {
    case kI16:
    case kF16:
    case kBF16: return 2;
    case kI32:
    case kF32: return 4;
    case kI64:
    case kF64:
    case kC64: return 8;
    case kC128: return 16;
    default: return 1;
  }
}

constexpr int kThreads = 256;

// The dimension in which the source is dense, if the target is dense in the last one and a transposition pays off; else
// -1.
int across_of(const StridedCopyJob& job) {
  const int inner = job.ndim - 1;
  if (job.to_strides[inner] != 1 || job.from_strides[inner] == 1 || job.sizes[inner] < 8) return -1;
  int64_t others = 1;
  int across = -1;
  for (int d = 0; d < inner; ++d) {
    if (across < 0 && job.from_strides[d] == 1 && job.sizes[d] >= 8)
      across = d;
    else
      others *= job.sizes[d];
  }
  const bool fits = across >= 0 && others <= 65535 && (job.sizes[across] + kTile - 1) / kTile <= 65535;
  return fits ? across : -1;
}

template <class Word>
void copy_words(const StridedCopyJob& job, StreamHandle stream) {
  const int across = across_of(job);
  if (across < 0) {
    return launch(copy_words_kernel<Word>, dim3(blocks_for(job.numel, kThreads)), dim3(kThreads), 0, stream, job);
  }
  const int64_t columns = job.sizes[job.ndim - 1], rows = job.sizes[across];
  const dim3 grid(static_cast<unsigned>((columns + kTile - 1) / kTile),
                  static_cast<unsigned>((rows + kTile - 1) / kTile),
                  static_cast<unsigned>(job.numel / (columns * rows)));
  launch(transpose_kernel<Word>, grid, dim3(kTile, kTileRows), 0, stream, job, across);
}

struct alignas(16) SixteenBytes {
  int64_t at[2];
};

bool is_short_float(int8_t dtype) { return dtype == kF16 || dtype == kBF16 || dtype == kF32; }
bool is_dense_job(const StridedCopyJob& job) {
  const auto begins_at = [](DeviceAddress address) { return reinterpret_cast<uintptr_t>(address.at) % 16 == 0; };
  return job.ndim == 1 && job.to_strides[0] == 1 && job.from_strides[0] == 1 && begins_at(job.to) &&
         begins_at(job.from);
}

}  // namespace

void strided_copy(const StridedCopyJob& job, StreamHandle stream) {
  const auto is_quantized_word = [](int8_t dtype) { return dtype >= 12 && dtype <= 14; };
  if (job.to_dtype == job.from_dtype) {
    switch (is_quantized_word(job.to_dtype) ? (job.to_dtype == 14 ? 4 : 1) : width_of(job.to_dtype)) {
      case 1: return copy_words<uint8_t>(job, stream);
      case 2: return copy_words<uint16_t>(job, stream);
      case 4: return copy_words<uint32_t>(job, stream);
      case 8: return copy_words<uint64_t>(job, stream);
      default: return copy_words<SixteenBytes>(job, stream);
    }
  }
  if (is_short_float(job.to_dtype) && is_short_float(job.from_dtype)) {
    const bool is_dense = is_dense_job(job);
    const int64_t pieces = is_dense ? (job.numel + 3) / 4 : job.numel;
    return launch(convert_floats_kernel, dim3(blocks_for(pieces, kThreads)), dim3(kThreads), 0, stream, job, is_dense);
  }
  launch(convert_kernel, dim3(blocks_for(job.numel, kThreads)), dim3(kThreads), 0, stream, job);
}

}  // namespace tensord::kernels
