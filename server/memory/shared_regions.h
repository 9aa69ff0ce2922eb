#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/tensor.h"
#include "server/memory/cuda_region.h"
#include "server/memory/system_region.h"

namespace tensord::server {

// The part of a region that holds a request's tensor, or that an output is written to. Keeps the region mapped.
// The client may change the bytes between two reads. Code that acts on values (string lengths, booleans, indices;
// everything but floating-point numbers) must copy them first (copy_to) and use the copy. Memory used in place
// (as_storage) must not be kept after the answer.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region;
  uint64_t offset = 0;      // in the region
  uint8_t* data = nullptr;  // address for the CPU; null: on a GPU
  // Address for kernels of region->device(); null: they cannot reach it.
  uint8_t* device_data = nullptr;
  uint64_t size_bytes = 0;

  // Throws Error{kFailedPrecondition} if the memory was removed. Call it after reading or writing, before results are
  // returned.
  void check_alive() const;
  // Copies the current `size_bytes` bytes; then check_alive().
  void copy_to(void* out) const;
  // Writes the first `count` bytes; then check_alive(). REQUIRES: count <= size_bytes. Free if the bytes are already in
  // place (a model that returns its input). Both functions also throw Error{kFailedPrecondition} if a GPU fails.
  void write(const void* from, uint64_t count) const;
  // The same for a contiguous tensor of a device, whose work on it is done. REQUIRES: device_data.
  void write(const Tensor& from) const;
  // The bytes in place, read-only, with any alignment. REQUIRES: data or device_data, here and for results.
  Storage as_storage() const;
  // The same for results. Values that are read back may be anything; then check_alive().
  Storage as_writable_storage() const;
  // Whether the ranges share bytes, under any names.
  bool overlaps(const SharedRange& other) const;

 private:
  Storage wrapped(bool is_writable) const;
};

// The regions that clients have registered, by name, of both kinds: `Region` is SystemRegion or CudaRegion. A name
// belongs to one region. Thread-safe. If shared memory is disabled, every call except list() throws
// Error{kUnimplemented}.
class SharedRegions {
 public:
  // Charges bytes of the server's memory until the result is released. Throws Error{kResourceExhausted}.
  using Charge = std::function<std::shared_ptr<const void>(uint64_t bytes)>;
  // `charge` is called for memory that regions lack at registration; null: nothing is charged.
  explicit SharedRegions(bool is_enabled, Charge charge = nullptr)
      : is_enabled_(is_enabled), charge_(std::move(charge)) {}

  bool is_enabled() const { return is_enabled_; }
  // Throws errors of Region's constructor, {kAlreadyExists} for a name that is in use and {kResourceExhausted} for one
  // too many.
  template <class Region = SystemRegion>
  void add(typename Region::Place place);
  // Requests that use the region continue with it; it is listed and found until the last one has ended or the name is
  // registered again. Unknown names are ignored.
  template <class Region = SystemRegion>
  void remove(const std::string& name);
  template <class Region = SystemRegion>
  void remove_all();
  // An empty name lists all regions of this kind. Throws Error{kNotFound}.
  template <class Region = SystemRegion>
  std::vector<typename Region::Place> list(const std::string& name) const;
  // Of either kind. Throws Error: {kNotFound} for an unknown name, {kInvalidArgument} for bytes outside of the region,
  // {kFailedPrecondition} if it is lost.
  SharedRange find(const std::string& name, uint64_t offset, uint64_t size_bytes) const;

 private:
  using Regions = std::map<std::string, std::shared_ptr<const SharedRegion>>;
  void check_enabled() const;
  // Throws Error if no region of this name can be registered.
  void check_room(const std::string& name) const TENSORD_REQUIRES(mutex_);
  void record_leaving(const std::string& name, const std::shared_ptr<const SharedRegion>& region)
      TENSORD_REQUIRES(mutex_);

  const bool is_enabled_;
  const Charge charge_;
  mutable Mutex mutex_;
  Regions regions_ TENSORD_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<const SharedRegion>> leaving_
      TENSORD_GUARDED_BY(mutex_);  // unregistered, but still used by requests
};

}  // namespace tensord::server
