#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "server/training/data/data_formats.h"

namespace tensord::server {

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK a named pipe would hold up the caller.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(ErrorCode::kNotFound, path, ": cannot be opened: ", std::strerror(errno));
  struct stat status {};
  const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const size_t size = is_file ? static_cast<size_t>(status.st_size) : 0;
  void* data = MAP_FAILED;
  if (size > 0) data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  const int map_errno = errno;
  close(file);
  check(is_file, path, ": is not a regular file");
  if (size == 0) fail(ErrorCode::kDataLoss, path, ": is empty");
  if (data == MAP_FAILED) fail(ErrorCode::kResourceExhausted, path, ": cannot be mapped: ", std::strerror(map_errno));
  return std::shared_ptr<MappedFile>(new MappedFile(static_cast<char*>(data), size));
}

MappedFile::~MappedFile() { munmap(data_, size_); }

}  // namespace tensord::server
