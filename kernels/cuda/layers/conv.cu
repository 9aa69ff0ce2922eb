// Convolutions of one to three dimensions and their gradients, of any strides and every dtype: matrix products by tiles
// in shared memory, whose operands are read in place. float16 and bfloat16 are summed in float32.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

constexpr int kTile = 64, kStep = 16, kSide = 16, kEach = kTile / kSide;  // each thread has kEach x kEach results
constexpr int kThreads = kSide * kSide;

// A row of n or of k: a sample or a channel, and three positions.
struct Spot {
  int64_t lead;
  int at[3];
};
template <class I>
__device__ __forceinline__ Spot split(I i, const int* sizes) {
  Spot spot;
  for (int d = 2; d >= 0; --d) {
    const I size = static_cast<I>(sizes[d]);
    spot.at[d] = static_cast<int>(i % size);
    i /= size;
  }
  spot.lead = static_cast<int64_t>(i);
  return spot;
}
__device__ __forceinline__ Spot spot_of(int64_t i, const int* sizes) {
  return i <= int64_t{UINT32_MAX} ? split<uint32_t>(static_cast<uint32_t>(i), sizes) : split<int64_t>(i, sizes);
}

__device__ __forceinline__ int64_t offset_of(const int64_t* strides, int64_t lead, int64_t channel, const int* at) {
  return lead * strides[0] + channel * strides[1] + at[0] * strides[2] + at[1] * strides[3] + at[2] * strides[4];
}
template <class T>
__device__ __forceinline__ T weight_of(const ConvJob& job, int64_t group, int64_t grid_channel, int64_t image_channel,
                                       const int* tap) {
  const int64_t lead = group * job.grid_channels + grid_channel;
  return load_element<T>(pointer<void>(job.weight_at), job.dtype,
                         offset_of(job.weight_strides, lead, image_channel, tap));
}
template <class T>
__device__ __forceinline__ T grid_of(const ConvJob& job, int64_t group, int64_t sample, int64_t channel,
                                     const int* at) {
  const int64_t place = offset_of(job.grid_strides, sample, group * job.grid_channels + channel, at);
  return load_element<T>(pointer<void>(job.grid_at), job.dtype, place);
}
// The element under a tap of the window at a place of the grid; 0 in the padding.
template <class T>
__device__ __forceinline__ T image_of(const ConvJob& job, int64_t group, int64_t sample, int64_t channel,
                                      const int* place, const int* tap) {
  int at[3];
  for (int d = 0; d < 3; ++d) {
    at[d] = place[d] * job.stride[d] - job.padding[d] + tap[d] * job.dilation[d];
    if (at[d] < 0 || at[d] >= job.image[d]) return T(0);
  }
  const int64_t offset = offset_of(job.image_strides, sample, group * job.image_channels + channel, at);
  return load_element<T>(pointer<void>(job.image_at), job.dtype, offset);
}
// The element of the place in the grid whose window has a pixel under a tap; 0 if there is none.
template <class T>
__device__ __forceinline__ T grid_at_tap(const ConvJob& job, int64_t group, int64_t sample, int64_t channel,
                                         const int* pixel, const int* tap) {
  int at[3];
  for (int d = 0; d < 3; ++d) {
    const int from = pixel[d] + job.padding[d] - tap[d] * job.dilation[d];
    at[d] = from / job.stride[d];
    if (from < 0 || at[d] * job.stride[d] != from || at[d] >= job.grid[d]) return T(0);
  }
  return grid_of<T>(job, group, sample, channel, at);
}

