#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fault_guard.h"
#include "core/base/file_descriptor.h"
#include "core/base/mutex.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

struct ZipOptions {
  // Checks the CRC of stored entries too, on their first use. Costs about 1 ms per 10 MB on one core. Compressed
  // entries are always checked.
  bool verify_stored = true;
  // Limits on the total decompressed size and on the number of entries. The code of the largest known archives is below
  // 1 MB.
  size_t max_inflated_bytes = size_t{256} << 20;
  size_t max_entries = 1 << 20;
  bool copies_file = false;  // reads a private copy of the file, see copy_privately
  bool keeps_root = false;   // names are those of the file
};

// A memory-mapped zip file. It stays mapped while the archive or a storage of it exists. The mapping is private: writes
// do not reach the file. If another process writes to or truncates the file, reads give other bytes or zeros but never
// end the process; check_unchanged() detects it. Immutable after open; thread-safe. The contents of the file are
// untrusted.
class ZipArchive : public std::enable_shared_from_this<ZipArchive> {
 public:
  struct Entry {
    std::string name;  // without the first entry's root folder, which all entries of models have in common
    uint64_t size = 0;
    uint64_t compressed_size = 0;
    uint64_t offset = 0;  // position of the payload in the file
    uint32_t crc = 0;
    bool is_stored = true;
  };

  // Throws Error: kNotFound (cannot be opened), kDataLoss (not a zip file, truncated, overlapping or duplicate
  // entries), kUnimplemented (encryption or another compression method), kResourceExhausted (limits).
  static std::shared_ptr<ZipArchive> open(const std::string& path, const ZipOptions& options = {});
  // Opens a stored entry of this archive as an archive. This archive stays mapped while the inner one exists.
  std::shared_ptr<ZipArchive> open_inner(const Entry& entry) const;
  ~ZipArchive();

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the directory
  const Entry* find(std::string_view name) const;                 // null when there is none
  const Entry& at(std::string_view name) const;                   // throws Error{kDataLoss}

  // The bytes of an entry, inflated when needed. Throws Error{kDataLoss} when the CRC differs.
  std::string read(const Entry& entry) const;
  // The memory of a stored entry without a copy, or new memory for a compressed entry. Writes to it do not reach the
  // file. The storage keeps the mapping alive.
  Storage storage(const Entry& entry) const;
  // Releases the memory of pages that were read and never written; the next access reads them from the file again. Call
  // it once all tensors in use have copies of their own. Returns the number of bytes released. REQUIRES: no thread
  // writes to a storage of this archive meanwhile.
  size_t release_pages() const;
  // Throws Error{kDataLoss} if the file may have changed since open. It costs one system call while the file's time
  // stays the same; after a change of the time it compares the checksums once.
  void check_unchanged() const;

 private:
  ZipArchive(std::string path, const ZipOptions& options);
  void map_file();
  void read_directory();
  void read_entry(void* unzip, const std::string& root);
  void check_limits() const;
  void check_crc(const Entry& entry, const void* data) const;
  void inflate_to(const Entry& entry, char* out) const;
  void check_contents(int64_t changed_ns) const;

  const std::string path_;
  const ZipOptions options_;
  std::shared_ptr<const ZipArchive> outer_;  // the archive that owns the memory of this inner one
  char* data_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<FileDescriptor> file_;  // null: no other process can reach the file
  std::unique_ptr<FaultGuard> guard_;
  mutable std::atomic<int64_t> checked_ns_{
      0};  // the file's change time when its contents were last known to be unchanged
  mutable std::atomic<bool> is_damaged_{false};
  mutable Mutex check_mutex_;  // lets only one check_contents run at a time
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// Reads the entry `byteorder` (PyTorch 2.x). Throws Error{kUnimplemented} for big-endian files.
void check_byte_order(const ZipArchive& archive);

}  // namespace tensord::jit
