#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace tensord {

// What a disk that is full (ENOSPC, EDQUOT) or fails (EIO) did not do: the same may work later.
class DiskError : public Error {
 public:
  using Error::Error;
};

// Throws for an errno, "<path>: cannot be <what>: <the errno's text>": DiskError, or Error with the codes below.
[[noreturn]] void fail_file(const std::string& path, const char* what, int error);

// A file that is there whole or not at all, whatever happens to the process: written under a
// temporary name beside its path, then moved there. Not thread-safe.
//
// All throw Error that starts with the path: kResourceExhausted (the disk or a quota is full),
// kFailedPrecondition (permission, read-only file system), kUnavailable (the rest). What may work later is a DiskError.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  // without commit() nothing is left
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  // To write with stdio; what goes wrong there is told by fail_write() or by commit().
  std::FILE* stream() const { return file_; }
  void write(std::string_view bytes);
  // Puts the bytes on the disk, takes the name, and puts that on the disk; a file that was there is
  // replaced in one step.
  void commit();
  // Throws for the current errno.
  [[noreturn]] void fail_write() const;

 private:
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
};

// A copy that is whole and on the disk, or not there. Throws as AtomicFile; kUnavailable where `from` cannot be read.
void copy_to_disk(const std::string& from, const std::string& to);

// Makes renames and new files in a folder survive a loss of power. Throws as AtomicFile.
void sync_folder(const std::string& folder);

}  // namespace tensord
