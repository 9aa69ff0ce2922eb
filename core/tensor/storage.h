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

// Bytes plus the deleter they came with: an allocator's block, a mapped file, a
// slice of a request, shared memory. Freed when the last tensor that views them
// goes. The bytes may be read by many threads; writes are the caller's to order.
//
// A storage that was lent (see lend() in core/tensor/lend.h) reads bytes that others read too, and copies them
// before the first write: whoever writes asks ensure_writable() before it takes a pointer.
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
  // False for memory that in-place operators must not touch as it is (a request's bytes; bytes that were lent).
  bool is_writable() const { return is_writable_.load(std::memory_order_acquire); }
  // Whether the bytes may be written from now on: of a storage that was lent, a copy of them, made by the first call.
  // False: the memory is read-only. Throws Error when there is no memory for the copy. Thread-safe.
  bool ensure_writable() { return is_writable() || (is_lent_ && (copy_lent(), true)); }
  // REQUIRES: it is not writable, and nobody else has this storage yet.
  void set_lent() { is_lent_ = true; }
  // Whether a storage that was lent was written to, and so has bytes of its own.
  bool was_copied() const { return is_lent_ && is_writable(); }

  // Called before the last handle goes by whoever gives a stream work on this memory. Nothing where the memory's owner
  // does not ask (the host's; memory of others, who keep it for as long as they must).
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
  StreamUses* uses_;  // not owned; null: nobody asks
  Deleter deleter_;
  Storage copy_;  // of the bytes that were lent; those stay held too, since another thread may be reading them
};

// Wraps memory that someone else owns; `deleter` runs once, on any thread. `uses` lives until then.
inline Storage wrap_storage(void* data, size_t size_bytes, StorageImpl::Deleter deleter, Device device = {},
                            bool is_writable = true, StreamUses* uses = nullptr) {
  return make_intrusive<StorageImpl>(data, size_bytes, device, std::move(deleter), is_writable, uses);
}

// Takes memory from the device's caching allocator, charged to the calling
// thread's memory owner (see allocator.h). Uninitialized.
Storage allocate_storage(size_t size_bytes, Device device);

}  // namespace tensord
