#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/fault_guard.h"
#include "core/base/file_descriptor.h"
#include "core/tensor/storage.h"

namespace tensord {

// A file that is mapped for as long as the object, or a storage of it, lives. Pages are private: writes stay in this
// process. If the file is overwritten or truncated in the meantime, reads return other bytes or zeros; they never end
// the process. Immutable; thread-safe.
class MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  // Throws Error: kNotFound (cannot be opened), kInvalidArgument (not a regular file), kDataLoss (empty). With
  // `copies`, maps a private copy of the file (see copy_privately), which adds kUnavailable and kResourceExhausted.
  static std::shared_ptr<const MappedFile> open(const std::string& path, bool copies = false);
  ~MappedFile();

  const std::string& path() const { return path_; }
  char* data() const { return data_; }
  size_t size() const { return size_; }
  // A range of the file, mapped copy-on-write. REQUIRES: the range is in the file.
  Storage storage(size_t offset, size_t size_bytes) const;
  // See ZipArchive, which has the same two functions; a new modification time counts as a change.
  void check_unchanged() const;
  size_t release_pages() const;

 private:
  explicit MappedFile(std::string path) : path_(std::move(path)) {}
  void map(bool copies);

  const std::string path_;
  char* data_ = nullptr;
  size_t size_ = 0;
  int64_t changed_ns_ = 0;
  std::unique_ptr<FileDescriptor> file_;  // null if no other process can reach the file
  std::unique_ptr<FaultGuard> guard_;
};

// Releases the pages of a private mapping that were read and never written; the next read loads them from the file.
// Returns the number of bytes released.
size_t release_mapped_pages(char* data, size_t size_bytes);

}  // namespace tensord
