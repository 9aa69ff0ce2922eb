#include "core/jit/archive/zip.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/base/private_copy.h"
#include "core/base/thread_priority.h"
#include "core/jit/archive/crc32.h"
#include "core/tensor/allocator.h"
#include "core/tensor/mapped_file.h"

namespace tensord::jit {
namespace {

constexpr size_t kMaxName = 4096;
constexpr uint64_t kRatioFreeBytes = 4 << 20;  // small entries may have any compression ratio
constexpr uint64_t kMaxRatio = 200;
constexpr uint16_t kEncrypted = 1;

int64_t changed_ns_of(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// Lets minizip read from the mapping.
struct MemoryFile {
  const char* data;
  uint64_t size;
  uint64_t position = 0;
};

voidpf memory_open(voidpf opaque, const void*, int) { return opaque; }
uLong memory_read(voidpf, voidpf stream, void* out, uLong count) {
  auto* file = static_cast<MemoryFile*>(stream);
  const uint64_t got = std::min<uint64_t>(count, file->size - file->position);
  std::memcpy(out, file->data + file->position, got);
  file->position += got;
  return static_cast<uLong>(got);
}
uLong memory_write(voidpf, voidpf, const void*, uLong) { return 0; }
ZPOS64_T memory_tell(voidpf, voidpf stream) { return static_cast<MemoryFile*>(stream)->position; }
long memory_seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto* file = static_cast<MemoryFile*>(stream);
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? file->position
                        : origin == ZLIB_FILEFUNC_SEEK_END ? file->size
                                                           : 0;
  uint64_t position = 0;
  if (__builtin_add_overflow(base, offset, &position) || position > file->size) return -1;
  file->position = position;
  return 0;
}
int memory_close(voidpf, voidpf) { return 0; }
int memory_error(voidpf, voidpf) { return 0; }

struct UnzipCloser {
  void operator()(void* unzip) const { unzClose(unzip); }
};

// Whether the file ends with a complete end record. minizip accepts an incomplete one if the zip64 record exists.
bool has_end_record(const char* data, size_t size) {
  constexpr size_t kEndRecord = 22, kMaxComment = 0xffff;
  for (size_t comment = 0; comment <= kMaxComment && kEndRecord + comment <= size; ++comment) {
    const auto* record = reinterpret_cast<const unsigned char*>(data + size - kEndRecord - comment);
    if (std::memcmp(record, "PK\5\6", 4) == 0 && record[20] + record[21] * size_t{256} == comment) return true;
  }
  return false;
}

uint32_t crc_of(const char* data, uint64_t size) {
  constexpr uint64_t kPiece = 1 << 20;
  const auto pieces = static_cast<int64_t>((size + kPiece - 1) / kPiece);
  std::vector<uLong> crcs(static_cast<size_t>(pieces), 0);
  const auto piece_size = [&](int64_t i) { return std::min(kPiece, size - static_cast<uint64_t>(i) * kPiece); };
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      crcs[static_cast<size_t>(i)] = crc32_of(data + static_cast<uint64_t>(i) * kPiece, piece_size(i));
      let_others_run();
    }
  });
  uLong crc = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    crc = crc32_combine(crc, crcs[static_cast<size_t>(i)], static_cast<z_off_t>(piece_size(i)));
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

ZipArchive::ZipArchive(std::string path, const ZipOptions& options) : path_(std::move(path)), options_(options) {}

ZipArchive::~ZipArchive() {
  guard_.reset();
  if (data_ && !outer_) munmap(data_, size_);
}

std::shared_ptr<ZipArchive> ZipArchive::open(const std::string& path, const ZipOptions& options) {
  std::shared_ptr<ZipArchive> archive(new ZipArchive(path, options));
  archive->map_file();
  archive->read_directory();
  archive->check_limits();
  return archive;
}

