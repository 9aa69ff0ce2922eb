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
  // Of a device: after all work that may use it.
  virtual void free(void* data, size_t size_bytes) = 0;
  // The range stays allocated, but its contents are not needed; the device may take its memory until it is used again.
  virtual void purge(void* data, size_t size_bytes) { (void)data, (void)size_bytes; }
  virtual Device device() const = 0;
  // Whether freed blocks may be kept, cut and given out again; else every block is allocated and freed by itself, with
  // the size asked for.
  virtual bool is_cached() const { return true; }
};

// Alignment of every block: a cache line, and what AVX-512 loads like best.
inline constexpr size_t kAlignment = 64;

// Who memory is charged to: a model version ("resnet50/1"), a job, "server". Bytes
// stay charged to the owner that allocated them until they are freed, on whatever
// thread that happens.
using OwnerId = uint32_t;
inline constexpr OwnerId kServerOwner = 0;

// Finds or makes the owner of this name. Names of owners without bytes are kept.
OwnerId memory_owner(const std::string& name);
std::string memory_owner_name(OwnerId owner);  // empty when there is none

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
