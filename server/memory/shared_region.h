#pragma once

#include <cstdint>
#include <string>

namespace tensord::server {

// Memory of a client that it registered under a name. Let go of when the registry and all ranges have. The client may
// write to it at any time, also while a model reads. Immutable and thread-safe; what lies in it is not.
class SharedRegion {
 public:
  // A byte of the memory behind a region: the same for all names that clients gave it.
  struct Origin {
    uint64_t space = 0, object = 0, offset = 0;
  };

  virtual ~SharedRegion() = default;
  virtual const std::string& name() const = 0;
  virtual uint64_t size_bytes() const = 0;
  // Where the processor sees it; null: it does not.
  virtual uint8_t* data() const = 0;
  // The client took the memory away.
  virtual bool is_lost() const = 0;
  // Of the first byte.
  virtual Origin origin() const = 0;
  // Bytes that had no memory when it was registered: reading or writing makes them real.
  virtual uint64_t sparse_bytes() const { return 0; }
  // Copies out of the region and into it. REQUIRES: the bytes lie in it. Throw Error{kFailedPrecondition} when that
  // fails; where data() is not null, look at is_lost() instead. What is written overlaps nothing but, perhaps, the
  // region itself.
  virtual void read(uint64_t offset, void* to, uint64_t count) const = 0;
  virtual void write(uint64_t offset, const void* from, uint64_t count) const = 0;
};

}  // namespace tensord::server
