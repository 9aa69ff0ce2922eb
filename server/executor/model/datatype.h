#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/tensor/dtype.h"

namespace tensord::server {

// The element types of the protocol.
enum class DataType : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes,
};

const char* name_of(DataType datatype);  // "FP32"
std::optional<DataType> parse_datatype(std::string_view name);
// The size of one element in bytes; 0 for kBytes, whose elements vary in size.
size_t size_of(DataType datatype);
// Empty for kBytes and for the wide unsigned types, which no tensor has.
std::optional<DType> to_dtype(DataType datatype);
// Throws Error{kUnimplemented} for a complex dtype, which the protocol does not support.
DataType from_dtype(DType dtype);

}  // namespace tensord::server
