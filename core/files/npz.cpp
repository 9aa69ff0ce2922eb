#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/files/npy.h"
#include "core/files/table.h"
#include "core/tensor/mapped_file.h"

namespace tensord::files {
namespace {

// The largest buffer that zlib inflates in one call. On most machines the memory limit of the job is smaller.
constexpr size_t kMaxInflated = (size_t{4} << 30) - 1;

DType dtype_of_descr(const std::string& source, const std::string& descr) {
  static const std::map<std::string_view, DType> kDTypes = {
      {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64},
      {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
      {"i8", DType::kInt64},   {"u1", DType::kUInt8},   {"b1", DType::kBool},
  };
  const auto found = descr.size() == 3 ? kDTypes.find(std::string_view(descr).substr(1)) : kDTypes.end();
  const bool is_little = !descr.empty() && (descr[0] == '<' || descr[0] == '|');
  if (found == kDTypes.end() || !is_little) {
    fail(ErrorCode::kUnimplemented, source, ": arrays of dtype '", descr.substr(0, 32),
         "' are not read; bool, uint8, int8 to int64 and float16 to float64 (little-endian) are");
  }
  return found->second;
}

Tensor read_array(const std::string& source, const Storage& storage) {
  const NpyHeader header = read_npy_header(source, {static_cast<const char*>(storage->data()), storage->size_bytes()});
  const DType dtype = dtype_of_descr(source, header.descr);
  const size_t item = size_of(dtype), available = storage->size_bytes() - header.data_begin;
  const auto numel = static_cast<size_t>(checked_numel(header.shape));
  if (numel > available / item || numel * item != available) {
    fail(ErrorCode::kDataLoss, source, ": has ", available, " bytes of data for ", to_string(header.shape), " of ",
         name_of(dtype));
  }
  Dims strides = contiguous_strides(header.shape);
  if (header.is_fortran) {
    int64_t step = 1;
    for (size_t d = 0; d < strides.size(); ++d) {
      strides[d] = step;
      step *= std::max<int64_t>(header.shape[d], 1);
    }
  }
  // A stored bool may be any byte, but a bool tensor may hold only 0 and 1.
  const DType stored = dtype == DType::kBool ? DType::kUInt8 : dtype;
  Storage bytes = storage;
  size_t offset = header.data_begin / item;
  if (header.data_begin % item != 0) {
    bytes = allocate_storage(available, {});
    if (available > 0)
      std::memcpy(bytes->data(), static_cast<const char*>(storage->data()) + header.data_begin, available);
    offset = 0;
  }
  const Tensor array = Tensor::from_storage(bytes, header.shape, strides, static_cast<int64_t>(offset), stored);
  return (dtype == DType::kBool ? array.to(DType::kBool) : array).contiguous();
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const auto file = MappedFile::open(path, /*copies=*/true);
  return read_array(path, file->storage(0, file->size()));
}

NamedArrays read_npz(const std::string& path) {
  NamedArrays arrays;
  read_npz_entries(path, kMaxInflated, [&](const std::string& name, const std::string& source, const Storage& bytes) {
    arrays.emplace_back(name, read_array(source, bytes));
  });
  return arrays;
}

}  // namespace tensord::files
