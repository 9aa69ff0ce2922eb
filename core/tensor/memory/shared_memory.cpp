#include "core/tensor/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/base/memory_limit.h"
#include "core/base/mutex.h"

namespace tensord {
namespace {

struct Region {
  std::shared_ptr<const FileDescriptor> file;
  uint64_t size_bytes = 0;
};

// Mapped regions by address; used until the last storage is freed.
struct Regions {
  Mutex mutex;
  std::map<uintptr_t, Region> all TENSORD_GUARDED_BY(mutex);
};
Regions& regions() {
  static auto* const made = new Regions;
  return *made;
}

void add_region(void* data, std::shared_ptr<const FileDescriptor> file, uint64_t size_bytes) {
  const MutexLock lock(regions().mutex);
  regions().all[reinterpret_cast<uintptr_t>(data)] = {std::move(file), size_bytes};
}

// Removed from the table first: another mapping may get the address as soon as it is unmapped.
uint64_t unmap_region(void* data) {
  Region region;
  {
    const MutexLock lock(regions().mutex);
    const auto it = regions().all.find(reinterpret_cast<uintptr_t>(data));
    region = std::move(it->second);
    regions().all.erase(it);
  }
  munmap(data, region.size_bytes);
  return region.size_bytes;
}

std::string system_error() { return std::strerror(errno); }

// Bytes of the regions made here. The kernel overcommits and would kill a process later, so the sum is limited.
std::atomic<uint64_t> taken{0};

void give_back(void* data) { taken -= unmap_region(data); }

bool reserve(int file, size_t size_bytes) {
  if (ftruncate(file, static_cast<off_t>(size_bytes)) != 0) return false;
  int status = 0;
  do {
    status = posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
  } while (status == EINTR);
  return status == 0;
}

class SharedAllocator final : public StorageAllocator {
 public:
  DataPtr allocate(size_t size_bytes, Device device) override {
    check(device.is_host(), "shared memory is the host's, not that of ", to_string(device));
    const uint64_t limit = memory_limit();
    if (size_bytes > limit) return {};
    if (taken.fetch_add(size_bytes) > limit - size_bytes) {
      taken -= size_bytes;
      return {};
    }
    try {
      void* const data = map_new(size_bytes);
      if (!data) taken -= size_bytes;
      return {data, data, give_back, device};
    } catch (...) {
      taken -= size_bytes;
      throw;
    }
  }
  DeleterFnPtr raw_deleter() const override { return give_back; }

 private:
  // Returns null if there is no memory.
  static void* map_new(size_t size_bytes) {
    auto file = std::make_shared<const FileDescriptor>(memfd_create("tensord", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file->get() < 0) fail(ErrorCode::kResourceExhausted, "shared memory cannot be made: ", system_error());
    if (!reserve(file->get(), size_bytes)) return nullptr;
    if (fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail(ErrorCode::kInternal, "shared memory cannot be sealed: ", system_error());
    void* const data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    if (data == MAP_FAILED) return nullptr;
    add_region(data, std::move(file), size_bytes);
    return data;
  }
};

// Returns whether the file may be written. Throws if it is not a file that another tensord would send.
bool check_sent(int file, uint64_t size_bytes) {
  struct stat found {};
  const int mode = fcntl(file, F_GETFL);
  check(mode >= 0 && fstat(file, &found) == 0, "shared memory: descriptor ", file, ": ", system_error());
  const int seals = fcntl(file, F_GET_SEALS);
  check(S_ISREG(found.st_mode) && seals >= 0, "shared memory: the descriptor is not one of anonymous memory (memfd)");
  check(seals & F_SEAL_SHRINK,
        "shared memory: its size is not sealed, so that it could be taken away while it is read");
  const int access = mode & O_ACCMODE;
  check(access == O_RDONLY || access == O_RDWR, "shared memory: the descriptor cannot be read");
  const auto file_bytes = static_cast<uint64_t>(found.st_size);
  check(size_bytes > 0 && size_bytes <= file_bytes, "shared memory: ", size_bytes,
        " bytes are wanted, the descriptor has ", file_bytes);
  // Reading a hole would allocate memory.
  check(file_bytes <= static_cast<uint64_t>(found.st_blocks) * 512, "shared memory: parts of it have no memory");
  return access == O_RDWR && !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

}  // namespace

StorageAllocator& shared_memory_allocator() {
  static auto* const allocator = new SharedAllocator;
  return *allocator;
}

std::optional<SharedPlace> shared_place(const Storage& storage) {
  if (!storage || !storage->device().is_host()) return {};
  const auto begin = reinterpret_cast<uintptr_t>(storage->data());
  const MutexLock lock(regions().mutex);
  auto it = regions().all.upper_bound(begin);
  if (it == regions().all.begin()) return {};
  --it;
  const uint64_t offset = begin - it->first, size = it->second.size_bytes;
  if (offset >= size || storage->size_bytes() > size - offset) return {};
  return SharedPlace{it->second.file, size, offset};
}

Storage map_shared(int file, uint64_t size_bytes) {
  const bool is_writable = check_sent(file, size_bytes);
  auto own = std::make_shared<const FileDescriptor>(fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (own->get() < 0) fail(ErrorCode::kResourceExhausted, "shared memory: ", system_error());
  void* const data =
      mmap(nullptr, size_bytes, is_writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, own->get(), 0);
  if (data == MAP_FAILED) fail(ErrorCode::kResourceExhausted, "shared memory cannot be mapped: ", system_error());
  add_region(data, std::move(own), size_bytes);
  return wrap_storage(
      data, size_bytes, [data] { unmap_region(data); }, {}, is_writable);
}

}  // namespace tensord
