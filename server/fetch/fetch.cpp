#include "server/fetch/fetch.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/file_descriptor.h"
#include "core/base/read_whole_file.h"
#include "core/base/rename_to_new.h"
#include "server/fetch/checksum.h"
#include "server/fetch/download.h"
#include "server/fetch/remote_file.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

// The nearest folder above the target that is there.
fs::path existing_folder(const fs::path& target) {
  fs::path at = target.parent_path();
  while (!fs::exists(at) && at.has_relative_path()) at = at.parent_path();
  return at;
}

// The folder in which files are gathered: files/ becomes the destination, parts/ has what is not complete, versions/
// says of which version the complete ones are.
class Staging {
 public:
  // Below `existing`, a folder that the target is to be in.
  Staging(const fs::path& existing, const fs::path& target, const std::string& source)
      : existing_(existing),
        relative_(target.lexically_relative(existing)),
        folder_(existing / name_of(relative_)),
        lock_(
            (fs::create_directories(folder_), open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))) {
    if (lock_.get() < 0) fail_file(folder_.string(), "opened", errno);
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      fail(ErrorCode::kFailedPrecondition, folder_.string(), ": another fetch to this destination is under way");
    }
    const std::string source_file = folder_ / "source";
    const std::string digest = sha256_hex(source);  // the query of a URL may be a secret
    if (read_whole_file(source_file).value_or("") != digest) {
      for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
      AtomicFile out(source_file);
      out.write(digest);
      out.commit();
    }
    for (const char* name : {"files", "parts", "versions"}) fs::create_directories(folder_ / name);
  }

  fs::path files() const { return folder_ / "files"; }
  fs::path file(const std::string& name) const { return files() / name; }
  // Names of parts are flat: a long path of folders is not made twice.
  std::string part(const std::string& name) const { return folder_ / "parts" / sha256_hex(name); }

  bool has(const RemoteFile& wanted) const {
    const fs::path path = file(wanted.name);
    if (wanted.version.empty() || !fs::is_regular_file(fs::symlink_status(path))) return false;
    if (wanted.size && fs::file_size(path) != *wanted.size) return false;
    return read_whole_file(version_path(wanted.name)).value_or("") == wanted.version;
  }
  void note(const RemoteFile& done) const {
    AtomicFile out(version_path(done.name));
    out.write(done.version);
    out.commit();
  }
  // Begins anew if there are files that the source has no more.
  void keep_only(const std::vector<RemoteFile>& files) const {
    std::set<fs::path> wanted;
    for (const RemoteFile& one : files) wanted.insert(file(one.name));
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(this->files())) {
      if (entry.is_directory() || wanted.contains(entry.path())) continue;
      fs::remove_all(this->files());
      fs::create_directories(this->files());
      return;
    }
  }
  // Puts a complete file or folder in its place, with the folders above it that are missing, in one step.
  void place(const fs::path& from) const {
    const fs::path first = *relative_.begin();
    if (first == relative_) return rename_to_new(from, existing_ / relative_);
    const fs::path tree = folder_ / "tree";
    fs::remove_all(tree);
    fs::create_directories((tree / relative_).parent_path());
    fs::rename(from, tree / relative_);
    if (!fs::exists(existing_ / first)) return rename_to_new(tree / first, existing_ / first);
    fs::create_directories((existing_ / relative_).parent_path());  // another one has made a part of it
    rename_to_new(tree / relative_, existing_ / relative_);
  }
  void remove() const { fs::remove_all(folder_); }

 private:
  // One for each destination, "a/b-c" and "a-b/c" apart, and not too long for a file's name.
  static std::string name_of(const fs::path& relative) {
    constexpr size_t kMaxNameBytes = 64, kDigits = 16;
    return concat(".", relative.filename().string().substr(0, kMaxNameBytes), "-",
                  sha256_hex(relative.string()).substr(0, kDigits), ".fetch");
  }
  std::string version_path(const std::string& name) const { return folder_ / "versions" / sha256_hex(name); }

  const fs::path existing_, relative_, folder_;
  const FileDescriptor lock_;
};

void choose(const FetchOptions& options, std::vector<RemoteFile>& files) {
  if (options.included.empty()) return;
  std::erase_if(files, [&](const RemoteFile& file) {
    return std::ranges::none_of(options.included, [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), file.name.c_str(), 0) == 0;
    });
  });
}

