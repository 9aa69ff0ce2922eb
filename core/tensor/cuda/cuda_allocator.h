#pragma once

#include "core/tensor/caching_allocator.h"

namespace tensord::cuda {

// Memory of one device by cudaMalloc, meant to sit under a CachingAllocator. Blocks are
// given back after all work on the device ended, so no kernel reads freed memory.
class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(int index) : index_(index) {}
  void* allocate(size_t size_bytes) override;
  void free(void* data, size_t size_bytes) override;
  Device device() const override { return {DeviceKind::kCUDA, static_cast<int8_t>(index_)}; }

 private:
  int index_;
};

// Lets allocator_for find the devices' allocators; call before threads start. Does nothing
// more than that, so it is safe without a driver.
void register_cuda_allocators();

}  // namespace tensord::cuda
