#include "core/tensor/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/private_copy.h"

namespace tensord {
namespace {

int64_t change_ns(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, bool copies) {
  std::shared_ptr<MappedFile> file(new MappedFile(path));
  file->map(copies);
  return file;
}

void MappedFile::map(bool copies) {
  auto descriptor = open_for_reading(path_, copies);
  const int file = descriptor->get();
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(ErrorCode::kInvalidArgument, path_, ": is not a regular file");
  }
  if (status.st_size == 0) fail(ErrorCode::kDataLoss, path_, ": is empty");
  const auto size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) fail(ErrorCode::kResourceExhausted, path_, ": cannot be mapped: ", std::strerror(errno));
  data_ = static_cast<char*>(data);
  size_ = size;
  guard_ = std::make_unique<FaultGuard>(data_, size_);
  changed_ns_ = change_ns(status);
  if (status.st_nlink > 0) file_ = std::move(descriptor);
  madvise(data_, size_, MADV_WILLNEED);
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (data_) munmap(data_, size_);
}

Storage MappedFile::storage(size_t offset, size_t size_bytes) const {
  check_internal(offset <= size_ && size_bytes <= size_ - offset, path_, ": a storage ends after the file");
  return wrap_storage(data_ + offset, size_bytes, [self = shared_from_this()] {});
}

void MappedFile::check_unchanged() const {
  const auto fail_changed = [&](const char* how) {
    fail(ErrorCode::kDataLoss, path_, ": the file was ", how,
         " while it was in use, so its results cannot be trusted; load it again (replace files by renaming others over "
         "them, or use --copy-archives on)");
  };
  if (guard_->has_faulted()) fail_changed("cut off");
  if (!file_) return;
  struct stat status {};
  if (fstat(file_->get(), &status) != 0 || static_cast<size_t>(status.st_size) < size_) fail_changed("cut off");
  if (change_ns(status) != changed_ns_) fail_changed("written to");
}

size_t MappedFile::release_pages() const { return release_mapped_pages(data_, size_); }

size_t release_mapped_pages(char* data, size_t size_bytes) {
  // The kernel has an entry for each page of the address space: whether the page is in memory, and whether it still
  // belongs to the file. A page that was written is private to this process and has to stay.
  constexpr uint64_t kIsPresent = uint64_t{1} << 63, kIsFile = uint64_t{1} << 61;
  const FileDescriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (pagemap.get() < 0) return 0;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (size_bytes + page_bytes - 1) / page_bytes;
  const size_t first = reinterpret_cast<uintptr_t>(data) / page_bytes;
  std::vector<uint64_t> entries(4096);
  size_t released = 0;
  for (size_t page = 0; page < pages; page += entries.size()) {
    const size_t count = std::min(entries.size(), pages - page), bytes = count * sizeof(uint64_t);
    const auto offset = static_cast<off_t>((first + page) * sizeof(uint64_t));
    if (pread(pagemap.get(), entries.data(), bytes, offset) != static_cast<ssize_t>(bytes)) break;
    for (size_t i = 0, end = 0; i < count; i = end + 1) {
      for (end = i; end < count && (entries[end] & kIsPresent) != 0 && (entries[end] & kIsFile) != 0;) ++end;
      if (end > i && madvise(data + (page + i) * page_bytes, (end - i) * page_bytes, MADV_DONTNEED) == 0) {
        released += (end - i) * page_bytes;
      }
    }
  }
  return released;
}

}  // namespace tensord