std::shared_ptr<ZipArchive> ZipArchive::open_inner(const Entry& entry) const {
  const std::string name = concat(path_, ": ", entry.name);
  if (!entry.is_stored) fail(ErrorCode::kUnimplemented, name, ": is an archive that is compressed itself");
  if (entry.size == 0) fail(ErrorCode::kDataLoss, name, ": is empty");
  std::shared_ptr<ZipArchive> archive(new ZipArchive(name, options_));
  archive->outer_ = shared_from_this();
  archive->data_ = data_ + entry.offset;
  archive->size_ = entry.size;
  archive->read_directory();
  archive->check_limits();
  return archive;
}

void ZipArchive::map_file() {
  auto descriptor = open_for_reading(path_, options_.copies_file);
  const int file = descriptor->get();
  struct stat status {};
  const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  size_ = is_file ? static_cast<size_t>(status.st_size) : 0;
  void* data = MAP_FAILED;
  if (size_ > 0) data = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  const int map_errno = errno;
  if (!is_file) fail(ErrorCode::kInvalidArgument, path_, ": is not a regular file");
  if (size_ == 0) fail(ErrorCode::kDataLoss, path_, ": is empty");
  if (data == MAP_FAILED) fail(ErrorCode::kResourceExhausted, path_, ": cannot be mapped: ", std::strerror(map_errno));
  data_ = static_cast<char*>(data);
  guard_ = std::make_unique<FaultGuard>(data_, size_);
  checked_ns_ = changed_ns_of(status);
  if (status.st_nlink > 0) file_ = std::move(descriptor);
  madvise(data_, size_,
          MADV_WILLNEED);  // all of it is needed soon, so the kernel reads ahead while the directory is parsed
}

void ZipArchive::read_directory() {
  MemoryFile file{data_, size_};
  zlib_filefunc64_def functions{memory_open, memory_read,  memory_write, memory_tell,
                                memory_seek, memory_close, memory_error, &file};
  std::unique_ptr<void, UnzipCloser> unzip(unzOpen2_64(path_.c_str(), &functions));
  unz_global_info64 info{};
  if (!has_end_record(data_, size_) || !unzip || unzGetGlobalInfo64(unzip.get(), &info) != UNZ_OK) {
    // Bytes 4 to 7 of a FlatBuffer are its schema identifier.
    if (size_ >= 8 && std::string_view(data_ + 4, 4) == "PTMF") {
      fail(ErrorCode::kUnimplemented, path_,
           ": is a mobile module in a FlatBuffer, which is not supported; please save it by torch.jit.save");
    }
    fail(ErrorCode::kDataLoss, path_, ": is not a zip archive, or is truncated");
  }
  // A directory record takes at least 46 bytes, so the size of the file also limits the number of entries.
  if (info.number_entry > options_.max_entries || info.number_entry > size_ / 46) {
    fail(ErrorCode::kResourceExhausted, path_, ": claims ", info.number_entry, " entries");
  }
  std::string root;
  int status = unzGoToFirstFile(unzip.get());
  for (uint64_t i = 0; i < info.number_entry; ++i) {
    if (status != UNZ_OK) fail(ErrorCode::kDataLoss, path_, ": the zip directory is damaged at entry ", i);
    if (i == 0 && !options_.keeps_root) {
      std::string name(kMaxName, '\0');
      unz_file_info64 first{};
      unzGetCurrentFileInfo64(unzip.get(), &first, name.data(), kMaxName - 1, nullptr, 0, nullptr, 0);
      name.resize(std::strlen(name.c_str()));
      if (const size_t slash = name.find('/'); slash != std::string::npos) root = name.substr(0, slash + 1);
    }
    read_entry(unzip.get(), root);
    status = unzGoToNextFile(unzip.get());
  }
}

