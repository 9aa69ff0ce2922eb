#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/mutex.h"

#include "server/training/hosts/host_messages.h"
#include "server/training/jobs/file_fingerprint.h"

namespace tensord::server {

// Cache of other hosts' files by content: <folder>/<SHA-256>. The least recently used ones are evicted above a number
// of bytes. Thread-safe.
class FileCache {
 public:
  // Creates the folder, and removes unfinished files of an earlier process. 0: no limit. Throws Error.
  FileCache(std::filesystem::path folder, uint64_t max_bytes);

  using Take = std::function<void(std::string_view bytes)>;
  // Passes the file's bytes to `take`, in order.
  using Fetch = std::function<void(const HostFile& file, const Take& take)>;
  // Creates the file `to` with this content: a link to the cached one, or a copy, fetched if it is not cached. Fetched
  // bytes are verified. Throws Error: kDataLoss for other bytes than announced, kResourceExhausted for a file larger
  // than the cache, kCancelled, errors of `fetch`, and DiskError, with the bytes needed, if the disk is full or fails.
  void place(const HostFile& file, const std::filesystem::path& to, const Fetch& fetch,
             const std::function<bool()>& is_cancelled);

 private:
  bool has(const HostFile& file, const std::function<bool()>& is_cancelled);
  void fetch_into_cache(const HostFile& file, const Fetch& fetch, const std::function<bool()>& is_cancelled);
  void make_room(uint64_t bytes) const;
  void check_disk(uint64_t bytes) const;

  const std::filesystem::path folder_;
  const uint64_t max_bytes_;
  Mutex mutex_;  // serializes downloads
};

}  // namespace tensord::server
