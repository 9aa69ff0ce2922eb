#include "core/jit/importers/onnx/tensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/check_bools.h"
#include "core/jit/importers/onnx/message_writer.h"
#include "core/tensor/allocator.h"

namespace tensord::jit::onnx {
namespace {

struct NamedType {
  const char* name;
  std::optional<DType> dtype;
};
// Indexed by TensorProto.DataType.
const NamedType kTypes[] = {
    {"UNDEFINED", {}},
    {"FLOAT", DType::kFloat32},
    {"UINT8", DType::kUInt8},
    {"INT8", DType::kInt8},
    {"UINT16", {}},
    {"INT16", DType::kInt16},
    {"INT32", DType::kInt32},
    {"INT64", DType::kInt64},
    {"STRING", {}},
    {"BOOL", DType::kBool},
    {"FLOAT16", DType::kFloat16},
    {"DOUBLE", DType::kFloat64},
    {"UINT32", {}},
    {"UINT64", {}},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", DType::kBFloat16},
    {"FLOAT8E4M3FN", {}},
    {"FLOAT8E4M3FNUZ", {}},
    {"FLOAT8E5M2", {}},
    {"FLOAT8E5M2FNUZ", {}},
    {"UINT4", {}},
    {"INT4", {}},
    {"FLOAT4E2M1", {}},
    {"FLOAT8E8M0", {}},
    {"UINT2", {}},
    {"INT2", {}},
    {"FLOAT6E2M3", {}},
    {"FLOAT6E3M2", {}},
};

constexpr int64_t kUInt4 = 21, kInt4 = 22;

std::string title(const TensorProto& proto) { return "tensor '" + proto.name + "'"; }

// Checks the sizes and computes the number of bytes. Throws on overflow.
Dims checked_sizes(const std::vector<int64_t>& dims, DType dtype, const std::string& what, size_t& size_bytes) {
  constexpr size_t kMaxDimensions = 64;
  if (dims.size() > kMaxDimensions) fail(ErrorCode::kDataLoss, what, ": has ", dims.size(), " dimensions");
  Dims sizes;
  size_t count = 1;
  bool is_empty = false;
  for (const int64_t size : dims) {
    if (size < 0) fail(ErrorCode::kDataLoss, what, ": has a dimension of size ", size);
    is_empty = is_empty || size == 0;
    sizes.push_back(size);
  }
  for (const int64_t size : dims) {
    if (__builtin_mul_overflow(count, static_cast<size_t>(std::max<int64_t>(size, 1)), &count)) {
      fail(ErrorCode::kDataLoss, what, ": is larger than any memory");
    }
  }
  if (is_empty) count = 0;
  if (__builtin_mul_overflow(count, size_of(dtype), &size_bytes) || size_bytes > size_t{1} << 62) {
    fail(ErrorCode::kDataLoss, what, ": is larger than any memory");
  }
  return sizes;
}

int64_t parse_number(const TensorProto& proto, const char* key, int64_t otherwise) {
  const auto found = proto.external_data.find(key);
  if (found == proto.external_data.end()) return otherwise;
  const std::string& text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(ErrorCode::kDataLoss, title(proto), ": external_data has ", key, " '", text, "'");
  }
  return value;
}

}  // namespace

bool has_four_bits(int64_t data_type) { return data_type == kUInt4 || data_type == kInt4; }

std::optional<DType> find_dtype(int64_t data_type) {
  if (data_type < 0 || data_type >= std::ssize(kTypes)) return std::nullopt;
  return kTypes[data_type].dtype;
}

std::string data_type_name(int64_t data_type) {
  if (data_type < 0 || data_type >= std::ssize(kTypes)) return std::to_string(data_type);
  return kTypes[data_type].name;
}

DType to_dtype(int64_t data_type, const std::string& what) {
  const std::optional<DType> dtype = find_dtype(data_type);
  if (!dtype) fail(ErrorCode::kUnimplemented, what, ": element type ", data_type_name(data_type), " is not supported");
  return *dtype;
}

int32_t data_type_of(DType dtype) {
  for (int32_t type = 1; type < std::ssize(kTypes); ++type) {
    if (find_dtype(type) == dtype) return type;
  }
  fail(ErrorCode::kUnimplemented, "ONNX: tensors of type ", name_of(dtype), " are not written");
}

std::string tensor_head(const std::string& name, const Tensor& tensor) {
  // TensorProto: dims, data_type, name, raw_data.
  MessageWriter head;
  for (const int64_t size : tensor.sizes()) head.number(1, size);
  head.number(2, data_type_of(tensor.dtype()));
  head.text(8, name);
  head.begin_bytes(9, tensor.size_bytes());
  return head.bytes();
}

