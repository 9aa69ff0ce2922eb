#include "server/repository/folder/model_overrides.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "server/repository/folder/layout.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tensord-models-";
constexpr const char* kLockName = ".lock";
constexpr size_t kMaxGivenFiles = 10'000;
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPathDepth = 8;

// Removes folders of processes that ended without cleaning up: their locks are free.
void remove_left_folders(const fs::path& parent) {
  std::error_code error;
  fs::directory_iterator entries(parent, error);
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    if (!path.filename().string().starts_with(kPrefix)) continue;
    const int fd = open((path / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd == -1) continue;  // owned by another user, or just being created
    std::error_code ignored;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, ignored);
    close(fd);
  }
}

// Parses a relative path whose components are all plain names.
fs::path check_path(const std::string& text) {
  const auto refuse = [&] {
    fail(ErrorCode::kInvalidArgument, "Invalid file parameter 'file:", text.substr(0, kMaxPathBytes),
         "': the path must stay within the model directory");
  };
  if (text.empty() || text.size() > kMaxPathBytes || text.find('\0') != std::string::npos) refuse();
  size_t depth = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    if (!is_plain_name(text.substr(begin, end - begin)) || ++depth > kMaxPathDepth) refuse();
    begin = end + 1;
  }
  return text;
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    fail(ErrorCode::kResourceExhausted, "a file of the model cannot be written to ", path.parent_path().string());
  }
}

}  // namespace

OverrideFolder::~OverrideFolder() {
  std::error_code error;
  fs::remove_all(root_, error);
  bytes_in_use_->fetch_sub(bytes_);
}

void OverrideStore::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  if (home_.empty()) return;
  std::error_code error;
  fs::remove_all(home_, error);
  home_.clear();
  ::close(lock_fd_);
}

fs::path OverrideStore::make_folder() {
  const MutexLock lock(mutex_);
  if (is_closed_) fail(ErrorCode::kUnavailable, "no more models are loaded: the server is shutting down");
  if (home_.empty()) {
    const fs::path parent = fs::temp_directory_path();
    remove_left_folders(parent);
    std::string pattern = (parent / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) {
      fail(ErrorCode::kUnavailable, parent.string(), ": no folder can be made in it for files of a load");
    }
    home_ = pattern;
    lock_fd_ = open((home_ / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    flock(lock_fd_, LOCK_EX | LOCK_NB);
  }
  const fs::path root = home_ / std::to_string(++next_);
  std::error_code error;
  fs::create_directory(root, error);
  if (error) fail(ErrorCode::kUnavailable, root.string(), ": cannot be made: ", error.message());
  return root;
}

std::shared_ptr<const OverrideFolder> OverrideStore::add(const std::string& model,
                                                         const std::map<std::string, std::string>& files,
                                                         uint64_t extra_bytes) {
  check(is_plain_name(model), "model '", model, "': not a plain name");
  check(files.size() <= kMaxGivenFiles, "a load of model '", model, "' has more than ", kMaxGivenFiles, " files");
  uint64_t bytes = extra_bytes;
  for (const auto& [path, data] : files) {
    check_path(path);
    bytes += data.size();
  }
  if (bytes_in_use_->fetch_add(bytes) + bytes > limit_bytes_ && limit_bytes_ > 0) {
    bytes_in_use_->fetch_sub(bytes);
    fail(ErrorCode::kResourceExhausted, "a load of model '", model, "' brings ", bytes,
         " bytes, more than --model-override-limit leaves");
  }
  fs::path root;
  try {
    root = make_folder();
  } catch (...) {
    bytes_in_use_->fetch_sub(bytes);
    throw;
  }
  std::shared_ptr<const OverrideFolder> folder(new OverrideFolder(std::move(root), bytes, bytes_in_use_));
  std::error_code error;
  fs::create_directory(folder->root() / model, error);
  for (const auto& [path, data] : files) write_file(folder->root() / model / check_path(path), data);
  return folder;
}

}  // namespace tensord::server
