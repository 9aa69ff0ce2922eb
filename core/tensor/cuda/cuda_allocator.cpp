#include "core/tensor/cuda/cuda_allocator.h"

#include <memory>
#include <vector>

#include "core/base/error.h"
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

// cudaFree waits for the device by itself.
void CudaAllocator::free(void* data, size_t) { static_cast<void>(cudaFree(data)); }

namespace {

// Made at the first use of a device; never destroyed, as storages may outlive main.
CachingAllocator& allocator_of(int index) {
  static auto* all = [] {
    auto* out = new std::vector<std::unique_ptr<CachingAllocator>>();
    for (int i = 0; i < device_count(); ++i) {
      out->push_back(std::make_unique<CachingAllocator>(std::make_unique<CudaAllocator>(i)));
    }
    return out;
  }();
  if (index < 0 || index >= device_count()) {
    fail(ErrorCode::kUnimplemented, "there is no device cuda:", index, " on this machine (", device_count(), " found)");
  }
  return *(*all)[static_cast<size_t>(index)];
}

}  // namespace

void register_cuda_allocators() { register_allocator_factory(DeviceKind::kCUDA, &allocator_of); }

}  // namespace tensord::cuda