const std::shared_ptr<const MappedFile>& TensorReader::external_file(const TensorProto& proto,
                                                                     const std::string& location) {
  std::shared_ptr<const MappedFile>& file = files_[location];
  if (file) return file;
  namespace fs = std::filesystem;
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::kInvalidArgument, title(proto), ": external data '", location, "' ", why);
  };
  const fs::path relative(location);
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos) {
    refuse("is not a path in the model's folder");
  }
  if (std::ranges::find(relative, fs::path("..")) != relative.end()) refuse("leaves the model's folder");
  // Symlinks are followed as long as they stay inside the folder.
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error);
  const fs::path whole = error ? fs::path() : fs::canonical(folder / relative, error);
  if (error)
    fail(ErrorCode::kNotFound, title(proto), ": external data '", location, "' cannot be opened: ", error.message());
  if (std::mismatch(folder.begin(), folder.end(), whole.begin(), whole.end()).first != folder.end()) {
    refuse("leads out of the model's folder");
  }
  file = MappedFile::open(whole.string(), copies_files_);
  return file;
}

TensorReader::Place TensorReader::external(const TensorProto& proto, size_t size_bytes) {
  ++external_count_;
  const auto location = proto.external_data.find("location");
  if (location == proto.external_data.end())
    fail(ErrorCode::kDataLoss, title(proto), ": external data has no location");
  if (size_bytes == 0) return {};
  const std::shared_ptr<const MappedFile>& file = external_file(proto, location->second);
  const auto offset = static_cast<size_t>(parse_number(proto, "offset", 0));
  if (offset > file->size() || size_bytes > file->size() - offset) {
    fail(ErrorCode::kDataLoss, title(proto), ": ", size_bytes, " bytes at ", offset, " are not in '", location->second,
         "', which has ", file->size());
  }
  const int64_t length = parse_number(proto, "length", static_cast<int64_t>(size_bytes));
  if (length != static_cast<int64_t>(size_bytes)) {
    fail(ErrorCode::kDataLoss, title(proto), ": external data has ", length, " bytes, but the tensor takes ",
         size_bytes);
  }
  return {file, {reinterpret_cast<const uint8_t*>(file->data()) + offset, size_bytes}};
}

Tensor TensorReader::from_bytes(const TensorProto& proto, const Place& place, DType dtype, const Dims& sizes) const {
  const bool is_aligned = reinterpret_cast<uintptr_t>(place.bytes.data()) % kAlignment == 0;
  if (place.file && is_aligned && !copies_ && !place.bytes.empty()) {
    const auto offset = static_cast<size_t>(reinterpret_cast<const char*>(place.bytes.data()) - place.file->data());
    const Tensor view = Tensor::from_storage(place.file->storage(offset, place.bytes.size()), sizes,
                                             contiguous_strides(sizes), 0, dtype);
    check_bools(view, title(proto));
    return view;
  }
  const Tensor tensor = Tensor::empty(sizes, dtype);
  if (!place.bytes.empty()) std::memcpy(tensor.raw_data(), place.bytes.data(), place.bytes.size());
  check_bools(tensor, title(proto));
  return tensor;
}

Tensor TensorReader::from_fields(const TensorProto& proto, DType dtype, const Dims& sizes) {
  const Tensor tensor = Tensor::empty(sizes, dtype);
  const auto count = static_cast<size_t>(tensor.numel());
  const auto expect = [&](size_t found) {
    if (found != count)
      fail(ErrorCode::kDataLoss, title(proto), ": has ", found, " elements, but its sizes make ", count);
  };
  const auto copy_bytes = [&](const std::vector<std::span<const uint8_t>>& pieces) {
    size_t found = 0;
    for (const auto& piece : pieces) found += piece.size() / size_of(dtype);
    expect(found);
    auto* out = static_cast<char*>(tensor.raw_data());
    for (const auto& piece : pieces) {
      if (!piece.empty()) std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
    }
  };
  const auto convert = [&]<class T>(const std::vector<int64_t>& values, int64_t low, int64_t high) {
    expect(values.size());
    T* out = static_cast<T*>(tensor.raw_data());
    for (const int64_t value : values) {
      if (value < low || value > high)
        fail(ErrorCode::kDataLoss, title(proto), ": ", value, " is out of its type's range");
      *out++ = static_cast<T>(value);
    }
  };
  switch (dtype) {
    case DType::kFloat32: copy_bytes(proto.float_data); break;
    case DType::kFloat64: copy_bytes(proto.double_data); break;
    case DType::kInt64: convert.operator()<int64_t>(proto.int64_data, INT64_MIN, INT64_MAX); break;
    case DType::kInt32: convert.operator()<int32_t>(proto.int32_data, INT32_MIN, INT32_MAX); break;
    case DType::kInt16: convert.operator()<int16_t>(proto.int32_data, INT16_MIN, INT16_MAX); break;
    case DType::kInt8: convert.operator()<int8_t>(proto.int32_data, INT8_MIN, INT8_MAX); break;
    case DType::kUInt8: convert.operator()<uint8_t>(proto.int32_data, 0, UINT8_MAX); break;
    case DType::kBool: convert.operator()<uint8_t>(proto.int32_data, 0, 1); break;
    // Stored as bit patterns.
    case DType::kFloat16:
    case DType::kBFloat16: convert.operator()<uint16_t>(proto.int32_data, 0, UINT16_MAX); break;
    default: fail(ErrorCode::kUnimplemented, title(proto), ": element type ", name_of(dtype), " is not supported");
  }
  return tensor;
}

