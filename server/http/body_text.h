#pragma once

#include <string>

#include "core/tensor/memory/caching_allocator.h"

namespace tensord::server {

// Allocator on the tensors' memory pool, which returns unused memory to the system; a thread's heap would keep it.
template <typename T>
struct PoolMemory {
  using value_type = T;
  T* allocate(size_t count) { return static_cast<T*>(cpu_allocator().allocate(count * sizeof(T))); }
  void deallocate(T* data, size_t) { cpu_allocator().free(data); }
  bool operator==(const PoolMemory&) const = default;
};

// A string as large as a body.
using BodyText = std::basic_string<char, std::char_traits<char>, PoolMemory<char>>;

}  // namespace tensord::server
