#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/mutex.h"

#include "server/training/hosts/host_messages.h"
#include "server/training/jobs/file_fingerprint.h"

namespace tensord::server {

// Files of other hosts, by their content: <folder>/<SHA-256>. Those that were used last stay, up to a number of bytes.
// Thread-safe.
class FileCache {
 public:
  // Makes the folder, and removes what an earlier process was not done with. 0: no limit. Throws Error.
  FileCache(std::filesystem::path folder, uint64_t max_bytes);

  using Take = std::function<void(std::string_view bytes)>;
  // Gives `take` the file's bytes, in order.
  using Fetch = std::function<void(const HostFile& file, const Take& take)>;
  // Makes `to` a file with that content: a link to one that is here, or a copy; fetched where there is none. What
  // comes is checked before it counts. Throws Error: kDataLoss for other bytes than were announced, kResourceExhausted
  // for what can never have room, kCancelled, what `fetch` throws, and DiskError, with the bytes that are wanted, where
  // the disk is full or fails.
  void place(const HostFile& file, const std::filesystem::path& to, const Fetch& fetch,
             const std::function<bool()>& is_cancelled);

 private:
  bool has(const HostFile& file, const std::function<bool()>& is_cancelled);
  void fetch_into_cache(const HostFile& file, const Fetch& fetch, const std::function<bool()>& is_cancelled);
  void make_room(uint64_t bytes) const;
  void check_disk(uint64_t bytes) const;

  const std::filesystem::path folder_;
  const uint64_t max_bytes_;
  Mutex mutex_;  // one file at a time comes
};

}  // namespace tensord::server
