// Kernels with faults, which the emulation has to find, and parts of kernels.
#include <cstring>

#include "kernels/cuda/device.cuh"  // first

#include "kernels/cuda/philox.cuh"

namespace tensord::cuda {
namespace {

__global__ void two_barriers(DeviceAddress) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void missing_lanes(DeviceAddress out) {
  float x = 1;
  if (threadIdx.x < 16) x = __shfl_xor_sync(kAllLanes, x, 1);
  pointer<float>(out)[threadIdx.x] = x;
}
__global__ void unset_shared(DeviceAddress out) {
  SHARED(values, float[64]);
  if (threadIdx.x == 0) values[0] = 1;
  __syncthreads();
  pointer<float>(out)[threadIdx.x] = values[threadIdx.x];
}
__global__ void misaligned(DeviceAddress out) {
  float* const to = pointer<float>(out) + 1;
  store_pack(to, Pack<float, 4>{{1, 2, 3, 4}});
}
__global__ void too_much_shared(DeviceAddress out) {
  SHARED(values, float[16384]);
  pointer<float>(out)[0] = values[0];
}
// Buffers of a reduction that is done twice without a barrier between: wrong where one warp runs ahead.
__global__ void missing_barrier(DeviceAddress out) {
  SHARED(parts, int[2]);
  const unsigned warp = threadIdx.x / kWarp;
  int sums[2];
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x % kWarp == 0) parts[warp] = round + 1;
    __syncthreads();
    sums[round] = parts[0] + parts[1];
  }
  pointer<int>(out)[threadIdx.x] = sums[0] * 10 + sums[1];
}
__global__ void past_the_end(DeviceAddress out) {
  float* const all = pointer<float>(out);
  all[0] = all[64 + threadIdx.x];
}
// Behind its array, but within shared memory.
__global__ void past_shared(DeviceAddress out) {
  SHARED(values, float[33]);
  SHARED(others, float[33]);
  values[threadIdx.x] = others[threadIdx.x] = 1;
  __syncwarp();
  pointer<float>(out)[threadIdx.x] = values[threadIdx.x + 2] + others[threadIdx.x];
}
__global__ void misaligned_plain(DeviceAddress out) { *reinterpret_cast<double*>(pointer<float>(out) + 1) = 1; }
// All blocks add to one number, which takes an atomic.
__global__ void racing_blocks(DeviceAddress out) {
  if (threadIdx.x == 0) pointer<int>(out)[0] += 1;
}
__global__ void plain(DeviceAddress out) { pointer<float>(out)[threadIdx.x] = 1; }

// Counter and key in, words out: rows of 10 words.
__global__ void philox_rows(DeviceAddress rows) {
  uint32_t* const row = pointer<uint32_t>(rows) + 10 * threadIdx.x;
  const Words words = philox({{row[0], row[1], row[2], row[3]}}, row[4], row[5]);
  for (int i = 0; i < 4; ++i) row[6 + i] = words.at[i];
}

struct TestedKernel {
  const char* name;
  void (*kernel)(DeviceAddress);
  dim3 grid, block;
  size_t shared_bytes;
};
const TestedKernel kTested[] = {
    {"two barriers", two_barriers, dim3(1), dim3(64), 0},
    {"missing lanes", missing_lanes, dim3(1), dim3(32), 0},
    {"unset shared", unset_shared, dim3(1), dim3(64), 0},
    {"misaligned", misaligned, dim3(1), dim3(1), 0},
    {"too much shared", too_much_shared, dim3(1), dim3(1), 0},
    {"missing barrier", missing_barrier, dim3(1), dim3(64), 0},
    {"past the end", past_the_end, dim3(1), dim3(32), 0},
    {"past shared", past_shared, dim3(1), dim3(32), 0},
    {"misaligned plain", misaligned_plain, dim3(1), dim3(1), 0},
    {"racing blocks", racing_blocks, dim3(4), dim3(32), 0},
    {"block too large", plain, dim3(1), dim3(2048), 0},
    {"empty grid", plain, dim3(0), dim3(32), 0},
    {"grid too high", plain, dim3(1, 70000), dim3(32), 0},
    {"shared not allowed", plain, dim3(1), dim3(32), 64 << 10},
    {"many registers", plain, dim3(1), dim3(1024), 0},
    {"plain", plain, dim3(1), dim3(32), 0},
    {"philox", philox_rows, dim3(1), dim3(3), 0},
};

}  // namespace
}  // namespace tensord::cuda

// For tests/device/cuda_fixture.h. False: there is no such kernel.
extern "C" [[gnu::visibility("default")]] bool tensord_cuda_run_tested(const char* name, void* out,
                                                                       cudaStream_t stream) {
  for (const auto& one : tensord::cuda::kTested) {
    if (std::strcmp(one.name, name) != 0) continue;
    tensord::cuda::launch(one.kernel, one.grid, one.block, one.shared_bytes, stream, tensord::cuda::DeviceAddress(out));
    return true;
  }
  return false;
}
