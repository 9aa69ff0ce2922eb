#pragma once

// Records which files this program syncs and renames, in order, by interposing the C library's calls. Include it in one
// source of a test program.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace tensord::fixtures {

struct SyncLog {
  std::mutex mutex;
  std::vector<std::string> events;  // "sync PATH", "rename FROM TO"

  void add(std::string event) {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
  }
  void clear() {
    const std::lock_guard lock(mutex);
    events.clear();
  }
  // The index of the last such event; -1 if there is none.
  ptrdiff_t last(const std::string& event) {
    const std::lock_guard lock(mutex);
    const auto found = std::find(events.rbegin(), events.rend(), event);
    return found == events.rend() ? -1 : events.rend() - found - 1;
  }
  // Returns an empty string if renaming `from` to `to` was safe against a loss of power: each of the files and its
  // folder was synced before, and the target folder afterwards.
  std::string fault_of(const std::string& from, const std::string& to, const std::vector<std::string>& files) {
    const ptrdiff_t renamed = last("rename " + from + " " + to);
    if (renamed < 0) return "was not renamed: " + to;
    for (const std::string& file : files) {
      const ptrdiff_t synced = last("sync " + file);
      if (synced < 0 || synced > renamed) return "was not synced before: " + file;
    }
    const std::string folder = std::filesystem::path(to).parent_path().string();
    return last("sync " + folder) > renamed ? "" : "was not synced afterwards: " + folder;
  }
};

inline SyncLog& sync_log() {
  static auto* const log = new SyncLog;
  return *log;
}

inline std::string path_of(int descriptor) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string();
}

}  // namespace tensord::fixtures

extern "C" int fsync(int descriptor) {
  tensord::fixtures::sync_log().add("sync " + tensord::fixtures::path_of(descriptor));
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  tensord::fixtures::sync_log().add(std::string("rename ") + from + " " + to);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  tensord::fixtures::sync_log().add(std::string("rename ") + from + " " + to);
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
