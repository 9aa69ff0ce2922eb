#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

namespace tensord::files {

// The header of a .npy array.
struct NpyHeader {
  std::string descr;  // NumPy's name of the dtype, as "<f4"
  bool is_fortran = false;
  Dims shape;
  size_t data_begin = 0;  // offset from the first byte of the array
};

// `bytes` is the whole array and untrusted. Throws Error whose message starts with `source`: kDataLoss (truncated or
// malformed), kUnimplemented (structured arrays, newer versions of the format).
NpyHeader read_npy_header(const std::string& source, std::string_view bytes);

// Calls `read` for each array of a .npz file with its name, the source for error messages, and its bytes; all arrays
// together decompress to at most `max_bytes`. Throws Error whose message starts with `path`, as ZipArchive and `read`
// do.
using ReadNpy = std::function<void(const std::string& name, const std::string& source, const Storage& bytes)>;
void read_npz_entries(const std::string& path, size_t max_bytes, const ReadNpy& read);

}  // namespace tensord::files
