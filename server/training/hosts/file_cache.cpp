#include "server/training/hosts/file_cache.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/training/jobs/job_store.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_cancelled() { fail(ErrorCode::kCancelled, "the start was canceled"); }

}  // namespace

FileCache::FileCache(fs::path folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail(ErrorCode::kUnavailable, folder_.string(), ": cannot be made: ", error.message());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (!distributed::is_sha256(entry.path().filename().string())) fs::remove_all(entry.path(), error);
  }
}

void FileCache::place(const HostFile& file, const fs::path& to, const Fetch& fetch,
                      const std::function<bool()>& is_cancelled) {
  check(distributed::is_sha256(file.sha256), "files.sha256: '", file.sha256, "' is not a SHA-256");
  const MutexLock lock(mutex_);
  try {
    if (!has(file, is_cancelled)) fetch_into_cache(file, fetch, is_cancelled);
    const fs::path cached = folder_ / file.sha256;
    std::error_code ignored;
    fs::last_write_time(cached, fs::file_time_type::clock::now(), ignored);
    link_or_copy(cached, to);
  } catch (const DiskError& error) {
    throw DiskError(error.code(), concat(error.what(), "; '", file.path, "' has ", file.size_bytes, " bytes"));
  }
}

// Removes a cached file whose contents have changed.
bool FileCache::has(const HostFile& file, const std::function<bool()>& is_cancelled) {
  const fs::path cached = folder_ / file.sha256;
  std::error_code error;
  if (!fs::exists(cached, error)) return false;
  const auto fingerprints = fingerprint_of(cached, is_cancelled);
  if (!fingerprints) fail_cancelled();
  if (fingerprints->sha256 == file.sha256) return true;
  log(LogLevel::kWarning, "a cached file has changed and was removed", {{"file", cached.string()}});
  fs::remove(cached, error);
  return false;
}

void FileCache::fetch_into_cache(const HostFile& file, const Fetch& fetch, const std::function<bool()>& is_cancelled) {
  make_room(file.size_bytes);
  check_disk(file.size_bytes);
  AtomicFile out((folder_ / file.sha256).string());
  distributed::Digest hash;
  uint64_t size = 0;
  fetch(file, [&](std::string_view bytes) {
    if (is_cancelled()) fail_cancelled();
    size += bytes.size();
    if (size > file.size_bytes) {
      fail(ErrorCode::kDataLoss, "'", file.path, "' has more than the ", file.size_bytes, " bytes that were announced");
    }
    hash.add(bytes);
    out.write(bytes);
  });
  const std::string sha256 = hash.finish();
  if (size != file.size_bytes || sha256 != file.sha256) {
    fail(ErrorCode::kDataLoss, "'", file.path, "' came with ", size, " bytes of SHA-256 ", sha256, ", announced were ",
         file.size_bytes, " of ", file.sha256);
  }
  out.commit();
}

// Checked before anything is fetched. Concurrent writers are noticed at write time.
void FileCache::check_disk(uint64_t bytes) const {
  std::error_code ignored;  // on failure the space counts as unlimited
  const fs::space_info space = fs::space(folder_, ignored);
  if (space.capacity == 0) return;
  if (bytes > space.capacity) {
    fail(ErrorCode::kResourceExhausted, folder_.string(), ": a file of ", bytes, " bytes is more than its disk has, ",
         space.capacity);
  }
  if (bytes > space.available) fail_file(folder_.string(), "written", ENOSPC);
}

void FileCache::make_room(uint64_t bytes) const {
  if (max_bytes_ == 0) return;
  if (bytes > max_bytes_) {
    fail(ErrorCode::kResourceExhausted, folder_.string(), ": a file of ", bytes,
         " bytes is more than --join-cache allows, ", max_bytes_);
  }
  struct Cached {
    fs::file_time_type used;
    uint64_t size_bytes;
    fs::path path;
  };
  std::vector<Cached> files;
  uint64_t all = bytes;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    std::error_code gone;
    const fs::file_time_type used = entry.last_write_time(gone);
    if (gone) continue;
    const uintmax_t size_bytes = entry.file_size(gone);
    if (gone) continue;
    files.push_back({used, size_bytes, entry.path()});
    all += size_bytes;
  }
  std::ranges::sort(files, {}, &Cached::used);
  for (const Cached& file : files) {
    if (all <= max_bytes_) return;
    std::error_code error;
    if (fs::remove(file.path, error)) all -= file.size_bytes;
  }
}

}  // namespace tensord::server