void ZipArchive::read_entry(void* unzip, const std::string& root) {
  check_work_cancelled();
  std::string name(kMaxName, '\0');
  unz_file_info64 info{};
  if (unzGetCurrentFileInfo64(unzip, &info, name.data(), kMaxName - 1, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.size_filename >= kMaxName) {
    fail(ErrorCode::kDataLoss, path_, ": the zip directory is damaged at entry ", entries_.size());
  }
  name.resize(info.size_filename);
  if (info.flag & kEncrypted) fail(ErrorCode::kUnimplemented, path_, ": entry ", name, " is encrypted");
  if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
    fail(ErrorCode::kUnimplemented, path_, ": entry ", name, " uses compression method ", info.compression_method);
  }
  Entry entry;
  entry.name = root.size() < name.size() && name.compare(0, root.size(), root) == 0 ? name.substr(root.size()) : name;
  entry.size = info.uncompressed_size;
  entry.compressed_size = info.compressed_size;
  entry.crc = static_cast<uint32_t>(info.crc);
  entry.is_stored = info.compression_method == 0;
  int method = 0;
  if (unzOpenCurrentFile2(unzip, &method, nullptr, 1) != UNZ_OK) {
    fail(ErrorCode::kDataLoss, path_, ": entry ", name, " has a damaged header");
  }
  entry.offset = unzGetCurrentFileZStreamPos64(unzip);
  unzCloseCurrentFile(unzip);
  if (entry.offset > size_ || entry.compressed_size > size_ - entry.offset) {
    fail(ErrorCode::kDataLoss, path_, ": entry ", name, " reaches past the end of the file");
  }
  if (entry.is_stored && entry.size != entry.compressed_size) {
    fail(ErrorCode::kDataLoss, path_, ": entry ", name, " is stored with two different sizes");
  }
  if (!by_name_.emplace(entry.name, entries_.size()).second) {
    fail(ErrorCode::kDataLoss, path_, ": entry ", name, " appears twice");
  }
  entries_.push_back(std::move(entry));
}

void ZipArchive::check_limits() const {
  uint64_t inflated = 0;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Entry& entry : entries_) {
    if (entry.compressed_size > 0) ranges.emplace_back(entry.offset, entry.compressed_size);
    if (entry.is_stored) continue;
    if (entry.size > kRatioFreeBytes && entry.size / kMaxRatio > entry.compressed_size) {
      fail(ErrorCode::kResourceExhausted, path_, ": entry ", entry.name, " claims to inflate from ",
           entry.compressed_size, " to ", entry.size, " bytes; more than ", kMaxRatio, " to 1 is refused");
    }
    if (entry.size > options_.max_inflated_bytes || (inflated += entry.size) > options_.max_inflated_bytes) {
      fail(ErrorCode::kResourceExhausted, path_, ": compressed entries become more than ", options_.max_inflated_bytes,
           " bytes");
    }
  }
  // Each range lies inside the file, so no sum overflows.
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1].first + ranges[i - 1].second > ranges[i].first) {
      fail(ErrorCode::kDataLoss, path_, ": entries overlap");
    }
  }
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

const ZipArchive::Entry& ZipArchive::at(std::string_view name) const {
  const Entry* entry = find(name);
  if (!entry) fail(ErrorCode::kDataLoss, path_, ": has no entry ", name);
  return *entry;
}

void ZipArchive::check_crc(const Entry& entry, const void* data) const {
  if (crc_of(static_cast<const char*>(data), entry.size) != entry.crc) {
    fail(ErrorCode::kDataLoss, path_, ": entry ", entry.name, " is damaged: its checksum does not match");
  }
}

