#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "core/base/mutex.h"
#include "core/distributed/digest.h"

namespace tensord::server {

// Identifies a file's content.
struct FileFingerprint {
  uint64_t size_bytes = 0;
  std::string sha256;
  bool operator==(const FileFingerprint&) const = default;
};

// Reads the whole file. None if `is_interrupted`, which is checked between pieces, returns true. Throws
// Error{kNotFound}, kDataLoss.
std::optional<FileFingerprint> fingerprint_of(const std::filesystem::path& file,
                                              const std::function<bool()>& is_interrupted);

// Fingerprints of files; an unchanged file (device, inode, size, times) is not read again. Thread-safe.
class FingerprintCache {
 public:
  std::optional<FileFingerprint> of(const std::filesystem::path& file, const std::function<bool()>& is_interrupted);

 private:
  using Stamp = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, int64_t>;
  Mutex mutex_;
  std::map<Stamp, FileFingerprint> fingerprints_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
