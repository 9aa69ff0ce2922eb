#include "server/memory/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>

#include "core/base/delay_point.h"
#include "core/base/error.h"
#include "server/memory/fault_guard.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxRegions = 1024;
constexpr size_t kMaxNameBytes = 1024;

// Keys of memory that is not made for clients: what Triton keeps for itself, and the C library's semaphores.
constexpr std::string_view kReservedPrefixes[] = {"triton_python_backend_shm_region_", "sem."};

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

void check_key(const SharedRegion::Place& place) {
  std::string_view key = place.key;
  while (key.starts_with('/')) key.remove_prefix(1);
  const bool is_name = !key.empty() && key != "." && key != ".." && key.size() <= NAME_MAX &&
                       key.find('/') == std::string_view::npos && key.find('\0') == std::string_view::npos;
  check(is_name, "failed to register shared memory region '", place.name,
        "': the key must be the name of a shared memory object, got '", place.key.substr(0, NAME_MAX), "'");
  for (const std::string_view prefix : kReservedPrefixes) {
    check(!key.starts_with(prefix), "cannot register shared memory region '", place.name, "' with key '", place.key,
          "' as the key contains the reserved prefix '", prefix, "'");
  }
}

// Opens the object and checks that the place lies within it.
int open_object(const SharedRegion::Place& place) {
  check_key(place);
  const int file = shm_open(place.key.c_str(), O_RDWR | O_NONBLOCK, 0);
  if (file < 0) {
    fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, "Unable to open shared memory region: '",
         place.key, "': ", std::strerror(errno));
  }
  return file;
}

// Throws Error when the place does not lie within the object; what the object is otherwise.
struct stat check_bounds(const SharedRegion::Place& place, int file) {
  struct stat status {};
  const bool is_object = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0;
  check(is_object, "Invalid shared memory region: '", place.key, "'");
  const auto there = static_cast<uint64_t>(status.st_size);
  check(place.size_bytes > 0, "failed to register shared memory region '", place.name,
        "': invalid args: byte_size must be above 0");
  check(place.offset <= there && place.size_bytes <= there - place.offset, "failed to register shared memory region '",
        place.name, "': invalid args: offset ", place.offset, " and byte_size ", place.size_bytes, " exceed the ",
        there, " bytes of '", place.key, "'");
  return status;
}

}  // namespace

// Whole pages around the region.
struct SharedRegion::Mapping {
  Mapping(const Place& place, int file, const struct stat& object) : device(object.st_dev), inode(object.st_ino) {
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    margin = place.offset % page;
    size_bytes = (margin + place.size_bytes + page - 1) / page * page;
    void* mapped =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(place.offset - margin));
    if (mapped == MAP_FAILED) {
      fail(ErrorCode::kResourceExhausted, "failed to register shared memory region '", place.name,
           "': ", std::strerror(errno));
    }
    begin = static_cast<uint8_t*>(mapped);
    try {
      guard.emplace(begin, size_bytes);
    } catch (...) {
      munmap(begin, size_bytes);
      throw;
    }
  }
  ~Mapping() {
    guard.reset();
    munmap(begin, size_bytes);
  }

  dev_t device = 0;
  ino_t inode = 0;
  uint8_t* begin = nullptr;
  uint64_t margin = 0;  // bytes before the region
  uint64_t size_bytes = 0;
  std::optional<FaultGuard> guard;
};

SharedRegion::SharedRegion(Place place) : place_(std::move(place)) {
  const FileDescriptor file(open_object(place_));
  mapping_ = std::make_unique<Mapping>(place_, file.number(), check_bounds(place_, file.number()));
}

SharedRegion::~SharedRegion() = default;

uint8_t* SharedRegion::data() const { return mapping_->begin + mapping_->margin; }
bool SharedRegion::is_lost() const { return mapping_->guard->has_faulted(); }
bool SharedRegion::has_same_object(const SharedRegion& other) const {
  return mapping_->device == other.mapping_->device && mapping_->inode == other.mapping_->inode;
}

