#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/storage.h"

namespace tensord::server {

// Memory that a client made with shm_open and registered under a name, mapped here for reading and writing. Unmapped
// when the registry and all ranges have let go of it. The client may write it at any time, also while a model reads,
// and may take the memory away (ftruncate): then the region reads as zeros, the process lives, and is_lost() stays true
// until the client registers the region anew.
class SharedRegion {
 public:
  struct Place {
    std::string name;
    std::string key;      // of shm_open
    uint64_t offset = 0;  // into the object, bytes
    uint64_t size_bytes = 0;
  };
  // Throws Error: {kInvalidArgument} for a key, offset or size that cannot be, {kNotFound} when there is no such
  // object, {kResourceExhausted} when it cannot be mapped.
  explicit SharedRegion(Place place);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  const Place& place() const { return place_; }
  uint8_t* data() const;
  bool is_lost() const;
  // Of the object behind two regions, whatever they are called.
  bool has_same_object(const SharedRegion& other) const;

 private:
  struct Mapping;
  Place place_;
  std::unique_ptr<Mapping> mapping_;
};

// Bytes of a region that a tensor of a request lies in, or is to be written to. Keeps the region mapped.
//
// The client can change the bytes between two reads of them. So whoever acts on values (lengths of strings, booleans,
// indices: anything but floating point numbers) copies them out first (copy_to) and looks at the copy. What is read in
// place (as_storage) must not be kept beyond the answer.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region;
  uint8_t* data = nullptr;
  uint64_t size_bytes = 0;

  // Throws Error{kFailedPrecondition} when the memory was taken away. To be called after the bytes were read or
  // written, before what was made of them goes out.
  void check_alive() const;
  // The bytes as they are now, `size_bytes` of them; then check_alive().
  void copy_to(void* out) const;
  // Writes the first `count` bytes; then check_alive(). REQUIRES: count <= size_bytes. The same bytes in place already
  // (a model that returns its input) cost nothing.
  void write(const void* from, uint64_t count) const;
  // The bytes where they lie, not writable. Of any alignment.
  Storage as_storage() const;
  // The same for results. Whoever reads them back must expect any values; check_alive() then.
  Storage as_writable_storage() const;
  // Whether bytes of the other are also bytes of this, under whichever names.
  bool overlaps(const SharedRange& other) const;
};

// The regions that clients have registered, by name. Thread-safe. When it is off, every call throws
// Error{kUnimplemented}.
class SharedRegions {
 public:
  explicit SharedRegions(bool is_enabled) : is_enabled_(is_enabled) {}

  bool is_enabled() const { return is_enabled_; }
  // Throws what SharedRegion throws, {kAlreadyExists} for a name that is taken and {kResourceExhausted} for one too
  // many.
  void add(SharedRegion::Place place);
  // Requests that use the region go on with it. An unknown name is not an error.
  void remove(const std::string& name);
  void remove_all();
  // All regions for an empty name. Throws Error{kNotFound}.
  std::vector<SharedRegion::Place> list(const std::string& name) const;
  // Throws Error: {kNotFound} for a name that is not registered, {kInvalidArgument} for bytes outside of the region,
  // {kFailedPrecondition} when it is lost.
  SharedRange find(const std::string& name, uint64_t offset, uint64_t size_bytes) const;

 private:
  void check_enabled() const;

  const bool is_enabled_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>> regions_;
};

}  // namespace tensord::server
