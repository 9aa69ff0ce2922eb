#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/device.h"
#include "core/tensor/storage.h"

namespace tensord {

// Gives memory back; `context` is what DataPtr was made with. Runs once, on any thread, and must not throw.
using DeleterFnPtr = void (*)(void* context);

// Memory with its owner, after PyTorch's: the address of the data, a context that need not be that address, and the
// function that takes the context when the memory is needed no more. Moves, does not copy.
class DataPtr {
 public:
  DataPtr() : DataPtr(nullptr, {}) {}
  // Memory that somebody else owns and keeps.
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
  // Gives the context up: the caller runs the deleter.
  void* release_context() { return context_.release(); }
  // Gives the memory back now.
  void clear() { *this = DataPtr(); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  static void do_nothing(void*) {}

  void* data_;
  std::unique_ptr<void, DeleterFnPtr> context_;  // a null context has no deleter to run
  Device device_;
};

// Where the memory of tensors comes from, for programs that bring their own: PyTorch's c10::Allocator. (Allocator, in
// allocator.h, is the raw memory that the engine's own cache cuts up.) Used by many threads at once.
class StorageAllocator {
 public:
  virtual ~StorageAllocator() = default;

  // Memory of `device`, aligned to kAlignment (allocator.h), uninitialized; size_bytes > 0. A null one, or
  // std::bad_alloc, says that there is none. Of a device with streams: it may be given work at once in the calling
  // thread's current stream, and its deleter runs when the work that streams were given on it is done.
  virtual DataPtr allocate(size_t size_bytes, Device device) = 0;
  // The deleter of every DataPtr that `allocate` gives, where their context is their data, so that memory can be
  // handled as bare addresses; null, as it is by default, where it is not.
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }

  // Memory as a bare address, which raw_deallocate gives back; null when there is none. Throw
  // Error{kFailedPrecondition} when there is no raw_deleter.
  void* raw_allocate(size_t size_bytes, Device device = {});
  void raw_deallocate(void* data);
};

// From now on `allocator` is where new storages of all devices of this kind get their memory, and not from the engine's
// cache; null: the cache again. Storages that are there keep their memory, and give it back where they have it from.
// Nothing changes, and false comes back, when the present allocator was set with a higher priority. The bytes are
// charged to memory owners, and limited, as the cache's are. Not owned: lives as long as the process. Storages without
// bytes have no memory of it. Thread-safe.
bool set_allocator(DeviceKind kind, StorageAllocator* allocator, uint8_t priority = 0);
// What was set; null: the engine's cache.
StorageAllocator* get_allocator(DeviceKind kind);

// A storage with memory of `allocator`, charged to the calling thread's memory owner. Throws Error{kResourceExhausted}
// when there is none, or the owner's limit is reached; kInternal when what it gave is not aligned, or of another
// device.
Storage allocate_storage_from(StorageAllocator& allocator, size_t size_bytes, Device device = {});

}  // namespace tensord
