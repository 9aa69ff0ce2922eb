// Matrix products of any strides and every dtype, by tiles in shared memory. float16 and bfloat16 are summed in
// float32, integers wrap.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

// Sizes of a tile in c and in k; each of its kSide x kSide threads has 2 x 2 elements.
constexpr int kTile = 32, kStep = 16, kSide = 16;

struct BatchOffsets {
  int64_t a = 0, b = 0, c = 0;
};
__device__ __forceinline__ BatchOffsets batch_offsets(const ProductJob& job, int64_t batch) {
  BatchOffsets at;
  for (int d = job.batch_dims - 1; d >= 0; --d) {
    const int64_t index = batch % job.sizes[d];
    batch /= job.sizes[d];
    at.a += index * job.a_strides[d];
    at.b += index * job.b_strides[d];
    at.c += index * job.c_strides[d];
  }
  return at;
}

template <class T>
__global__ void product_kernel(const __grid_constant__ ProductJob job) {
  SHARED(left, T[kTile][kStep + 1]);
  SHARED(right, T[kStep][kTile + 1]);
  const void* const a = pointer<void>(job.a);
  const void* const b = pointer<void>(job.b);
  void* const c = pointer<void>(job.c);
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  const int64_t row_tiles = (job.m + kTile - 1) / kTile;
  for (int64_t batch = blockIdx.y; batch < job.batches; batch += gridDim.y) {
    const BatchOffsets at = batch_offsets(job, batch);
    const int64_t row0 = blockIdx.x % row_tiles * kTile, column0 = blockIdx.x / row_tiles * kTile;
    T sums[2][2] = {};
    for (int64_t k0 = 0; k0 < job.k; k0 += kStep) {
      for (int i = threadIdx.x; i < kTile * kStep; i += kSide * kSide) {
        const int ar = i / kStep, ak = i % kStep, bk = i / kTile, bc = i % kTile;
        const bool has_a = row0 + ar < job.m && k0 + ak < job.k, has_b = column0 + bc < job.n && k0 + bk < job.k;
        left[ar][ak] =
            has_a ? load_element<T>(a, job.dtype, at.a + (row0 + ar) * job.a_row + (k0 + ak) * job.a_column) : T(0);
        right[bk][bc] =
            has_b ? load_element<T>(b, job.dtype, at.b + (k0 + bk) * job.b_row + (column0 + bc) * job.b_column) : T(0);
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
#pragma unroll
        for (int y = 0; y < 2; ++y) {
#pragma unroll
          for (int x = 0; x < 2; ++x) sums[y][x] += left[ty + kSide * y][i] * right[i][tx + kSide * x];
        }
      }
      __syncthreads();
    }
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 2; ++x) {
        const int64_t row = row0 + ty + kSide * y, column = column0 + tx + kSide * x;
        if (row >= job.m || column >= job.n) continue;
        const int64_t to = at.c + row * job.c_row + column * job.c_column;
        T value = static_cast<T>(job.alpha) * sums[y][x];
        if (job.beta != 0) value += static_cast<T>(job.beta) * load_element<T>(c, job.dtype, to);
        store_element(c, job.dtype, to, value);
      }
    }
  }
}

template <class T>
void launch_product(const ProductJob& job, StreamHandle stream) {
  const int64_t tiles = ((job.m + kTile - 1) / kTile) * ((job.n + kTile - 1) / kTile);
  const dim3 grid(static_cast<unsigned>(tiles), blocks_for(job.batches, 1));
  launch(product_kernel<T>, grid, dim3(kSide * kSide), 0, stream, job);
}

}  // namespace

void product(const ProductJob& job, cuda::StreamHandle stream) {
  switch (job.dtype) {
    case kF16:
    case kBF16:
    case kF32: return launch_product<float>(job, stream);
    case kF64: return launch_product<double>(job, stream);
    default: return launch_product<int64_t>(job, stream);
  }
}

}  // namespace tensord::kernels
