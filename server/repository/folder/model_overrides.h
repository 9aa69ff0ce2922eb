#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace tensord::server {

// Files that a client brought, in a private folder that goes with this.
class OverrideFolder {
 public:
  ~OverrideFolder();
  OverrideFolder(const OverrideFolder&) = delete;
  OverrideFolder& operator=(const OverrideFolder&) = delete;

  // A repository with one model in it.
  const std::filesystem::path& root() const { return root_; }

 private:
  friend class OverrideStore;
  OverrideFolder(std::filesystem::path root, uint64_t bytes, std::shared_ptr<std::atomic<uint64_t>> bytes_in_use)
      : root_(std::move(root)), bytes_(bytes), bytes_in_use_(std::move(bytes_in_use)) {}

  const std::filesystem::path root_;
  const uint64_t bytes_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_in_use_;
};

// Makes such folders below one that only this process uses, in the folder for temporary files. Thread-safe.
class OverrideStore {
 public:
  // Of all files together; 0: no limit.
  explicit OverrideStore(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~OverrideStore() { close(); }
  // Removes all that is left, for good; what is mapped stays so.
  void close();

  // `files`: path in the model's folder ("1/model.pt") → bytes. `extra_bytes`: what will be written to the folder
  // later. Throws Error: kInvalidArgument (a path that is none, or leads out of the folder), kResourceExhausted (the
  // limit, the disk), kUnavailable.
  std::shared_ptr<const OverrideFolder> add(const std::string& model, const std::map<std::string, std::string>& files,
                                            uint64_t extra_bytes = 0);
  uint64_t bytes_in_use() const { return *bytes_in_use_; }

 private:
  std::filesystem::path make_folder();

  const uint64_t limit_bytes_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_in_use_ = std::make_shared<std::atomic<uint64_t>>(0);
  Mutex mutex_;
  std::filesystem::path home_ TENSORD_GUARDED_BY(mutex_);  // empty until it is needed
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
  int lock_fd_ TENSORD_GUARDED_BY(mutex_) = -1;  // held as long as home_ is in use
  uint64_t next_ TENSORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
