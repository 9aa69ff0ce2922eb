#include "core/tensor/cuda/cuda_allocator.h"

#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/memory_checks.h"

namespace tensord::cuda {

void* CudaAllocator::allocate(size_t size_bytes) {
  void* data = nullptr;
  const Outcome outcome = api().allocate(index_, size_bytes, &data);
  if (outcome == Outcome::kOutOfMemory) return nullptr;
  check_cuda(outcome, "memory of the device");
  return data;
}
void CudaAllocator::free(void* data, size_t) { static_cast<void>(api().free(index_, data)); }

bool CudaAllocator::is_cached() const { return !guards_memory(); }

void* CudaHostAllocator::allocate(size_t size_bytes) {
  void* data = nullptr;
  const Outcome outcome = api().allocate_host(size_bytes, &data);
  if (outcome == Outcome::kOutOfMemory) return nullptr;
  check_cuda(outcome, "pinned memory");
  return data;
}
void CudaHostAllocator::free(void* data, size_t) { static_cast<void>(api().free_host(data)); }

}  // namespace tensord::cuda
