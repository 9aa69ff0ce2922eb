#pragma once

#include "core/tensor/allocator.h"

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

}  // namespace tensord::cuda
