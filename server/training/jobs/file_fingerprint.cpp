#include "server/training/jobs/file_fingerprint.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kMaxKnown = 65536;

}  // namespace

std::optional<FileFingerprint> fingerprint_of(const std::filesystem::path& file,
                                              const std::function<bool()>& is_interrupted) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(ErrorCode::kNotFound, file.string(), ": cannot be read");
  distributed::Digest hash;
  FileFingerprint fingerprints;
  std::vector<char> piece(kPieceBytes);
  while (in) {
    if (is_interrupted()) return std::nullopt;
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<size_t>(in.gcount());
    hash.add({piece.data(), count});
    fingerprints.size_bytes += count;
  }
  if (in.bad()) fail_file(file.string(), "read", errno);
  fingerprints.sha256 = hash.finish();
  return fingerprints;
}

std::optional<FileFingerprint> FingerprintCache::of(const std::filesystem::path& file,
                                                    const std::function<bool()>& is_interrupted) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) fail(ErrorCode::kNotFound, file.string(), ": cannot be read");
  const auto ns = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  const Stamp stamp{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), ns(status.st_mtim),
                    ns(status.st_ctim)};
  {
    const MutexLock lock(mutex_);
    if (const auto found = fingerprints_.find(stamp); found != fingerprints_.end()) return found->second;
  }
  const std::optional<FileFingerprint> fingerprints = fingerprint_of(file, is_interrupted);
  if (!fingerprints) return fingerprints;
  const MutexLock lock(mutex_);
  if (fingerprints_.size() >= kMaxKnown) fingerprints_.clear();
  fingerprints_[stamp] = *fingerprints;
  return fingerprints;
}

}  // namespace tensord::server