void ZipArchive::inflate_to(const Entry& entry, char* out) const {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(ErrorCode::kResourceExhausted, path_, ": no memory to inflate");
  stream.next_in = reinterpret_cast<Bytef*>(data_ + entry.offset);
  stream.avail_in = static_cast<uInt>(std::min<uint64_t>(entry.compressed_size, std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(out);
  Bytef nothing = 0;
  if (entry.size == 0) stream.next_out = &nothing;
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> owner(&stream, &inflateEnd);
  constexpr uint64_t kPiece = 16 << 20;
  int status = Z_OK;
  bool is_last = false;
  for (uint64_t left = entry.size; !is_last && status == Z_OK && stream.avail_out == 0;) {
    check_work_cancelled();
    is_last = left <= kPiece;
    const auto piece = static_cast<uInt>(std::min(left, kPiece));
    stream.avail_out = piece;
    status = inflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    left -= piece - stream.avail_out;
  }
  const bool is_whole = status == Z_STREAM_END && stream.total_out == entry.size;
  if (!is_whole) fail(ErrorCode::kDataLoss, path_, ": entry ", entry.name, " does not inflate to its size");
  check_crc(entry, out);
}

std::string ZipArchive::read(const Entry& entry) const {
  if (entry.size > options_.max_inflated_bytes) {
    fail(ErrorCode::kResourceExhausted, path_, ": entry ", entry.name, " has ", entry.size, " bytes, more than ",
         options_.max_inflated_bytes);
  }
  std::string out(entry.size, '\0');
  if (entry.is_stored) {
    std::memcpy(out.data(), data_ + entry.offset, entry.size);
    check_crc(entry, out.data());
  } else {
    inflate_to(entry, out.data());
  }
  return out;
}

Storage ZipArchive::storage(const Entry& entry) const {
  char* data = data_ + entry.offset;
  // Kernels may assume that elements are aligned. Writers that do not align are rare, so their entries are copied.
  if (entry.is_stored && reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
    if (options_.verify_stored) check_crc(entry, data);
    return wrap_storage(data, entry.size, [self = shared_from_this()] {});
  }
  Storage copy = allocate_storage(entry.size, {});
  if (entry.is_stored) {
    std::memcpy(copy->data(), data, entry.size);
    if (options_.verify_stored) check_crc(entry, data);
  } else {
    inflate_to(entry, static_cast<char*>(copy->data()));
  }
  return copy;
}

void ZipArchive::check_unchanged() const {
  if (outer_) return outer_->check_unchanged();
  const auto fail_changed = [&](const char* how) {
    fail(ErrorCode::kDataLoss, path_, ": the file was ", how,
         " while it was in use, so its results cannot be trusted; load it again (replace files by renaming others over "
         "them, or use"
         " --copy-archives on)");
  };
  if (guard_->has_faulted()) fail_changed("cut off");
  if (!file_) return;
  struct stat status {};
  if (fstat(file_->get(), &status) != 0 || static_cast<size_t>(status.st_size) < size_) fail_changed("cut off");
  if (changed_ns_of(status) != checked_ns_.load(std::memory_order_acquire)) check_contents(changed_ns_of(status));
  if (is_damaged_.load(std::memory_order_acquire)) fail_changed("written to");
}

// A new change time does not imply new contents, for example after `touch`.
void ZipArchive::check_contents(int64_t changed_ns) const {
  const MutexLock lock(check_mutex_);
  if (is_damaged_ || checked_ns_ == changed_ns) return;
  try {
    for (const Entry& entry : entries_) {
      if (entry.is_stored) {
        check_crc(entry, data_ + entry.offset);
      } else {
        read(entry);
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded) throw;
    is_damaged_ = true;
  }
  checked_ns_.store(changed_ns, std::memory_order_release);
}

size_t ZipArchive::release_pages() const {
  return outer_ ? outer_->release_pages() : release_mapped_pages(data_, size_);
}

void check_byte_order(const ZipArchive& archive) {
  const ZipArchive::Entry* entry = archive.find("byteorder");
  if (!entry) return;
  const std::string order = archive.read(*entry);
  if (order != "little")
    fail(ErrorCode::kUnimplemented, archive.path(), ": byte order ", order.substr(0, 16), " is not supported");
}

}  // namespace tensord::jit