void SharedRange::check_alive() const {
  if (!region->is_lost()) return;
  fail(ErrorCode::kFailedPrecondition, "the memory of shared memory region '", region->place().name,
       "' was taken away by its owner; register it again");
}

void SharedRange::copy_to(void* out) const {
  TENSORD_DELAY("memory.copy");
  if (size_bytes > 0) std::memcpy(out, data, size_bytes);
  check_alive();
}

void SharedRange::write(const void* from, uint64_t count) const {
  // A view of the region itself may overlap the target.
  if (count > 0 && from != data) std::memmove(data, from, count);
  check_alive();
}

Storage SharedRange::as_storage() const {
  return wrap_storage(
      data, size_bytes, [region = region] {}, {}, /*is_writable=*/false);
}

Storage SharedRange::as_writable_storage() const {
  return wrap_storage(data, size_bytes, [region = region] {});
}

bool SharedRange::overlaps(const SharedRange& other) const {
  if (!region->has_same_object(*other.region)) return false;
  const auto first_byte = [](const SharedRange& range) {
    return range.region->place().offset + static_cast<uint64_t>(range.data - range.region->data());
  };
  const uint64_t here = first_byte(*this), there = first_byte(other);
  return here < there + other.size_bytes && there < here + size_bytes;
}

void SharedRegions::check_enabled() const {
  if (is_enabled_) return;
  fail(ErrorCode::kUnimplemented,
       "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.");
}

void SharedRegions::add(SharedRegion::Place place) {
  check_enabled();
  check(!place.name.empty(), "shared memory region must have a name");
  check(place.name.size() <= kMaxNameBytes, "the name of a shared memory region must have at most ", kMaxNameBytes,
        " bytes, got ", place.name.size());
  const std::string name = place.name;
  const std::lock_guard lock(mutex_);
  if (regions_.contains(name)) {
    fail(ErrorCode::kAlreadyExists, "shared memory region '", name, "' already in manager");
  }
  if (regions_.size() >= kMaxRegions) {
    fail(ErrorCode::kResourceExhausted, "failed to register shared memory region '", name, "': there are ", kMaxRegions,
         " already");
  }
  regions_.emplace(name, std::make_shared<const SharedRegion>(std::move(place)));
}

void SharedRegions::remove(const std::string& name) {
  check_enabled();
  std::shared_ptr<const SharedRegion> removed;  // unmapped without the lock
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  removed = std::move(found->second);
  regions_.erase(found);
}

void SharedRegions::remove_all() {
  check_enabled();
  std::map<std::string, std::shared_ptr<const SharedRegion>> removed;
  const std::lock_guard lock(mutex_);
  removed.swap(regions_);
}

std::vector<SharedRegion::Place> SharedRegions::list(const std::string& name) const {
  check_enabled();
  const std::lock_guard lock(mutex_);
  std::vector<SharedRegion::Place> places;
  for (const auto& [registered, region] : regions_) {
    if (name.empty() || name == registered) places.push_back(region->place());
  }
  if (!name.empty() && places.empty()) {
    fail(ErrorCode::kNotFound, "Unable to find system shared memory region: '", name, "'");
  }
  return places;
}

SharedRange SharedRegions::find(const std::string& name, uint64_t offset, uint64_t size_bytes) const {
  check_enabled();
  SharedRange range;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(name);
    if (found == regions_.end()) fail(ErrorCode::kNotFound, "Unable to find shared memory region: '", name, "'");
    range.region = found->second;
  }
  const uint64_t there = range.region->place().size_bytes;
  check(offset < there, "Invalid offset for shared memory region: '", name, "'");
  check(size_bytes <= there - offset, "Invalid offset + byte size for shared memory region: '", name, "'");
  range.check_alive();
  range.data = range.region->data() + offset;
  range.size_bytes = size_bytes;
  return range;
}

}  // namespace tensord::server
