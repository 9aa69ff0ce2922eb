#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "tests/cuda/emulated/sanitizer.h"

namespace tensord::cuda::emulated {

inline uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The memory of one device in two mappings of one file: what tensors point to has no access rights, kernels use the
// other.
class Memory {
 public:
  Memory() : size_(std::min<size_t>(number_in("TENSORD_CUDA_MEMORY", size_t{8} << 30), kReservedBytes)) {
    if (file_ < 0 || ftruncate(file_, kReservedBytes) != 0) std::abort();
    outside_ = map(file_, 0, kReservedBytes, PROT_NONE, nullptr);
    inside_ = map(file_, 0, kReservedBytes, PROT_READ | PROT_WRITE, nullptr);
    free_.emplace(0, size_);
  }
  void* allocate(size_t size_bytes) {
    char* const data = take(size_bytes);
    if (data) std::memset(inside(data), 0xff, std::min<size_t>(size_bytes, size_t{16} << 20));  // NaN
    return data;
  }
  // Memory of another process: the file's pages stand in the place of the device's own. Null: no room.
  void* import(int file, size_t size_bytes) {
    char* const data = take(size_bytes);
    if (!data) return nullptr;
    map(file, 0, rounded(size_bytes), PROT_NONE, data);
    map(file, 0, rounded(size_bytes), PROT_READ | PROT_WRITE, inside(data));
    imported_.insert(static_cast<size_t>(data - outside_));
    return data;
  }
  bool free(void* data) {
    const auto found = used_.find(static_cast<size_t>(static_cast<char*>(data) - outside_));
    if (found == used_.end()) return false;
    auto [begin, size] = *found;
    used_.erase(found);
    sanitizer::close(inside_ + begin, size);
    if (imported_.erase(begin) > 0) {
      map(file_, begin, size, PROT_NONE, outside_ + begin);
      map(file_, begin, size, PROT_READ | PROT_WRITE, inside_ + begin);
    } else {
      madvise(inside_ + begin, size, MADV_REMOVE);
    }
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == begin + size) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == begin)
      std::prev(after)->second += size;
    else
      free_.emplace(begin, size);
    return true;
  }
  bool has(const void* address) const {
    const char* const at = static_cast<const char*>(address);
    return at >= outside_ && at < outside_ + kReservedBytes;
  }
  // The bytes from there to the end of what was allocated.
  size_t room(const void* address) const {
    const auto at = static_cast<size_t>(static_cast<const char*>(address) - outside_);
    const auto after = used_.upper_bound(at);
    if (after == used_.begin()) return 0;
    const auto [begin, size] = *std::prev(after);
    const size_t end = begin + size - kGap;
    return at < end ? end - at : 0;
  }
  void* inside(const void* address) const { return inside_ + (static_cast<const char*>(address) - outside_); }
  uint64_t free_bytes() const {
    uint64_t sum = 0;
    for (const auto& [begin, size] : free_) sum += size;
    return sum;
  }
  uint64_t size() const { return size_; }

 private:
  static constexpr size_t kReservedBytes = size_t{16} << 30;  // of each device: address space
  // Behind each block, where bounds are checked.
  static constexpr size_t kGap = sanitizer::kChecksBounds ? 4096 : 0;
  static size_t rounded(size_t size) { return (size + 4095) / 4096 * 4096; }
  // A block for so many bytes; null: no room.
  char* take(size_t size_bytes) {
    const size_t size = rounded(size_bytes + kGap);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [begin, room] = *it;
      if (room < size) continue;
      free_.erase(it);
      if (room > size) free_.emplace(begin + size, room - size);
      used_.emplace(begin, size);
      sanitizer::close(inside_ + begin, size);
      sanitizer::open(inside_ + begin, (size_bytes + 3) / 4 * 4);  // atomics read whole words
      return outside_ + begin;
    }
    return nullptr;
  }
  // At `place`, if it is not null.
  static char* map(int file, size_t offset, size_t size, int access, void* place) {
    const int flags = MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0);
    void* const data = mmap(place, size, access, flags, file, static_cast<off_t>(offset));
    if (data == MAP_FAILED) std::abort();
    return static_cast<char*>(data);
  }
  const size_t size_;
  const int file_ = memfd_create("emulated-cuda", MFD_CLOEXEC);
  char* outside_ = nullptr;
  char* inside_ = nullptr;
  std::map<size_t, size_t> free_, used_;  // offset → size
  std::set<size_t> imported_;             // of used_
};

}  // namespace tensord::cuda::emulated
