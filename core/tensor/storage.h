#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/base/device.h"
#include "core/base/intrusive_ptr.h"

namespace tensord {

class DeviceStream;
class StreamUses;

class StorageImpl;
using Storage = IntrusivePtr<StorageImpl>;

// Bytes with their deleter: a block of an allocator, a mapped file, a slice of a request, shared memory. Freed with the
// last tensor that views them. Many threads may read the bytes; callers have to order their writes.
// A lent storage (see lend() in core/tensor/lend.h) reads bytes that others read too, and copies them before the first
// write: a writer calls ensure_writable() before it takes a pointer.
class StorageImpl final : public RefCounted {
 public:
  using Deleter = std::function<void()>;

  StorageImpl(void* data, size_t size_bytes, Device device, Deleter deleter, bool is_writable,
              StreamUses* uses = nullptr)
      : data_(data),
        size_bytes_(size_bytes),
        device_(device),
        is_writable_(is_writable),
        uses_(uses),
        deleter_(std::move(deleter)) {}
  ~StorageImpl() override {
    if (deleter_) deleter_();
  }

  void* data() const { return data_.load(std::memory_order_relaxed); }
  size_t size_bytes() const { return size_bytes_; }
  Device device() const { return device_; }
  // False for memory that in-place operators must not touch as it is (bytes of a request, lent bytes).
  bool is_writable() const { return is_writable_.load(std::memory_order_acquire); }
  // Makes the bytes writable if possible: the first call on a lent storage copies them. Returns false if the memory is
  // read-only. Throws Error if there is no memory for the copy. Thread-safe.
  bool ensure_writable() { return is_writable() || (is_lent_ && (copy_lent(), true)); }
  // REQUIRES: the storage is not writable, and no other thread has it yet.
  void set_lent() { is_lent_ = true; }
  // Whether a lent storage was written to, and so has bytes of its own.
  bool was_copied() const { return is_lent_ && is_writable(); }

  // Called by code that gives a stream work on this memory, before the last handle is dropped. Does nothing if the
  // owner of the memory does not track streams (host memory, and memory of others, who keep it long enough).
  void record_stream(DeviceStream& stream) const;
  // For storages that are parts of this one.
  StreamUses* uses() const { return uses_; }

  // Counts in-place writes through any view; autograd compares it with what it saved.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void copy_lent();

  std::atomic<void*> data_;
  size_t size_bytes_;
  Device device_;
  std::atomic<bool> is_writable_;
  bool is_lent_ = false;
  std::atomic<uint32_t> version_{0};
  StreamUses* uses_;  // not owned; null if streams are not tracked
  Deleter deleter_;
  Storage copy_;  // of the lent bytes, which stay alive too, since another thread may be reading them
};

// Wraps memory of another owner; `deleter` runs once, on any thread. `uses` must live until then.
inline Storage wrap_storage(void* data, size_t size_bytes, StorageImpl::Deleter deleter, Device device = {},
                            bool is_writable = true, StreamUses* uses = nullptr) {
  return make_intrusive<StorageImpl>(data, size_bytes, device, std::move(deleter), is_writable, uses);
}

// Takes uninitialized memory from the device's caching allocator, charged to the calling thread's owner (see
// allocator.h).
Storage allocate_storage(size_t size_bytes, Device device);

}  // namespace tensord