template <class T>
__device__ __forceinline__ T a_of(const ConvJob& job, int64_t group, int64_t m, const Spot& k) {
  switch (job.result) {
    case ConvResult::kGrid: return weight_of<T>(job, group, m, k.lead, k.at);
    case ConvResult::kImage: return weight_of<T>(job, group, k.lead, m, k.at);
    default: return grid_of<T>(job, group, k.lead, m, k.at);
  }
}
template <class T>
__device__ __forceinline__ T b_of(const ConvJob& job, int64_t group, const Spot& k, const Spot& n) {
  switch (job.result) {
    case ConvResult::kGrid: return image_of<T>(job, group, n.lead, k.lead, n.at, k.at);
    case ConvResult::kImage: return grid_at_tap<T>(job, group, n.lead, k.lead, n.at, k.at);
    default: return image_of<T>(job, group, k.lead, n.lead, k.at, n.at);
  }
}
template <class T>
__device__ __forceinline__ void store_c(const ConvJob& job, int64_t group, int64_t m, const Spot& n, T value) {
  const bool is_grid = job.result == ConvResult::kGrid;
  const int64_t channel = group * (is_grid ? job.grid_channels : job.image_channels) + m;
  if (job.bias.at) value += load_element<T>(pointer<void>(job.bias), job.dtype, channel * job.bias_stride);
  if (job.result == ConvResult::kWeight) {
    const int64_t lead = group * job.grid_channels + m;
    return store_element(pointer<void>(job.weight_at), job.dtype, offset_of(job.weight_strides, lead, n.lead, n.at),
                         value);
  }
  const int64_t at = offset_of(is_grid ? job.grid_strides : job.image_strides, n.lead, channel, n.at);
  store_element(pointer<void>(is_grid ? job.grid_at : job.image_at), job.dtype, at, value);
}

// blockIdx.z is the part of k.
template <class T>
__device__ __forceinline__ void conv_tile(const ConvJob& job, int64_t group, T (*left)[kTile + 1],
                                          T (*right)[kTile + 1], Spot* spots) {
  const int t = static_cast<int>(threadIdx.x), tx = t % kSide, ty = t / kSide;
  const int64_t row_tiles = (job.m + kTile - 1) / kTile;
  const int64_t row0 = blockIdx.x % row_tiles * kTile, column0 = blockIdx.x / row_tiles * kTile;
  const int64_t begin = job.k * blockIdx.z / job.parts, end = job.k * (blockIdx.z + 1) / job.parts;
  // Iterates over the rows of k. Divisions are done once a block.
  const auto find_spots = [&](int64_t k) {
    if (t < kStep) spots[t] = spot_of(k + t, job.k_sizes);
  };
  const int a_k = t % kStep, a_m = t / kStep, b_n = t % kTile, b_k = t / kTile;
  const bool has_column = column0 + b_n < job.n;
  const Spot column = spot_of(has_column ? column0 + b_n : 0, job.n_sizes);
  T sums[kEach][kEach] = {};
  find_spots(begin);
  __syncthreads();
  for (int64_t k0 = begin; k0 < end; k0 += kStep) {
    const Spot of_a = spots[a_k];
    for (int i = a_m; i < kTile; i += kThreads / kStep)
      left[a_k][i] = k0 + a_k < end && row0 + i < job.m ? a_of<T>(job, group, row0 + i, of_a) : T(0);
    for (int i = b_k; i < kStep; i += kThreads / kTile)
      right[i][b_n] = k0 + i < end && has_column ? b_of<T>(job, group, spots[i], column) : T(0);
    __syncthreads();
    find_spots(k0 + kStep);
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      T a[kEach], b[kEach];
#pragma unroll
      for (int y = 0; y < kEach; ++y) a[y] = left[i][ty + kSide * y], b[y] = right[i][tx + kSide * y];
#pragma unroll
      for (int y = 0; y < kEach; ++y) {
#pragma unroll
        for (int x = 0; x < kEach; ++x) sums[y][x] += a[y] * b[x];
      }
    }
    __syncthreads();
  }
  for (int x = 0; x < kEach; ++x) {
    const int64_t n = column0 + tx + kSide * x;
    if (n >= job.n) continue;
    const Spot spot = spot_of(n, job.n_sizes);
    for (int y = 0; y < kEach; ++y) {
      const int64_t m = row0 + ty + kSide * y;
      if (m >= job.m) continue;
      if (job.parts == 1)
        store_c(job, group, m, spot, sums[y][x]);
      else
        pointer<T>(job.partial)[((blockIdx.z * job.groups + group) * job.m + m) * job.n + n] = sums[y][x];
    }
  }
}
template <class T>
__global__ void conv_kernel(const __grid_constant__ ConvJob job) {
  SHARED(left, T[kStep][kTile + 1]);
  SHARED(right, T[kStep][kTile + 1]);
  SHARED(spots, Spot[kStep]);
  for (int64_t group = blockIdx.y; group < job.groups; group += gridDim.y) conv_tile<T>(job, group, left, right, spots);
}

