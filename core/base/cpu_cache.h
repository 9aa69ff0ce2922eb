#pragma once

#include <cstddef>

namespace tensord {

// The size of the last-level cache of the first processor; 8 MiB where the system does not report it.
size_t last_cache_bytes();

}  // namespace tensord
