#pragma once

// CUDA's device language for g++: kernels run on fibers, one for each thread that has to wait (machine.cpp).
// kernels/cuda/device.cuh includes this instead of CUDA's headers.
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
using cudaStream_t = struct CUstream_st*;

namespace tensord::cuda::emulated {

struct Fiber;
// A thread of the block that runs.
struct Thread {
  uint3 index{};
  unsigned lane = 0, warp = 0;
  Fiber* fiber = nullptr;
  Fiber* own = nullptr;  // fiber and thread for ThreadSanitizer (sanitizer.h)
  void* sanitized = nullptr;
  bool is_done = false, waits = false;
  uint64_t in[2];  // of the warp operation it is in
  uint64_t out;
};
struct Block {
  dim3 grid, block;
  uint3 index{};
  unsigned char* dynamic_shared = nullptr;
  int device = 0;
};
extern Thread* current;
extern Block block_;

// Ends the kernel; the device is lost.
[[noreturn]] void fault(const char* what);
void sync_threads(int line);
enum WarpOperation { kNone, kSyncWarp, kShuffle, kBallot };
// Returns when all lanes of `mask` are here; the last one calls `together`.
using Together = void (*)(Thread* const* lanes, uint32_t mask);
void warp_together(uint32_t mask, WarpOperation operation, Together together);
void exchange(Thread* const* lanes, uint32_t mask);
void ballot(Thread* const* lanes, uint32_t mask);
// Filled with NaN.
void* shared_memory(const void* tag, size_t size);

// The address in the device's own mapping. What another device or the host has is a fault, but for pinned memory.
void* seen(const void* address);
// The same, but what no device has is taken as it is: constants and variables of the kernel itself.
void* seen_or_own(const void* address);
void allow_shared(const void* kernel, size_t size_bytes);
// Checks what CUDA checks, and queues the kernel. REQUIRES: `body` may be copied and run on any thread.
// `parameters`: as CUDA lays them out.
void queue_launch(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes, std::vector<char> parameters,
                  cudaStream_t stream, std::function<void()> body);
template <class T>
void add_parameter(std::vector<char>& all, const T& parameter) {
  all.resize((all.size() + alignof(T) - 1) / alignof(T) * alignof(T) + sizeof(T));
  std::memcpy(all.data() + all.size() - sizeof(T), &parameter, sizeof(T));
}

template <class T>
T shuffle(uint32_t mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  current->in[0] = 0;
  std::memcpy(current->in, &value, sizeof(T));
  current->in[1] = from;
  warp_together(mask, kShuffle, exchange);
  std::memcpy(&value, &current->out, sizeof(T));
  return value;
}
template <class T, class Tag>
T& shared(Tag) {
  static const char tag = 0;
  return *static_cast<T*>(shared_memory(&tag, sizeof(T)));
}

}  // namespace tensord::cuda::emulated

#define threadIdx (::tensord::cuda::emulated::current->index)
#define blockIdx (::tensord::cuda::emulated::block_.index)
#define blockDim (::tensord::cuda::emulated::block_.block)
#define gridDim (::tensord::cuda::emulated::block_.grid)

#define SHARED(NAME, ...) auto& NAME = ::tensord::cuda::emulated::shared<__VA_ARGS__>([] {})
#define DYNAMIC_SHARED(NAME) unsigned char* const NAME = ::tensord::cuda::emulated::block_.dynamic_shared

inline void __syncthreads(std::source_location at = std::source_location::current()) {
  ::tensord::cuda::emulated::sync_threads(static_cast<int>(at.line()));
}
inline void __syncwarp(uint32_t mask = 0xffffffffu) {
  ::tensord::cuda::emulated::warp_together(mask, ::tensord::cuda::emulated::kSyncWarp, nullptr);
}
template <class T>
T __shfl_sync(uint32_t mask, T value, int from, int width = 32) {
  const int lane = static_cast<int>(::tensord::cuda::emulated::current->lane);
  return ::tensord::cuda::emulated::shuffle(mask, value,
                                            static_cast<unsigned>((lane & ~(width - 1)) | (from & (width - 1))));
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits) {
  return ::tensord::cuda::emulated::shuffle(mask, value,
                                            ::tensord::cuda::emulated::current->lane ^ static_cast<unsigned>(bits));
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, unsigned delta) {
  const unsigned lane = ::tensord::cuda::emulated::current->lane;
  return ::tensord::cuda::emulated::shuffle(mask, value, lane < delta ? lane : lane - delta);
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate) {
  ::tensord::cuda::emulated::current->in[0] = predicate != 0;
  ::tensord::cuda::emulated::warp_together(mask, ::tensord::cuda::emulated::kBallot, ::tensord::cuda::emulated::ballot);
  return static_cast<uint32_t>(::tensord::cuda::emulated::current->out);
}
inline void __threadfence_system() {}
inline void __threadfence() {}

template <class T>
T atomicAdd(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
  std::atomic_ref<T>(*at).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicExch(T* at, T value) {
  return std::atomic_ref<T>(*at).exchange(value, std::memory_order_relaxed);
}

namespace tensord::cuda {

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments) {
  std::vector<char> parameters;
  (emulated::add_parameter(parameters, static_cast<P>(arguments)), ...);
  emulated::queue_launch(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, std::move(parameters),
                         stream, [kernel, arguments...] { kernel(static_cast<P>(arguments)...); });
}
// More than 48 KiB of shared memory must be asked for.
template <class... P>
void allow_shared(void (*kernel)(P...), size_t size_bytes) {
  emulated::allow_shared(reinterpret_cast<const void*>(kernel), size_bytes);
}

}  // namespace tensord::cuda
