#include "server/memory/system_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/fault_guard.h"
#include "core/base/file_descriptor.h"

namespace tensord::server {
namespace {

constexpr uint64_t kBlockBytes = 512;  // unit of st_blocks

// Keys reserved for other uses: Triton's Python backend and the C library's semaphores.
constexpr std::string_view kReservedPrefixes[] = {"triton_python_backend_shm_region_", "sem."};

void check_key(const SystemRegion::Place& place) {
  std::string_view key = place.key;
  while (key.starts_with('/')) key.remove_prefix(1);
  const bool is_name = !key.empty() && key != "." && key != ".." && key.size() <= NAME_MAX &&
                       key.find('/') == std::string_view::npos && key.find('\0') == std::string_view::npos;
  check(is_name, "cannot register shared memory region '", place.name, "' - invalid shm key '",
        place.key.substr(0, NAME_MAX), "': it must be the name of a shared memory object");
  for (const std::string_view prefix : kReservedPrefixes) {
    check(!key.starts_with(prefix), "cannot register shared memory region '", place.name, "' with key '", place.key,
          "' as the key contains the reserved prefix '", prefix, "'");
  }
}

// Opens the object and checks that the region lies within it.
int open_object(const SystemRegion::Place& place) {
  check_key(place);
  const int file = shm_open(place.key.c_str(), O_RDWR | O_NONBLOCK, 0);
  if (file < 0) {
    fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, "Unable to open shared memory region: '",
         place.key, "': ", std::strerror(errno));
  }
  return file;
}

// Throws Error if the region does not lie within the object; otherwise returns the object's status.
struct stat check_bounds(const SystemRegion::Place& place, int file) {
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

// A mapping of the whole pages around the region.
struct SystemRegion::Mapping {
  Mapping(const Place& place, int file, const struct stat& object) : device(object.st_dev), inode(object.st_ino) {
    const auto real_bytes = static_cast<uint64_t>(object.st_blocks) * kBlockBytes;
    const auto object_bytes = static_cast<uint64_t>(object.st_size);
    sparse_bytes = std::min(place.size_bytes, object_bytes - std::min(object_bytes, real_bytes));
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
  uint64_t margin = 0;  // bytes between the mapping's start and the region
  uint64_t sparse_bytes = 0;
  uint64_t size_bytes = 0;
  std::optional<FaultGuard> guard;
};

SystemRegion::SystemRegion(Place place) : place_(std::move(place)) {
  const FileDescriptor file(open_object(place_));
  mapping_ = std::make_unique<Mapping>(place_, file.get(), check_bounds(place_, file.get()));
}

SystemRegion::~SystemRegion() = default;

uint64_t SystemRegion::sparse_bytes() const { return mapping_->sparse_bytes; }
uint8_t* SystemRegion::data() const { return mapping_->begin + mapping_->margin; }
bool SystemRegion::is_lost() const { return mapping_->guard->has_faulted(); }

SharedRegion::Origin SystemRegion::origin() const {
  return {.space = mapping_->device, .object = mapping_->inode, .offset = place_.offset};
}

void SystemRegion::read(uint64_t offset, void* to, uint64_t count) const {
  if (count > 0) std::memcpy(to, data() + offset, count);
}

void SystemRegion::write(uint64_t offset, const void* from, uint64_t count) const {
  if (count > 0 && from != data() + offset) std::memmove(data() + offset, from, count);
}

}  // namespace tensord::server
