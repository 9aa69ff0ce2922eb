#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/tensor/allocator.h"
#include "core/tensor/storage.h"

namespace tensord {

class StorageAllocator;

// Keeps freed blocks of one device and gives them out again, so that steady-state
// work never asks the system. Blocks are cut from segments: small requests (up to
// 1 MiB) share 2 MiB segments, larger ones get a segment of their own size rounded
// up; a free block serves a request when it is at most twice as large, or can be
// split; neighbors merge when freed. Of a device, a block is taken for the calling thread's current stream and goes
// back to that stream's blocks, at once where no other stream used it (whose order is that of its work), else when
// the events of the others have passed. When the device has no memory left, or the cap
// is reached, the cache is flushed and the request tried once more before
// Error{kResourceExhausted}. Thread-safe.
class CachingAllocator {
 public:
  struct Options {
    size_t cap_bytes = 0;         // hard limit on reserved bytes; 0 = none
    size_t high_water_bytes = 0;  // free cached bytes above this are returned on free(); 0 = keep all
  };

  explicit CachingAllocator(std::unique_ptr<Allocator> source);
  ~CachingAllocator();

  // At least size_bytes (0 is allowed), aligned to kAlignment, charged to the
  // calling thread's owner. Throws Error{kResourceExhausted} naming the size, the cap
  // and what is in use.
  void* allocate(size_t size_bytes);
  void free(void* data);
  // Returns a storage that gives its block back here. With `from`, the memory comes from that allocator; it is counted
  // here but never cached or split (see storage_allocator.h).
  Storage allocate_storage(size_t size_bytes, StorageAllocator* from = nullptr);

  void set_options(Options options);
  // Returns free segments to the device until at most `keep_bytes` are cached. If more is cached between blocks in use,
  // the contents of those free blocks are discarded. Returns the number of bytes released.
  size_t trim(size_t keep_bytes = 0);

  AllocatorStats stats() const;
  std::vector<OwnerBytes> owners() const;  // owners that ever had bytes
  uint64_t live_bytes_of(OwnerId owner) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The process-wide allocator of host memory; never destroyed.
CachingAllocator& cpu_allocator();
// Host memory, mapped from the system.
std::unique_ptr<Allocator> make_cpu_source();
// The allocator of a device, over the raw memory of its DeviceRuntime; never destroyed. Throws Error{kUnimplemented} if
// the device does not exist.
CachingAllocator& allocator_for(Device device);

}  // namespace tensord
