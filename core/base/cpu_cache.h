#pragma once

#include <cstddef>

namespace tensord {

// Bytes of the largest cache of the first processor, shared by its cores; 8 MiB where the system does
// not say.
size_t last_cache_bytes();

}  // namespace tensord
