#pragma once

#include <string>
#include <string_view>

#include "core/tensor/shape.h"

namespace tensord::server {

// What stands before the data of a .npy array.
struct NpyHeader {
  std::string descr;  // NumPy's name of the dtype, as "<f4"
  bool is_fortran = false;
  Dims shape;
  size_t data_begin = 0;  // offset from the first byte
};

// `bytes` is the whole array, and taken to be hostile. Throws Error that starts with `source`: kDataLoss (truncated or
// malformed), kUnimplemented (structured arrays, newer versions of the format).
NpyHeader read_npy_header(const std::string& source, std::string_view bytes);

}  // namespace tensord::server
