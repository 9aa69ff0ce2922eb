#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/device.h"
#include "core/tensor/storage.h"

namespace tensord {

// Frees memory; `context` is the one that DataPtr was made with. Runs once, on any thread, and must not throw.
using DeleterFnPtr = void (*)(void* context);

// Memory with its owner, as PyTorch's DataPtr: the address of the data, a context that may be another address, and the
// function that frees by the context. Movable, not copyable.
class DataPtr {
 public:
  DataPtr() : DataPtr(nullptr, {}) {}
  // Memory that another object owns and keeps.
  DataPtr(void* data, Device device) : data_(data), context_(nullptr, do_nothing), device_(device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data), context_(context, deleter ? deleter : do_nothing), device_(device) {}
  DataPtr(DataPtr&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), context_(std::move(other.context_)), device_(other.device_) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    context_ = std::move(other.context_);
    data_ = std::exchange(other.data_, nullptr);
    device_ = other.device_;
    return *this;
  }

  void* get() const { return data_; }
  void* get_context() const { return context_.get(); }
  DeleterFnPtr get_deleter() const { return context_.get_deleter(); }
  Device device() const { return device_; }
  // Releases the context: the caller runs the deleter.
  void* release_context() { return context_.release(); }
  // Frees the memory now.
  void clear() { *this = DataPtr(); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  static void do_nothing(void*) {}

  void* data_;
  std::unique_ptr<void, DeleterFnPtr> context_;  // a null context runs no deleter
  Device device_;
};

// The source of tensor memory for programs that bring their own: PyTorch's c10::Allocator. (Allocator, in allocator.h,
// is the raw memory under the engine's own cache.) Called by many threads at once.
class StorageAllocator {
 public:
  virtual ~StorageAllocator() = default;

  // Returns uninitialized memory of `device`, aligned to kAlignment (allocator.h); size_bytes > 0. A null pointer or
  // std::bad_alloc says that there is none. Memory of a device with streams may be used at once in the calling thread's
  // current stream; its deleter runs after the work that streams have on it.
  virtual DataPtr allocate(size_t size_bytes, Device device) = 0;
  // The deleter of every DataPtr from `allocate`, if their context is their data, so that memory can be handled as
  // plain addresses. Null (the default) if it is not.
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }

  // Memory as a plain address, for raw_deallocate; null if there is none. Throws Error{kFailedPrecondition} if there is
  // no raw_deleter.
  void* raw_allocate(size_t size_bytes, Device device = {});
  void raw_deallocate(void* data);
};

// Makes `allocator` the source of memory of new storages on all devices of this kind, in place of the engine's cache;
// null restores the cache. Existing storages keep their memory and return it to its source. Returns false and changes
// nothing if the present allocator was set with a higher priority. The bytes are charged to memory owners and limited,
// as the cache's are. Not owned; must live as long as the process. Storages without bytes do not use it. Thread-safe.
bool set_allocator(DeviceKind kind, StorageAllocator* allocator, uint8_t priority = 0);
// The allocator that was set; null for the engine's cache.
StorageAllocator* get_allocator(DeviceKind kind);

// Returns a storage with memory of `allocator`, charged to the calling thread's owner. Throws Error{kResourceExhausted}
// if there is none or the owner's limit is reached, kInternal if the memory is misaligned or on another device.
Storage allocate_storage_from(StorageAllocator& allocator, size_t size_bytes, Device device = {});

}  // namespace tensord
