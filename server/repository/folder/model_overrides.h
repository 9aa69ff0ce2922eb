#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace tensord::server {

// Files that a client sent with a load, in a private folder that is removed with this object.
class OverrideFolder {
 public:
  ~OverrideFolder();
  OverrideFolder(const OverrideFolder&) = delete;
  OverrideFolder& operator=(const OverrideFolder&) = delete;

  // A repository that contains only this model.
  const std::filesystem::path& root() const { return root_; }

 private:
  friend class OverrideStore;
  OverrideFolder(std::filesystem::path root, uint64_t bytes, std::shared_ptr<std::atomic<uint64_t>> bytes_in_use)
      : root_(std::move(root)), bytes_(bytes), bytes_in_use_(std::move(bytes_in_use)) {}

  const std::filesystem::path root_;
  const uint64_t bytes_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_in_use_;
};

// Creates such folders below a folder that only this process uses, in the system's temporary folder. Thread-safe.
class OverrideStore {
 public:
  // Limit of all files together; 0: none.
  explicit OverrideStore(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~OverrideStore() { close(); }
  // Removes everything. Mapped files stay mapped.
  void close();

  // `files`: path in the model's folder ("1/model.pt") → bytes. `extra_bytes`: space for what is written to the folder
  // later. Throws Error: kInvalidArgument (an invalid path, or one that leads out of the folder), kResourceExhausted
  // (the limit, the disk), kUnavailable.
  std::shared_ptr<const OverrideFolder> add(const std::string& model, const std::map<std::string, std::string>& files,
                                            uint64_t extra_bytes = 0);
  uint64_t bytes_in_use() const { return *bytes_in_use_; }

 private:
  std::filesystem::path make_folder();

  const uint64_t limit_bytes_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_in_use_ = std::make_shared<std::atomic<uint64_t>>(0);
  Mutex mutex_;
  std::filesystem::path home_ TENSORD_GUARDED_BY(mutex_);  // empty until the first use
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
  int lock_fd_ TENSORD_GUARDED_BY(mutex_) = -1;  // locked while home_ is in use
  uint64_t next_ TENSORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
