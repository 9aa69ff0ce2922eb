#pragma once

#include <cstdint>
#include <string>

#include "core/base/device.h"

namespace tensord::server {

// Client memory registered under a name. Unmapped when the registry and all ranges have released it. The client may
// write to it at any time, even while a model reads. The object is immutable and thread-safe; its contents are not.
class SharedRegion {
 public:
  // Identifies a byte of the underlying memory, independent of the region's name.
  struct Origin {
    uint64_t space = 0, object = 0, offset = 0;
  };

  virtual ~SharedRegion() = default;
  virtual const std::string& name() const = 0;
  virtual uint64_t size_bytes() const = 0;
  // Address for the CPU; null: not accessible.
  virtual uint8_t* data() const = 0;
  // Address for the engine's kernels on device(); null: they cannot reach it.
  virtual uint8_t* device_data() const { return nullptr; }
  virtual Device device() const { return {}; }
  // The client has removed the memory.
  virtual bool is_lost() const = 0;
  // Of the first byte.
  virtual Origin origin() const = 0;
  // Bytes without backing memory at registration; accessing them allocates memory.
  virtual uint64_t sparse_bytes() const { return 0; }
  // Copy out of and into the region. REQUIRES: the bytes are inside of it. Throw Error{kFailedPrecondition} on failure;
  // if data() is not null, check is_lost() instead. The source of a write must not overlap the destination, unless it
  // is in the region itself.
  virtual void read(uint64_t offset, void* to, uint64_t count) const = 0;
  virtual void write(uint64_t offset, const void* from, uint64_t count) const = 0;
};

}  // namespace tensord::server
