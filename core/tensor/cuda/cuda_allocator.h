#pragma once

#include "core/tensor/allocator.h"

namespace tensord::cuda {

// Memory of one device, meant to sit under a CachingAllocator. Blocks are
// given back after all work on the device ended, so no kernel reads freed memory.
class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(int index) : index_(index) {}
  void* allocate(size_t size_bytes) override;
  void free(void* data, size_t size_bytes) override;
  Device device() const override { return {DeviceKind::kCUDA, static_cast<int8_t>(index_)}; }
  bool is_cached() const override;

 private:
  int index_;
};

// Page-locked memory of the host, which all devices reach.
class CudaHostAllocator final : public Allocator {
 public:
  void* allocate(size_t size_bytes) override;
  // Waits for the devices.
  void free(void* data, size_t size_bytes) override;
  Device device() const override { return {}; }
};

}  // namespace tensord::cuda
