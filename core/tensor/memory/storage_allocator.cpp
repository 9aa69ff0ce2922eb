#include "core/tensor/memory/storage_allocator.h"

#include <array>
#include <atomic>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/memory/caching_allocator.h"

namespace tensord {
namespace {

// By kind of device. Read for every new storage.
constinit std::array<std::atomic<StorageAllocator*>, kDeviceKinds> allocators{};
constinit std::array<uint8_t, kDeviceKinds> priorities{};
constinit Mutex choice_mutex;  // guards changes

size_t index_of(DeviceKind kind) {
  const auto index = static_cast<size_t>(kind);
  check(index < allocators.size(), "there is no device of kind ", static_cast<int>(kind));
  return index;
}

}  // namespace

void* StorageAllocator::raw_allocate(size_t size_bytes, Device device) {
  const DeleterFnPtr deleter = raw_deleter();
  if (!deleter) fail(ErrorCode::kFailedPrecondition, "raw_allocate: the allocator has no raw_deleter");
  DataPtr memory = allocate(size_bytes, device);
  if (!memory) return nullptr;
  if (memory.get_context() != memory.get() || memory.get_deleter() != deleter)
    fail(ErrorCode::kInternal, "raw_allocate: the allocator has a raw_deleter, but gave memory with another one");
  return memory.release_context();
}

void StorageAllocator::raw_deallocate(void* data) {
  const DeleterFnPtr deleter = raw_deleter();
  if (!deleter) fail(ErrorCode::kFailedPrecondition, "raw_deallocate: the allocator has no raw_deleter");
  if (data) deleter(data);
}

bool set_allocator(DeviceKind kind, StorageAllocator* allocator, uint8_t priority) {
  const size_t index = index_of(kind);
  const MutexLock lock(choice_mutex);
  if (priority < priorities[index]) return false;
  priorities[index] = allocator ? priority : 0;
  allocators[index].store(allocator, std::memory_order_release);
  return true;
}

StorageAllocator* get_allocator(DeviceKind kind) { return allocators[index_of(kind)].load(std::memory_order_acquire); }

Storage allocate_storage_from(StorageAllocator& allocator, size_t size_bytes, Device device) {
  return allocator_for(device).allocate_storage(size_bytes, &allocator);
}

Storage allocate_storage(size_t size_bytes, Device device) {
  return allocator_for(device).allocate_storage(size_bytes, get_allocator(device.kind));
}

}  // namespace tensord
