#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace tensord {

// The disk is full (ENOSPC, EDQUOT) or fails (EIO). The same call may succeed later.
class DiskError : public Error {
 public:
  using Error::Error;
};

// Throws for an errno with the message "<path>: cannot be <what>: <the errno's text>": a DiskError, or an Error with
// one of the codes below.
[[noreturn]] void fail_file(const std::string& path, const char* what, int error);

// A file that appears complete or not at all, even if the process dies. It is written under a temporary name next to
// its path, then renamed. Not thread-safe.
//
// All functions throw Error whose message starts with the path: kResourceExhausted (the disk or a quota is full),
// kFailedPrecondition (permission, read-only file system), kUnavailable (everything else). Errors that may go away are
// DiskErrors.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  // removes the temporary file unless commit() ran
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  // The stream for stdio. fail_write() or commit() report its errors.
  std::FILE* stream() const { return file_; }
  void write(std::string_view bytes);
  // Flushes the bytes to the disk, renames the file, and flushes the rename. It replaces an existing file in one step.
  void commit();
  // Throws for the current errno.
  [[noreturn]] void fail_write() const;

 private:
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
};

// Makes a copy that is complete and on the disk, or none. Throws as AtomicFile does; kUnavailable where `from` cannot
// be read.
void copy_to_disk(const std::string& from, const std::string& to);

// Flushes a folder, so that renames and new files in it survive a power loss. Throws as AtomicFile does.
void sync_folder(const std::string& folder);

}  // namespace tensord
