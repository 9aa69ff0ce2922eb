#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

namespace tensord::files {

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

// Calls `read` with each array of a .npz file: its name, what errors call it, and its bytes, at most `max_bytes`
// unpacked in all. Throws Error that starts with `path`: as ZipArchive, and what `read` throws.
using ReadNpy = std::function<void(const std::string& name, const std::string& source, const Storage& bytes)>;
void read_npz_entries(const std::string& path, size_t max_bytes, const ReadNpy& read);

}  // namespace tensord::files
