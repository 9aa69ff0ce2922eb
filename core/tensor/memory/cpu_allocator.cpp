#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "core/base/memory_limit.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/memory_checks.h"

namespace tensord {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// Maps anonymous memory. Large pieces are aligned to huge pages and advised to use them. The kernel overcommits and
// would kill the process later, so the sum is limited here.
class CpuSource : public Allocator {
 public:
  void* allocate(size_t size_bytes) override {
    const size_t size = page_round(size_bytes);
    if (size < size_bytes || size > limit_) return nullptr;
    if (taken_.fetch_add(size, std::memory_order_relaxed) > limit_ - size) {
      taken_.fetch_sub(size, std::memory_order_relaxed);
      return nullptr;
    }
    void* data = map_block(size_bytes);
    if (!data) taken_.fetch_sub(size, std::memory_order_relaxed);
    return data;
  }

  void free(void* data, size_t size_bytes) override {
    unmap_block(data, size_bytes);
    taken_.fetch_sub(page_round(size_bytes), std::memory_order_relaxed);
  }

  void purge(void* data, size_t size_bytes) override {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const uintptr_t begin = page_round(address), end = (address + size_bytes) / page_ * page_;
    if (begin < end) madvise(static_cast<char*>(data) + (begin - address), end - begin, MADV_DONTNEED);
  }

  Device device() const override { return {}; }

 private:
  virtual void* map_block(size_t size_bytes) {
    const size_t size = page_round(size_bytes);
    return size >= kHugePageBytes ? map_aligned(size) : map(size);
  }
  virtual void unmap_block(void* data, size_t size_bytes) { munmap(data, page_round(size_bytes)); }

  size_t page_round(size_t size) const { return (size + page_ - 1) / page_ * page_; }

  static void* map(size_t size) {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }

  static void* map_aligned(size_t size) {
    char* data = static_cast<char*>(map(size + kHugePageBytes));
    if (!data) return nullptr;
    const size_t before = (kHugePageBytes - reinterpret_cast<uintptr_t>(data) % kHugePageBytes) % kHugePageBytes;
    if (before) munmap(data, before);
    if (before < kHugePageBytes) munmap(data + before + size, kHugePageBytes - before);
    madvise(data + before, size, MADV_HUGEPAGE);  // only advice, which the kernel may refuse
    return data + before;
  }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t limit_ = memory_limit();
  std::atomic<size_t> taken_{0};
};

class GuardedSource final : public CpuSource {
 public:
  bool is_cached() const override { return false; }

 private:
  void* map_block(size_t size_bytes) override { return map_guarded(size_bytes); }
  void unmap_block(void* data, size_t size_bytes) override { unmap_guarded(data, size_bytes); }
};

}  // namespace

std::unique_ptr<Allocator> make_cpu_source() {
  if (guards_memory()) return std::make_unique<GuardedSource>();
  return std::make_unique<CpuSource>();
}

CachingAllocator& cpu_allocator() {
  static CachingAllocator* allocator = new CachingAllocator(make_cpu_source());
  return *allocator;
}

}  // namespace tensord
