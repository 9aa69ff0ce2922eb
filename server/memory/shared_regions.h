#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/storage.h"
#include "server/memory/cuda_region.h"
#include "server/memory/system_region.h"

namespace tensord::server {

// Bytes of a region that a tensor of a request lies in, or is to be written to. Keeps the region mapped.
//
// The client can change the bytes between two reads of them. So whoever acts on values (lengths of strings, booleans,
// indices: anything but floating point numbers) copies them out first (copy_to) and looks at the copy. What is read in
// place (as_storage) must not be kept beyond the answer.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region;
  uint64_t offset = 0;      // into the region
  uint8_t* data = nullptr;  // where the processor sees the bytes; null: they lie on a GPU, and are copied
  uint64_t size_bytes = 0;

  // Throws Error{kFailedPrecondition} when the memory was taken away. To be called after the bytes were read or
  // written, before what was made of them goes out.
  void check_alive() const;
  // The bytes as they are now, `size_bytes` of them; then check_alive().
  void copy_to(void* out) const;
  // Writes the first `count` bytes; then check_alive(). REQUIRES: count <= size_bytes. The same bytes in place already
  // (a model that returns its input) cost nothing. These two throw Error{kFailedPrecondition} too when a GPU does not
  // do it.
  void write(const void* from, uint64_t count) const;
  // The bytes where they lie, not writable. Of any alignment. REQUIRES: data, here and for results.
  Storage as_storage() const;
  // The same for results. Whoever reads them back must expect any values; check_alive() then.
  Storage as_writable_storage() const;
  // Whether bytes of the other are also bytes of this, under whichever names.
  bool overlaps(const SharedRange& other) const;
};

// The regions that clients have registered, by name, of both kinds: `Region` is SystemRegion or CudaRegion. A name is
// of one region only. Thread-safe. When it is off, every call but list() throws Error{kUnimplemented}.
class SharedRegions {
 public:
  // Counts bytes of the server's memory for as long as what it gives is there. Throws Error{kResourceExhausted}.
  using Charge = std::function<std::shared_ptr<const void>(uint64_t bytes)>;
  // `charge` counts what regions have no memory for as they are registered; null: nothing is counted.
  explicit SharedRegions(bool is_enabled, Charge charge = nullptr)
      : is_enabled_(is_enabled), charge_(std::move(charge)) {}

  bool is_enabled() const { return is_enabled_; }
  // Throws what Region's constructor throws, {kAlreadyExists} for a name that is taken and {kResourceExhausted} for one
  // too many.
  template <class Region = SystemRegion>
  void add(typename Region::Place place);
  // Requests that use the region go on with it; until the last of them has ended, or the name is given anew, it is
  // listed and found. A name that no region of this kind has is not an error.
  template <class Region = SystemRegion>
  void remove(const std::string& name);
  template <class Region = SystemRegion>
  void remove_all();
  // All regions of this kind for an empty name. Throws Error{kNotFound}.
  template <class Region = SystemRegion>
  std::vector<typename Region::Place> list(const std::string& name) const;
  // Of either kind. Throws Error: {kNotFound} for a name that is not registered, {kInvalidArgument} for bytes outside
  // of the region, {kFailedPrecondition} when it is lost.
  SharedRange find(const std::string& name, uint64_t offset, uint64_t size_bytes) const;

 private:
  using Regions = std::map<std::string, std::shared_ptr<const SharedRegion>>;
  void check_enabled() const;
  // Throws Error when no region of this name can come.
  void check_room(const std::string& name) const TENSORD_REQUIRES(mutex_);
  void record_leaving(const std::string& name, const std::shared_ptr<const SharedRegion>& region)
      TENSORD_REQUIRES(mutex_);

  const bool is_enabled_;
  const Charge charge_;
  mutable Mutex mutex_;
  Regions regions_ TENSORD_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<const SharedRegion>> leaving_
      TENSORD_GUARDED_BY(mutex_);  // removed, and used by requests yet
};

}  // namespace tensord::server
