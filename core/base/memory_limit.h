#pragma once

#include <cstddef>

namespace tensord {

// Bytes that this process can ever have: physical memory, or less when its cgroup says so.
size_t memory_limit();

}  // namespace tensord