// Two elements per byte, the first one in the lower half.
Tensor TensorReader::read_four_bits(const TensorProto& proto) {
  size_t count = 0;
  const Dims sizes = checked_sizes(proto.dims, DType::kInt8, title(proto), count);
  const size_t size_bytes = count / 2 + count % 2;
  std::vector<uint8_t> fields;
  Place place{model_, proto.raw_data};
  if (proto.is_external) {
    place = external(proto, size_bytes);
  } else if (!proto.has_raw_data) {
    for (const int64_t value : proto.int32_data) fields.push_back(static_cast<uint8_t>(value));
    place = {nullptr, fields};
  }
  if (place.bytes.size() != size_bytes) {
    fail(ErrorCode::kDataLoss, title(proto), ": has ", place.bytes.size(), " bytes, but the tensor takes ", size_bytes);
  }
  const Tensor tensor = Tensor::empty(sizes, DType::kInt8);
  auto* out = tensor.data<int8_t>();
  for (size_t i = 0; i < count; ++i) {
    const int bits = place.bytes[i / 2] >> (i % 2 * 4) & 15;
    out[i] = static_cast<int8_t>(proto.data_type == kInt4 && bits > 7 ? bits - 16 : bits);
  }
  return tensor;
}

Tensor TensorReader::read(const TensorProto& proto) {
  if (has_four_bits(proto.data_type)) return read_four_bits(proto);
  const DType dtype = to_dtype(proto.data_type, title(proto));
  size_t size_bytes = 0;
  const Dims sizes = checked_sizes(proto.dims, dtype, title(proto), size_bytes);
  if (proto.is_external) return from_bytes(proto, external(proto, size_bytes), dtype, sizes);
  if (!proto.has_raw_data) {
    // Checked before memory is allocated.
    size_t bytes = 0;
    for (const auto& piece : proto.float_data) bytes += piece.size();
    for (const auto& piece : proto.double_data) bytes += piece.size();
    bytes += (proto.int32_data.size() + proto.int64_data.size()) * sizeof(int64_t);
    if (bytes < size_bytes) fail(ErrorCode::kDataLoss, title(proto), ": has fewer elements than its sizes make");
    return from_fields(proto, dtype, sizes);
  }
  if (proto.raw_data.size() != size_bytes) {
    fail(ErrorCode::kDataLoss, title(proto), ": raw_data has ", proto.raw_data.size(), " bytes, but the tensor takes ",
         size_bytes);
  }
  return from_bytes(proto, {model_, proto.raw_data}, dtype, sizes);
}

Tensor TensorReader::read_attribute(const TensorProto& proto) {
  Tensor& known = attributes_[&proto];
  if (!known.defined()) known = read(proto);
  return known;
}

Tensor TensorReader::read_attribute(const SparseTensorProto& proto) {
  Tensor& known = attributes_[&proto];
  if (!known.defined()) known = read_sparse(proto);
  return known;
}

Tensor TensorReader::read_sparse(const SparseTensorProto& proto) {
  const std::string what = title(proto.values);
  to_dtype(proto.values.data_type, what);  // refuses types that read() would convert
  const Tensor values = read(proto.values), indices = read(proto.indices);
  const bool is_linear = indices.ndim() == 1;
  const auto rank = static_cast<int64_t>(proto.dims.size());
  const bool fits = values.ndim() == 1 && indices.dtype() == DType::kInt64 && indices.ndim() <= 2 &&
                    indices.ndim() >= 1 && indices.size(0) == values.size(0) && (is_linear || indices.size(1) == rank);
  if (!fits) fail(ErrorCode::kDataLoss, what, ": indices do not fit the values");
  size_t size_bytes = 0;
  const Dims sizes = checked_sizes(proto.dims, values.dtype(), what, size_bytes);
  const Tensor dense = Tensor::empty(sizes, values.dtype());
  std::memset(dense.raw_data(), 0, size_bytes);
  const size_t element = size_of(values.dtype());
  const int64_t* index = indices.data<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < (is_linear ? 1 : rank); ++d, ++index) {
      const int64_t size = is_linear ? dense.numel() : sizes[static_cast<size_t>(d)];
      if (*index < 0 || *index >= size) fail(ErrorCode::kDataLoss, what, ": an index is out of range");
      at = at * size + *index;
    }
    std::memcpy(static_cast<char*>(dense.raw_data()) + static_cast<size_t>(at) * element,
                static_cast<const char*>(values.raw_data()) + static_cast<size_t>(i) * element, element);
  }
  return dense;
}

}  // namespace tensord::jit::onnx
