#include "core/tensor/memory/memory_checks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/tensor/allocator.h"

namespace tensord {
namespace {

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value && std::string_view(value) != "0";
}

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t whole_pages(size_t size_bytes) { return (size_bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

void check_canaries(const unsigned char* begin, const unsigned char* end, const unsigned char* data,
                    size_t size_bytes) {
  for (const unsigned char* at = begin; at < end; ++at) {
    if (*at == kPoison) continue;
    std::fprintf(stderr, "TENSORD_GUARD: byte %td of a block of %zu bytes was written\n", at - data, size_bytes);
    std::abort();
  }
}

}  // namespace

bool guards_memory() {
  static const bool guards = is_set("TENSORD_GUARD");
  return guards;
}

bool poisons_memory() {
  static const bool poisons = is_set("TENSORD_POISON");
  return poisons;
}

void* map_guarded(size_t size_bytes) {
  static std::atomic<uint64_t> count{0};
  const size_t page = page_bytes(), pages = whole_pages(size_bytes);
  void* const base = mmap(nullptr, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(base) + page;
  if (mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, pages + 2 * page);
    return nullptr;
  }
  const bool ends_at_page = count.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
  const size_t before = ends_at_page ? (pages - size_bytes) / kAlignment * kAlignment : 0;
  std::memset(first, kPoison, before);
  std::memset(first + before + size_bytes, kPoison, pages - before - size_bytes);
  return first + before;
}

void unmap_guarded(void* data, size_t size_bytes) {
  const size_t page = page_bytes(), pages = whole_pages(size_bytes);
  auto* const bytes = static_cast<unsigned char*>(data);
  unsigned char* const first = bytes - reinterpret_cast<uintptr_t>(data) % page;
  check_canaries(first, bytes, bytes, size_bytes);
  check_canaries(bytes + size_bytes, first + pages, bytes, size_bytes);
  munmap(first - page, pages + 2 * page);
}

}  // namespace tensord
