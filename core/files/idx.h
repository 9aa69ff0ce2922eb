#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tensord::files {

// Reads an array in MNIST's IDX format: 00 00 type rank, the sizes, the numbers, all big-endian; uint8, int8, int16,
// int32, float32 or float64. A gzip file is decompressed. Throws Error whose message starts with the path: kNotFound,
// kDataLoss (truncated, malformed, or extra bytes after the array), kResourceExhausted.
Tensor read_idx(const std::string& path);

// Decompresses gzip data to at most `max_bytes` bytes.
std::string gunzip(std::string_view packed, size_t max_bytes, const std::string& source);

}  // namespace tensord::files
