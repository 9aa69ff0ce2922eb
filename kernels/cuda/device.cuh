#pragma once

// What kernels are written in: CUDA, or the tests' emulation of it (tests/cuda/emulated). Kernels keep to what is here:
//   launch(kernel, grid, block, shared_bytes, stream, arguments…) instead of <<<>>>
//   SHARED(name, type) instead of __shared__; DYNAMIC_SHARED(name)
//   pointer<T>(address) for what is in a DeviceAddress
//   load_pack / store_pack for accesses of several elements, which must be aligned
#include <cstdint>

#if defined(TENSORD_CUDA_EMULATED)
#include <cuda_emulated.h>
#define __CUDACC__ 1  // formulas take what they take on a chip; this file comes first, before those that ask
#define TENSORD_DEVICE_CALL __attribute__((noinline))
#else
#include <cuda_runtime.h>
#define TENSORD_DEVICE_CALL __device__ __noinline__

namespace tensord::cuda {
template <class T>
using SharedType = T;
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments) {
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<P>(arguments)...);
}
template <class... P>
void allow_shared(void (*kernel)(P...), size_t size_bytes) {
  static_cast<void>(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size_bytes)));
}
}  // namespace tensord::cuda
#define SHARED(NAME, ...) __shared__ ::tensord::cuda::SharedType<__VA_ARGS__> NAME
#define DYNAMIC_SHARED(NAME) extern __shared__ __align__(16) unsigned char NAME[]
#endif

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::cuda {

inline constexpr unsigned kWarp = 32, kAllLanes = 0xffffffffu;

template <class T>
__device__ __forceinline__ T* pointer(DeviceAddress address) {
#if defined(TENSORD_CUDA_EMULATED)
  return static_cast<T*>(emulated::seen(address.at));
#else
  return static_cast<T*>(const_cast<void*>(address.at));
#endif
}

// N elements side by side, which accesses of up to 16 bytes take.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T at[N];
};
template <class T, int N>
__device__ __forceinline__ void check_aligned([[maybe_unused]] const T* from) {
#if defined(TENSORD_CUDA_EMULATED)
  if (reinterpret_cast<uintptr_t>(from) % alignof(Pack<T, N>) != 0) emulated::fault("an access that is not aligned");
#endif
}
template <int N, class T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  check_aligned<T, N>(from);
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, N>& pack) {
  check_aligned<T, N>(to);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// What other threads change by atomics at the same time.
template <class T>
__device__ __forceinline__ T load_relaxed(const T* from) {
#if defined(TENSORD_CUDA_EMULATED)
  return __atomic_load_n(from, __ATOMIC_RELAXED);
#else
  return *static_cast<const volatile T*>(from);
#endif
}

// A store where other threads may store at the same time; one of the values stays.
template <class T>
__device__ __forceinline__ void store_relaxed(T* to, const T& value) {
#if defined(TENSORD_CUDA_EMULATED)
  using Word = std::conditional_t<(sizeof(T) > 8), uint64_t, T>;
  for (size_t i = 0; i < sizeof(T) / sizeof(Word); ++i)
    __atomic_store(reinterpret_cast<Word*>(to) + i, reinterpret_cast<const Word*>(&value) + i, __ATOMIC_RELAXED);
#else
  *to = value;
#endif
}

// The index of the thread among those of a one-dimensional grid, and their count.
__device__ __forceinline__ int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t thread_count() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Blocks of a loop over `count` pieces by thread_count() steps.
inline unsigned blocks_for(int64_t count, int threads, int64_t most = 65535) {
  const int64_t wanted = (count + threads - 1) / threads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

// Records what is wrong, unless something is recorded already; the thread goes on.
__device__ inline void note_error(const ErrorSink& sink, KernelError code, int64_t v0 = 0, int64_t v1 = 0,
                                  int64_t v2 = 0) {
  ErrorWord* const at = pointer<ErrorWord>(sink.word);
  if (atomicCAS(&at->is_taken, 0, 1) != 0) return;
  at->values[0] = v0;
  at->values[1] = v1;
  at->values[2] = v2;
  at->operator_name = sink.operator_name;
  __threadfence_system();
  atomicExch(&at->code, static_cast<int32_t>(code));
}

template <class T, class Join>
__device__ __forceinline__ T warp_reduce(T value, const Join& join) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value = join(value, __shfl_xor_sync(kAllLanes, value, bits));
  return value;
}

// The sum over a block of whole warps, at most 1024 threads; every thread gets it. `parts` is shared memory for 32
// values, and can be used again at once.
template <class T, class Join>
__device__ __forceinline__ T block_reduce(T value, T* parts, T identity, const Join& join) {
  value = warp_reduce(value, join);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  if (warps == 1) return value;
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = lane < warps ? parts[lane] : identity;
  value = warp_reduce(value, join);
  __syncthreads();
  return value;
}

}  // namespace tensord::cuda