template <class T>
__global__ void conv_parts_kernel(const __grid_constant__ ConvJob job) {
  const T* const partial = pointer<T>(job.partial);
  const int64_t each = job.m * job.n, all = job.groups * each;
  for (int64_t i = thread_index(); i < all; i += thread_count()) {
    T sum = partial[i];
    for (int part = 1; part < job.parts; ++part) sum += partial[part * all + i];
    store_c(job, i / each, i % each / job.n, spot_of(i % job.n, job.n_sizes), sum);
  }
}

// One thread for each pixel of the result.
template <class T>
__global__ void conv_direct_kernel(const __grid_constant__ ConvJob job) {
  const int64_t each = job.m * job.n, channels = job.k / (int64_t{job.k_sizes[0]} * job.k_sizes[1] * job.k_sizes[2]);
  for (int64_t i = thread_index(); i < job.groups * each; i += thread_count()) {
    const int64_t group = i / each, m = i % each / job.n;
    const Spot n = spot_of(i % job.n, job.n_sizes);
    T sum = 0;
    Spot k;
    for (k.lead = 0; k.lead < channels; ++k.lead) {
      for (k.at[0] = 0; k.at[0] < job.k_sizes[0]; ++k.at[0]) {
        for (k.at[1] = 0; k.at[1] < job.k_sizes[1]; ++k.at[1]) {
          for (k.at[2] = 0; k.at[2] < job.k_sizes[2]; ++k.at[2])
            sum += a_of<T>(job, group, m, k) * b_of<T>(job, group, k, n);
        }
      }
    }
    store_c(job, group, m, n, sum);
  }
}

template <class T>
struct AddOf {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
// One block for each number of the weight.
template <class T>
__global__ void conv_direct_weight_kernel(const __grid_constant__ ConvJob job) {
  SHARED(parts, T[kWarp]);
  const int64_t each = job.m * job.n;
  for (int64_t i = blockIdx.x; i < job.groups * each; i += gridDim.x) {
    const int64_t group = i / each, m = i % each / job.n;
    const Spot n = spot_of(i % job.n, job.n_sizes);
    T sum = 0;
    for (int64_t at = threadIdx.x; at < job.k; at += blockDim.x) {
      const Spot k = spot_of(at, job.k_sizes);
      sum += a_of<T>(job, group, m, k) * b_of<T>(job, group, k, n);
    }
    sum = block_reduce(sum, parts, T(0), AddOf<T>());
    if (threadIdx.x == 0) store_c(job, group, m, n, sum);
  }
}

template <class T>
void launch_conv(const ConvJob& job, StreamHandle stream) {
  const int64_t results = job.groups * job.m * job.n;
  if (job.is_direct && job.result == ConvResult::kWeight) {
    const unsigned threads = job.k >= 1024 ? 256 : job.k > 32 ? 128 : 32;
    return launch(conv_direct_weight_kernel<T>, dim3(blocks_for(results, 1)), dim3(threads), 0, stream, job);
  }
  if (job.is_direct) return launch(conv_direct_kernel<T>, dim3(blocks_for(results, 128)), dim3(128), 0, stream, job);
  const int64_t tiles = ((job.m + kTile - 1) / kTile) * ((job.n + kTile - 1) / kTile);
  const dim3 grid(static_cast<unsigned>(tiles), blocks_for(job.groups, 1), static_cast<unsigned>(job.parts));
  launch(conv_kernel<T>, grid, dim3(kThreads), 0, stream, job);
  if (job.parts > 1) launch(conv_parts_kernel<T>, dim3(blocks_for(results, 128)), dim3(128), 0, stream, job);
}

}  // namespace

void convolution(const ConvJob& job, cuda::StreamHandle stream) {
  switch (job.dtype) {
    case kF16:
    case kBF16:
    case kF32: return launch_conv<float>(job, stream);
    case kF64: return launch_conv<double>(job, stream);
    default: return launch_conv<int64_t>(job, stream);
  }
}

}  // namespace tensord::kernels
