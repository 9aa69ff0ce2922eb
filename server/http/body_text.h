#pragma once

#include <string>

#include "core/tensor/memory/caching_allocator.h"

namespace tensord::server {

// Memory of the pool, which gives back what nobody uses; the heap of a thread would keep it.
template <typename T>
struct PoolMemory {
  using value_type = T;
  T* allocate(size_t count) { return static_cast<T*>(cpu_allocator().allocate(count * sizeof(T))); }
  void deallocate(T* data, size_t) { cpu_allocator().free(data); }
  bool operator==(const PoolMemory&) const = default;
};

// A text as large as a body may be.
using BodyText = std::basic_string<char, std::char_traits<char>, PoolMemory<char>>;

}  // namespace tensord::server
