#pragma once

#include <cstddef>
#include <cstdint>

namespace tensord::jit {

// The CRC of zip files over `size` bytes; as zlib's, which it falls back to, but three times as fast where the
// processor multiplies without carries.
uint32_t crc32_of(const char* data, size_t size);

}  // namespace tensord::jit
