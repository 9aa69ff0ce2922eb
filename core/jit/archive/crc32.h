#pragma once

#include <cstddef>
#include <cstdint>

namespace tensord::jit {

// The CRC-32 of zip files over `size` bytes. Same result as zlib's function, which it falls back to, but three times as
// fast on processors with carry-less multiplication.
uint32_t crc32_of(const char* data, size_t size);

}  // namespace tensord::jit
