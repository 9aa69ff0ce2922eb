#include "core/base/private_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/thread_priority.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 128 << 10;  // during a call, the kernel gives the core to no other thread

// `folder` is the destination of the copy; empty if the file itself could not be read.
[[noreturn]] void fail_copy(const fs::path& file, int error, const fs::path& folder = {}) {
  std::string text = concat(file.string(), ": cannot be copied: ", std::strerror(error));
  if (!folder.empty()) text += concat(" (in ", folder.string(), ", as TMPDIR says)");
  if (error == EFBIG) throw Error(ErrorCode::kResourceExhausted, text);
  const bool is_full = error == ENOSPC || error == EDQUOT;
  throw DiskError(is_full ? ErrorCode::kResourceExhausted : ErrorCode::kUnavailable, text);
}

// A file without a name in the folder; negative where the file system does not support this.
int open_nameless(const fs::path& folder) { return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

int open_temporary(const fs::path& file) {
  const fs::path folder = fs::temp_directory_path();
  const int nameless = open_nameless(folder);
  if (nameless >= 0) return nameless;
  std::string pattern = (folder / ".tensord-XXXXXX").string();
  const int fd = mkostemp(pattern.data(), O_CLOEXEC);
  if (fd < 0) fail_copy(file, errno, folder);
  unlink(pattern.c_str());
  return fd;
}

void write_all(int to, const char* data, size_t size, const fs::path& file) {
  while (size > 0) {
    const ssize_t written = write(to, data, size);
    if (written == -1 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      fail_copy(file, error, fs::temp_directory_path());
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
}

// Copies from the current position of both files to the end.
void copy_bytes(int from, int to, const fs::path& file) {
  for (;;) {
    const ssize_t copied = copy_file_range(from, nullptr, to, nullptr, kPieceBytes, 0);
    if (copied == 0) return;
    if (copied == -1 && errno != EINTR) break;  // not supported between these file systems
    let_others_run();
  }
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const ssize_t got = read(from, piece.data(), piece.size());
    if (got == 0) return;
    if (got == -1 && errno == EINTR) continue;
    if (got == -1) fail_copy(file, errno);
    write_all(to, piece.data(), static_cast<size_t>(got), file);
    let_others_run();
  }
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::unique_ptr<FileDescriptor> copy_privately(const std::string& name) {
  const fs::path file(name);
  const FileDescriptor from(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (from.get() == -1) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO) fail_copy(file, error);
    fail(ErrorCode::kNotFound, name, ": cannot be opened: ", std::strerror(error));
  }
  struct stat before {
  }, after{};
  if (fstat(from.get(), &before) != 0) fail_copy(file, errno);
  check(S_ISREG(before.st_mode), name, ": not a file");
  auto to = std::make_unique<FileDescriptor>(open_nameless(file.parent_path()));
  if (to->get() < 0 || ioctl(to->get(), FICLONE, from.get()) != 0) {
    to = std::make_unique<FileDescriptor>(open_temporary(file));
    copy_bytes(from.get(), to->get(), file);
  }
  if (fstat(from.get(), &after) != 0) fail_copy(file, errno);
  if (!is_same(before, after)) fail(ErrorCode::kUnavailable, name, ": changed while it was read");
  return to;
}

std::unique_ptr<FileDescriptor> open_for_reading(const std::string& file, bool copies) {
  if (copies) return copy_privately(file);
  auto opened = std::make_unique<FileDescriptor>(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened->get() < 0) fail(ErrorCode::kNotFound, file, ": cannot be opened: ", std::strerror(errno));
  return opened;
}

}  // namespace tensord
