#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace tensord {

namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ErrorCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::kFailedPrecondition;
    default: return ErrorCode::kUnavailable;
  }
}

}  // namespace

void fail_file(const std::string& path, const char* what, int error) {
  const std::string message = concat(path, ": cannot be ", what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EIO) throw DiskError(code_of(error), message);
  throw Error(code_of(error), message);
}

// Works like mkstemp, but the umask decides who may read the file.
AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<uint64_t> next{0};
  int file = -1;
  do {
    temporary_ = concat(path_, ".", getpid(), "_", next++);
    file = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  if (file < 0) fail_write();
  file_ = fdopen(file, "w+b");
  if (file_) return;
  const int error = errno;
  close(file);
  unlink(temporary_.c_str());
  errno = error;
  fail_write();
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

void AtomicFile::fail_write() const { fail_file(path_, "written", errno); }

void AtomicFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_write();
}

void AtomicFile::commit() {
  if (std::ferror(file_) || std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail_write();
  const bool is_closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!is_closed || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    errno = error;
    fail_write();
  }
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  sync_folder(folder.empty() ? "." : folder);
}

void copy_to_disk(const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  if (!in) fail(ErrorCode::kUnavailable, from, ": cannot be read: ", std::strerror(errno));
  AtomicFile file(to);
  std::vector<char> piece(size_t{1} << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    file.write({piece.data(), static_cast<size_t>(in.gcount())});
  }
  if (in.bad()) fail_file(from, "read", errno);
  file.commit();
}

void sync_folder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int result = file < 0 ? -1 : fsync(file);
  const int error = errno;
  if (file >= 0) close(file);
  // Some file systems cannot sync a folder (EINVAL). Then no better guarantee exists.
  if (result != 0 && error != EINVAL) fail_file(folder, "written", error);
}

}  // namespace tensord
