#include "core/base/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace tensord {

size_t memory_limit() {
  size_t limit = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // cgroup v2 says "max" where it has none, v1 a number above any memory.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    uint64_t bytes = 0;
    if (file >> bytes) limit = std::min<size_t>(limit, bytes);
  }
  return limit;
}

}  // namespace tensord
