#include "core/tensor/cuda/cuda_allocator.h"

#include "core/tensor/cuda/runtime.h"

namespace tensord::cuda {

void* CudaAllocator::allocate(size_t size_bytes) {
  const DeviceScope scope(index_);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, size_bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check_cuda(status, "cudaMalloc");
  return data;
}

void* CudaHostAllocator::allocate(size_t size_bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, size_bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check_cuda(status, "cudaHostAlloc");
  return data;
}

void CudaHostAllocator::free(void* data, size_t) { static_cast<void>(cudaFreeHost(data)); }

// cudaFree waits for the device by itself.
void CudaAllocator::free(void* data, size_t) { static_cast<void>(cudaFree(data)); }

}  // namespace tensord::cuda
