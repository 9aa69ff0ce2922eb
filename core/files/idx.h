#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tensord::files {

// An array of MNIST's format: 00 00 type rank, the sizes, the numbers, all big-endian; uint8, int8, int16, int32,
// float32 or float64. A file that starts as gzip's do is unpacked. Throws Error that starts with the path: kNotFound,
// kDataLoss (truncated, malformed, or bytes behind the array), kResourceExhausted.
Tensor read_idx(const std::string& path);

// What gzip packed, at most `max_bytes` of it.
std::string gunzip(std::string_view packed, size_t max_bytes, const std::string& source);

}  // namespace tensord::files
