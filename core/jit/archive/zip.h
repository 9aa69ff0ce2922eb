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
  // Compare the CRC of stored entries too, as they are first used. Costs about 1 ms for each 10 MB and core;
  // compressed entries are always compared.
  bool verify_stored = true;
  // Bounds on what compressed entries may become, all together. Code of the largest known archives is below 1 MB.
  size_t max_inflated_bytes = size_t{256} << 20;
  size_t max_entries = 1 << 20;
  bool copies_file = false;  // read a private copy of the file, see copy_privately
};

// A zip file, memory-mapped for as long as the archive or a storage from it lives. Pages
// are private: writes to them stay in this process. A file that is written to or cut off meanwhile gives other
// bytes or zeros, and never ends the process; check_unchanged() tells. Immutable after open; thread-safe. Everything in
// the file is taken to be hostile.
class ZipArchive : public std::enable_shared_from_this<ZipArchive> {
 public:
  struct Entry {
    std::string name;  // without the root folder that all entries share
    uint64_t size = 0;
    uint64_t compressed_size = 0;
    uint64_t offset = 0;  // of the payload, from the start of the file
    uint32_t crc = 0;
    bool is_stored = true;
  };

  // Throws Error: kNotFound (cannot be opened), kDataLoss (no zip file, truncated, entries that overlap or
  // appear twice), kUnimplemented (encrypted or another compression), kResourceExhausted (limits).
  static std::shared_ptr<ZipArchive> open(const std::string& path, const ZipOptions& options = {});
  // An archive that is a stored entry of this one, which stays mapped as long as it lives.
  std::shared_ptr<ZipArchive> open_inner(const Entry& entry) const;
  ~ZipArchive();

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the directory
  const Entry* find(std::string_view name) const;                 // null when there is none
  const Entry& at(std::string_view name) const;                   // throws Error{kDataLoss}

  // The bytes of an entry, inflated when needed. Throws Error{kDataLoss} when the CRC differs.
  std::string read(const Entry& entry) const;
  // The bytes of a stored entry where they lie (inflated to new memory for a compressed one);
  // writable, copied on write. Keeps the mapping alive.
  Storage storage(const Entry& entry) const;
  // Gives back the memory of pages that were read and never written; who reads them again gets them from the file.
  // For when everything has copies of its own that it uses. Returns the bytes given back. REQUIRES: nobody writes
  // to a storage of this archive meanwhile.
  size_t release_pages() const;
  // Throws Error{kDataLoss} where what was read since open may not be what the file had then. One system call while
  // nothing happens to the file; after its time has changed its checksums are compared once.
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
  std::shared_ptr<const ZipArchive> outer_;  // it lies in this one's memory
  char* data_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<FileDescriptor> file_;  // null: nobody else can reach the file
  std::unique_ptr<FaultGuard> guard_;
  mutable std::atomic<int64_t> checked_ns_{0};  // the file's time of change when it was as it was opened
  mutable std::atomic<bool> is_damaged_{false};
  mutable Mutex check_mutex_;  // of check_contents: one at a time
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// Entry `byteorder` (PyTorch 2.x): refuses big-endian files with Error{kUnimplemented}.
void check_byte_order(const ZipArchive& archive);

}  // namespace tensord::jit