// Adds the checksums that the user gave.
void expect_checksums(const FetchOptions& options, bool is_folder, std::vector<RemoteFile>& files) {
  for (const auto& [name, sha256] : options.sha256) {
    check(!name.empty() || !is_folder, "--sha256: the source is a folder; give NAME=HEX");
    const auto found = std::ranges::find_if(files, [&](const auto& file) { return name.empty() || file.name == name; });
    check(found != files.end(), "--sha256: the source has no file '", name, "'");
    if (!found->sha256.empty() && found->sha256 != sha256) {
      fail(ErrorCode::kDataLoss, options.source, ": '", found->name, "' has the SHA-256 ", found->sha256, ", and ",
           sha256, " is expected");
    }
    found->sha256 = found->version = sha256;
  }
}

void check_room(const fs::path& folder, const std::vector<RemoteFile>& files, uint64_t max_bytes) {
  uint64_t total = 0;
  for (const RemoteFile& file : files) {
    check(!__builtin_add_overflow(total, file.size.value_or(0), &total), "the sizes of the files overflow");
  }
  if (total > max_bytes) {
    fail(ErrorCode::kResourceExhausted, "the source has ", total, " bytes; --max-size is ", max_bytes);
  }
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && total > space.available) {
    fail(ErrorCode::kResourceExhausted, folder.string(), ": has room for ", space.available, " bytes; the source has ",
         total);
  }
}

void copy_local(const RemoteFile& file, const std::string& path) {
  copy_to_disk(file.path, path);
  if (!file.sha256.empty() && checksums_of(path).sha256 != file.sha256) {
    fs::remove(path);
    fail(ErrorCode::kDataLoss, file.path, ": has another SHA-256 than expected");
  }
}

Fetched fetch_files(const FetchOptions& options, const fs::path& target,
                    const std::function<void(const std::string&, uint64_t)>& report) {
  RemoteFiles remote = list_source(options.source);
  check(remote.is_folder || options.included.empty(), "--include: the source is one file");
  check(remote.is_folder || !options.destination.ends_with('/'), options.destination,
        ": the source is one file; give the file to make");
  choose(options, remote.files);
  if (remote.files.empty()) {
    fail(ErrorCode::kNotFound, options.source,
         options.included.empty() ? ": has no files" : ": no file matches --include");
  }
  check_names(remote.files);
  expect_checksums(options, remote.is_folder, remote.files);
  const fs::path existing = existing_folder(target);
  check_room(existing, remote.files, options.max_bytes);

  const Staging staging(existing, target, options.source);
  staging.keep_only(remote.files);
  Fetched out{.path = target.string()};
  for (const RemoteFile& file : remote.files) {
    const fs::path path = staging.file(file.name);
    if (!staging.has(file)) {
      fs::create_directories(path.parent_path());
      if (file.path.empty()) {
        download(file, remote, staging.part(file.name),
                 {.max_bytes = options.max_bytes - out.size_bytes, .retries = options.retries});
      } else {
        copy_local(file, staging.part(file.name));
      }
      fs::rename(staging.part(file.name), path);
      staging.note(file);
    }
    const uint64_t size = fs::file_size(path);
    out.size_bytes += size;
    ++out.files;
    report(file.name, size);
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(staging.files())) {
    if (entry.is_directory()) sync_folder(entry.path().string());
  }
  staging.place(remote.is_folder ? staging.files() : staging.file(remote.files[0].name));
  // The folders above may be new as well.
  for (fs::path at = target.parent_path();; at = at.parent_path()) {
    sync_folder(at.string());
    if (at == existing) break;
  }
  staging.remove();
  return out;
}

}  // namespace

std::string fetch_path(const FetchOptions& options) {
  check(!options.destination.empty(), "the destination is empty");
  std::string path = options.destination;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const fs::path whole = fs::absolute(path).lexically_normal();
  check(whole.has_filename(), options.destination, ": expected the path of a file or folder to make");
  return whole.string();
}

Fetched fetch(const FetchOptions& options, const std::function<void(const std::string&, uint64_t)>& report) {
  const fs::path target = fetch_path(options);
  try {
    if (fs::exists(fs::symlink_status(target))) {
      fail(ErrorCode::kAlreadyExists, target.string(), ": is there already");
    }
    return fetch_files(options, target, report);
  } catch (const fs::filesystem_error& error) {
    fail_file(error.path1().string(), "written", error.code().value());
  }
}

}  // namespace tensord::server
