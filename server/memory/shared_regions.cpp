#include "server/memory/shared_regions.h"

#include "core/base/delay_point.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/device_runtime.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxRegions = 1024;
constexpr size_t kMaxNameBytes = 1024;

}  // namespace

void SharedRange::check_alive() const {
  if (!region->is_lost()) return;
  fail(ErrorCode::kFailedPrecondition, "the memory of shared memory region '", region->name(),
       "' was taken away by its owner; register it again");
}

void SharedRange::copy_to(void* out) const {
  TENSORD_DELAY("memory.copy");
  region->read(offset, out, size_bytes);
  check_alive();
}

void SharedRange::write(const void* from, uint64_t count) const {
  region->write(offset, from, count);
  check_alive();
}

void SharedRange::write(const Tensor& from) const {
  if (from.raw_data() != device_data) {
    // A client may ask for a result over the input that it is.
    const Tensor own = from.storage()->is_writable() ? from : from.clone();
    Tensor::from_storage(as_writable_storage(), own.sizes(), own.strides(), 0, own.dtype()).copy_from(own);
    synchronize(region->device());
  }
  check_alive();
}

Storage SharedRange::as_storage() const { return wrapped(/*is_writable=*/false); }
Storage SharedRange::as_writable_storage() const { return wrapped(/*is_writable=*/true); }

Storage SharedRange::wrapped(bool is_writable) const {
  return wrap_storage(
      data ? data : device_data, size_bytes, [region = region] {}, data ? Device{} : region->device(), is_writable);
}

bool SharedRange::overlaps(const SharedRange& other) const {
  const SharedRegion::Origin ours = region->origin(), theirs = other.region->origin();
  if (ours.space != theirs.space || ours.object != theirs.object) return false;
  const uint64_t here = ours.offset + offset, there = theirs.offset + other.offset;
  return here < there + other.size_bytes && there < here + size_bytes;
}

void SharedRegions::check_enabled() const {
  if (is_enabled_) return;
  fail(ErrorCode::kUnimplemented,
       "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.");
}

void SharedRegions::check_room(const std::string& name) const {
  if (regions_.contains(name)) {
    fail(ErrorCode::kAlreadyExists, "shared memory region '", name, "' already in manager");
  }
  if (regions_.size() >= kMaxRegions) {
    fail(ErrorCode::kResourceExhausted, "failed to register shared memory region '", name, "': there are ", kMaxRegions,
         " already");
  }
}

template <class Region>
void SharedRegions::add(typename Region::Place place) {
  check_enabled();
  check(!place.name.empty(), "failed to register shared memory region '': invalid args: it must have a name");
  check(place.name.size() <= kMaxNameBytes, "the name of a shared memory region must have at most ", kMaxNameBytes,
        " bytes, got ", place.name.size());
  {
    const MutexLock lock(mutex_);
    check_room(place.name);
  }
  const auto region = std::make_shared<const Region>(std::move(place));  // a GPU may take a second, so no lock is held
  // Charges the mapping to the server: a client can create a shared-memory object of any size without using memory.
  struct Charged {
    std::shared_ptr<const SharedRegion> region;
    std::shared_ptr<const void> charge;
  };
  const auto charged = std::make_shared<const Charged>(
      Charged{region, charge_ && region->sparse_bytes() > 0 ? charge_(region->sparse_bytes()) : nullptr});
  const MutexLock lock(mutex_);
  check_room(region->name());
  leaving_.erase(region->name());
  regions_.emplace(region->name(), std::shared_ptr<const SharedRegion>(charged, region.get()));
}

template <class Region>
void SharedRegions::remove(const std::string& name) {
  check_enabled();
  std::shared_ptr<const SharedRegion> removed;  // destroyed after the lock, because unmapping is slow
  const MutexLock lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end() || dynamic_cast<const Region*>(found->second.get()) == nullptr) return;
  removed = std::move(found->second);
  regions_.erase(found);
  record_leaving(name, removed);
}

template <class Region>
void SharedRegions::remove_all() {
  check_enabled();
  Regions removed;
  const MutexLock lock(mutex_);
  for (auto next = regions_.begin(); next != regions_.end();) {
    const auto region = next++;
    if (dynamic_cast<const Region*>(region->second.get())) removed.insert(regions_.extract(region));
  }
  for (const auto& [name, region] : removed) record_leaving(name, region);
}

void SharedRegions::record_leaving(const std::string& name, const std::shared_ptr<const SharedRegion>& region) {
  std::erase_if(leaving_, [](const auto& one) { return one.second.expired(); });
  leaving_[name] = region;
}

template <class Region>
std::vector<typename Region::Place> SharedRegions::list(const std::string& name) const {
  std::vector<typename Region::Place> places;
  const auto add = [&](const std::string& registered, const SharedRegion* region) {
    if (!name.empty() && name != registered) return;
    if (const auto* of_kind = dynamic_cast<const Region*>(region)) places.push_back(of_kind->place());
  };
  std::vector<std::shared_ptr<const SharedRegion>> held;  // destroyed after the lock
  const MutexLock lock(mutex_);
  for (const auto& [registered, region] : regions_) add(registered, region.get());
  for (const auto& [registered, region] : leaving_) {
    held.push_back(region.lock());
    add(registered, held.back().get());
  }
  if (!name.empty() && places.empty()) {
    fail(ErrorCode::kNotFound, "Unable to find ", Region::kKind, " shared memory region: '", name, "'");
  }
  return places;
}

SharedRange SharedRegions::find(const std::string& name, uint64_t offset, uint64_t size_bytes) const {
  check_enabled();
  SharedRange range;
  {
    const MutexLock lock(mutex_);
    const auto found = regions_.find(name);
    const auto leaving = leaving_.find(name);
    if (found != regions_.end()) {
      range.region = found->second;
    } else if (leaving != leaving_.end()) {
      range.region = leaving->second.lock();
    }
    if (!range.region) fail(ErrorCode::kNotFound, "Unable to find shared memory region: '", name, "'");
  }
  const uint64_t there = range.region->size_bytes();
  check(offset < there, "Invalid offset for shared memory region: '", name, "'");
  check(size_bytes <= UINT64_MAX - offset, "Integer overflow detected: byte_size (", size_bytes, ") + offset (", offset,
        ") exceeds maximum value (", UINT64_MAX, ") for region '", name, "'");
  check(size_bytes <= there - offset, "Invalid offset + byte size for shared memory region: '", name, "'");
  range.check_alive();
  range.offset = offset;
  if (uint8_t* const data = range.region->data()) range.data = data + offset;
  if (uint8_t* const data = range.region->device_data()) range.device_data = data + offset;
  range.size_bytes = size_bytes;
  return range;
}

template void SharedRegions::add<SystemRegion>(SystemRegion::Place);
template void SharedRegions::add<CudaRegion>(CudaRegion::Place);
template void SharedRegions::remove<SystemRegion>(const std::string&);
template void SharedRegions::remove<CudaRegion>(const std::string&);
template void SharedRegions::remove_all<SystemRegion>();
template void SharedRegions::remove_all<CudaRegion>();
template std::vector<SystemRegion::Place> SharedRegions::list<SystemRegion>(const std::string&) const;
template std::vector<CudaRegion::Place> SharedRegions::list<CudaRegion>(const std::string&) const;

}  // namespace tensord::server
