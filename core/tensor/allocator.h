#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/device.h"
#include "core/base/execution_context.h"

namespace tensord {

// Source of raw device memory under a caching allocator. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory aligned to kAlignment, or null when there is none. size_bytes > 0.
  virtual void* allocate(size_t size_bytes) = 0;
  // Memory of a device is freed after all work that may use it has run.
  virtual void free(void* data, size_t size_bytes) = 0;
  // The range stays allocated, but its contents are not needed. The device may reclaim the pages until they are used
  // again.
  virtual void purge(void* data, size_t size_bytes) { (void)data, (void)size_bytes; }
  virtual Device device() const = 0;
  // Whether freed blocks may be cached, split and reused. Otherwise each block is allocated and freed on its own, with
  // the requested size.
  virtual bool is_cached() const { return true; }
};

// Alignment of every block: a cache line, and the alignment that AVX-512 loads are fastest at.
inline constexpr size_t kAlignment = 64;

// The owner that memory is charged to: a model version ("resnet50/1"), a job, "server". Bytes stay charged to the owner
// that allocated them until they are freed, on whatever thread that happens.
using OwnerId = uint32_t;
inline constexpr OwnerId kServerOwner = 0;

// Finds or makes the owner with this name. Names stay in the table after their bytes are gone.
OwnerId memory_owner(const std::string& name);
std::string memory_owner_name(OwnerId owner);  // empty if there is none

// Sets the calling thread's owner for its scope; scopes nest.
using MemoryOwnerScope = ContextPart<&ExecutionContext::memory_owner>;
inline OwnerId current_memory_owner() { return execution_context().memory_owner; }

struct AllocatorStats {
  uint64_t allocations = 0;     // calls to allocate, ever
  uint64_t cache_hits = 0;      // of those, served from free blocks
  uint64_t out_of_memory = 0;   // requests refused
  uint64_t live_bytes = 0;      // in use by tensors now (rounded block sizes)
  uint64_t cached_bytes = 0;    // held free for reuse
  uint64_t reserved_bytes = 0;  // taken from the device: live + cached
  uint64_t peak_live_bytes = 0;
};

struct OwnerBytes {
  std::string name;
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
};

}  // namespace tensord
