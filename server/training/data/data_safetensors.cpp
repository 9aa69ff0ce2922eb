#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/data/data_formats.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 16 << 20;
constexpr int kMaxDepth = 4;

DType dtype_of_code(const std::string& source, const std::string& code) {
  static const std::map<std::string, DType> kDTypes = {
      {"F64", DType::kFloat64}, {"F32", DType::kFloat32}, {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16},
      {"I64", DType::kInt64},   {"I32", DType::kInt32},   {"I16", DType::kInt16},   {"I8", DType::kInt8},
      {"U8", DType::kUInt8},    {"BOOL", DType::kBool},
  };
  const auto found = kDTypes.find(code);
  if (found == kDTypes.end())
    fail(ErrorCode::kUnimplemented, source, ": tensors of dtype ", code.substr(0, 32), " are not read");
  return found->second;
}

Json parse_header(const std::string& path, std::string_view text) {
  bool is_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    is_deep |= depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json header = Json::parse(text.begin(), text.end(), watch_depth, false);
  if (is_deep || !header.is_object()) fail(ErrorCode::kDataLoss, path, ": the header is no JSON object of tensors");
  return header;
}

// A number of the header that is 0 or more.
uint64_t number_of(const std::string& source, const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{INT64_MAX})
    fail(ErrorCode::kDataLoss, source, ": the header has a bad number");
  return value.get<uint64_t>();
}

struct Range {
  uint64_t begin, end;
};

Tensor read_tensor(const std::string& source, const Json& info, const std::shared_ptr<MappedFile>& file,
                   uint64_t data_begin, std::vector<Range>& ranges) {
  const bool is_whole = info.is_object() && info.contains("dtype") && info["dtype"].is_string() &&
                        info.contains("shape") && info["shape"].is_array() && info.contains("data_offsets") &&
                        info["data_offsets"].is_array() && info["data_offsets"].size() == 2;
  if (!is_whole) fail(ErrorCode::kDataLoss, source, ": the header lacks dtype, shape or data_offsets");
  const DType dtype = dtype_of_code(source, info["dtype"].get<std::string>());
  const Json& shape = info["shape"];
  if (shape.size() > kMaxDims) fail(ErrorCode::kDataLoss, source, ": has ", shape.size(), " dimensions");
  Dims sizes;
  for (const Json& size : shape) sizes.push_back(static_cast<int64_t>(number_of(source, size)));
  const Range range{number_of(source, info["data_offsets"][0]), number_of(source, info["data_offsets"][1])};
  const uint64_t data_size = file->size() - data_begin, item = size_of(dtype);
  if (range.begin > range.end || range.end > data_size)
    fail(ErrorCode::kDataLoss, source, ": reaches past the end of the file");
  const auto numel = static_cast<uint64_t>(checked_numel(sizes));
  const uint64_t bytes = range.end - range.begin;
  if (numel > bytes / item || numel * item != bytes) {
    fail(ErrorCode::kDataLoss, source, ": has ", bytes, " bytes of data for ", to_string(sizes), " of ",
         name_of(dtype));
  }
  ranges.push_back(range);
  char* data = file->data() + data_begin + range.begin;
  const Dims strides = contiguous_strides(sizes);
  if (dtype == DType::kBool) {
    const Storage mapped = wrap_storage(data, bytes, [file] {});
    return Tensor::from_storage(mapped, sizes, strides, 0, DType::kUInt8).to(DType::kBool);
  }
  if (reinterpret_cast<uintptr_t>(data) % item == 0)
    return Tensor::from_storage(wrap_storage(data, bytes, [file] {}), sizes, strides, 0, dtype);
  const Tensor copy = Tensor::empty(sizes, dtype);
  if (bytes > 0) std::memcpy(copy.raw_data(), data, bytes);
  return copy;
}

}  // namespace

NamedArrays read_safetensors(const std::string& path) {
  const auto file = MappedFile::open(path);
  uint64_t length = 0;
  for (size_t i = 0; i < 8 && i < file->size(); ++i)
    length |= static_cast<uint64_t>(static_cast<unsigned char>(file->data()[i])) << (8 * i);
  if (file->size() < 8 || length > file->size() - 8)
    fail(ErrorCode::kDataLoss, path, ": is no safetensors file, or is truncated");
  if (length > kMaxHeader)
    fail(ErrorCode::kResourceExhausted, path, ": has a header of ", length, " bytes, more than ", kMaxHeader);
  const Json header = parse_header(path, file->text().substr(8, length));
  NamedArrays arrays;
  std::vector<Range> ranges;
  for (const auto& [name, info] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string source = concat(path, ": '", name, "'");
    try {
      arrays.emplace_back(name, read_tensor(source, info, file, 8 + length, ranges));
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with(path)) throw;
      fail(error.code(), source, ": ", error.what());
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    const bool overlaps = ranges[i].begin < ranges[i - 1].end && ranges[i].begin != ranges[i].end;
    if (overlaps) fail(ErrorCode::kDataLoss, path, ": tensors overlap");
  }
  return arrays;
}

}  // namespace tensord::server
