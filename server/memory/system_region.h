#pragma once

#include <memory>

#include "server/memory/shared_region.h"

namespace tensord::server {

// Memory that a client created with shm_open, mapped for reading and writing. If the client truncates it, the region
// reads as zeros, the process survives, and is_lost() stays true until it is registered again.
class SystemRegion final : public SharedRegion {
 public:
  static constexpr const char* kKind = "system";
  struct Place {
    std::string name;
    std::string key;      // of shm_open
    uint64_t offset = 0;  // in the object, bytes
    uint64_t size_bytes = 0;
  };
  // Throws Error: {kInvalidArgument} for an invalid key, offset or size, {kNotFound} if the object does not exist,
  // {kResourceExhausted} if it cannot be mapped.
  explicit SystemRegion(Place place);
  ~SystemRegion() override;
  SystemRegion(const SystemRegion&) = delete;
  SystemRegion& operator=(const SystemRegion&) = delete;

  const Place& place() const { return place_; }
  const std::string& name() const override { return place_.name; }
  uint64_t size_bytes() const override { return place_.size_bytes; }
  uint64_t sparse_bytes() const override;
  uint8_t* data() const override;
  bool is_lost() const override;
  Origin origin() const override;
  void read(uint64_t offset, void* to, uint64_t count) const override;
  void write(uint64_t offset, const void* from, uint64_t count) const override;

 private:
  struct Mapping;
  Place place_;
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace tensord::server
