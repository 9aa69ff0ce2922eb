#include "core/jit/archive/safetensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/archive/check_bools.h"

namespace tensord::jit {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 64 << 20;
constexpr int kMaxHeaderDepth = 3;  // the object of tensors, a tensor, its lists

const std::map<std::string, DType>& dtypes() {
  static const std::map<std::string, DType> kDTypes = {
      {"F64", DType::kFloat64}, {"F32", DType::kFloat32}, {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16},
      {"I64", DType::kInt64},   {"I32", DType::kInt32},   {"I16", DType::kInt16},   {"I8", DType::kInt8},
      {"U8", DType::kUInt8},    {"BOOL", DType::kBool},
  };
  return kDTypes;
}

DType dtype_of_code(const std::string& source, const std::string& code) {
  const auto found = dtypes().find(code);
  if (found == dtypes().end())
    fail(ErrorCode::kUnimplemented, source, ": tensors of dtype ", code.substr(0, 32), " are not read");
  return found->second;
}

// The JSON library keeps the last of two members of one name; here they are refused.
Json parse_header(const std::string& path, std::string_view text) {
  std::vector<std::set<std::string>> names;  // of each object that is open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxHeaderDepth)
      fail(ErrorCode::kDataLoss, path, ": the header is nested more than ", kMaxHeaderDepth, " deep");
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second) {
      fail(ErrorCode::kDataLoss, path, ": '", value.get<std::string>().substr(0, 200), "' is twice in the header");
    }
    return true;
  };
  const Json header = Json::parse(text.begin(), text.end(), watch, false);
  if (!header.is_object()) fail(ErrorCode::kDataLoss, path, ": the header is no JSON object of tensors");
  return header;
}

// A number of the header that is 0 or more.
uint64_t number_of(const std::string& source, const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{INT64_MAX})
    fail(ErrorCode::kDataLoss, source, ": the header has a bad number");
  return value.get<uint64_t>();
}

struct Entry {
  std::string name, source;
  DType dtype{};
  Dims sizes;
  uint64_t numel = 0;
  uint64_t begin = 0, end = 0;  // of its data, from the end of the header
};

Entry read_entry(const std::string& path, const std::string& name, const Json& info) {
  Entry entry;
  entry.name = name;
  entry.source = concat(path, ": '", name.substr(0, 200), "'");
  const bool is_whole = info.is_object() && info.contains("dtype") && info["dtype"].is_string() &&
                        info.contains("shape") && info["shape"].is_array() && info.contains("data_offsets") &&
                        info["data_offsets"].is_array() && info["data_offsets"].size() == 2;
  if (!is_whole) fail(ErrorCode::kDataLoss, entry.source, ": the header lacks dtype, shape or data_offsets");
  entry.dtype = dtype_of_code(entry.source, info["dtype"].get<std::string>());
  const Json& shape = info["shape"];
  if (shape.size() > kMaxDims) fail(ErrorCode::kDataLoss, entry.source, ": has ", shape.size(), " dimensions");
  for (const Json& size : shape) entry.sizes.push_back(static_cast<int64_t>(number_of(entry.source, size)));
  entry.numel = static_cast<uint64_t>(checked_numel(entry.sizes));
  entry.begin = number_of(entry.source, info["data_offsets"][0]);
  entry.end = number_of(entry.source, info["data_offsets"][1]);
  return entry;
}

// That tensors have the bytes they take, one after the other from the first byte to the last.
void check_places(const std::string& path, std::vector<Entry>& entries, uint64_t data_bytes) {
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  };
  std::sort(entries.begin(), entries.end(), before);
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin > entry.end || entry.end > data_bytes)
      fail(ErrorCode::kDataLoss, entry.source, ": reaches past the end of the file");
    if (entry.begin < at) fail(ErrorCode::kDataLoss, entry.source, ": tensors overlap");
    if (entry.begin > at) fail(ErrorCode::kDataLoss, entry.source, ": bytes before it belong to no tensor");
    const uint64_t bytes = entry.end - entry.begin, item = size_of(entry.dtype);
    if (entry.numel > bytes / item || entry.numel * item != bytes) {
      fail(ErrorCode::kDataLoss, entry.source, ": has ", bytes, " bytes of data for ", to_string(entry.sizes), " of ",
           name_of(entry.dtype));
    }
    at = entry.end;
  }
  if (at != data_bytes)
    fail(ErrorCode::kDataLoss, path, ": ", data_bytes - at, " bytes at the end belong to no tensor");
}

Tensor make_tensor(const MappedFile& file, const Entry& entry, size_t data_begin, bool copies) {
  const size_t offset = data_begin + entry.begin, bytes = entry.end - entry.begin;
  const char* data = file.data() + offset;
  const Dims strides = contiguous_strides(entry.sizes);
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % size_of(entry.dtype) == 0;
  if (is_aligned && !copies && bytes > 0) {
    const Tensor view = Tensor::from_storage(file.storage(offset, bytes), entry.sizes, strides, 0, entry.dtype);
    check_bools(view, entry.source);
    return view;
  }
  const Tensor copy = Tensor::empty(entry.sizes, entry.dtype);
  if (bytes > 0) std::memcpy(copy.raw_data(), data, bytes);
  check_bools(copy, entry.source);
  return copy;
}

}  // namespace

SafetensorsFile read_safetensors(const std::string& path, bool copies, bool copies_file) {
  SafetensorsFile out;
  out.file = MappedFile::open(path, copies_file);
  const MappedFile& file = *out.file;
  uint64_t length = 0;
  for (size_t i = 0; i < 8 && i < file.size(); ++i)
    length |= static_cast<uint64_t>(static_cast<unsigned char>(file.data()[i])) << (8 * i);
  if (file.size() < 8 || length > file.size() - 8)
    fail(ErrorCode::kDataLoss, path, ": is no safetensors file, or is truncated");
  if (length > kMaxHeader)
    fail(ErrorCode::kResourceExhausted, path, ": has a header of ", length, " bytes, more than ", kMaxHeader);
  const Json header = parse_header(path, {file.data() + 8, length});
  std::vector<Entry> entries;
  for (const auto& [name, info] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.push_back(read_entry(path, name, info));
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with(path)) throw;
      fail(error.code(), path, ": '", name.substr(0, 200), "': ", error.what());
    }
  }
  const size_t data_begin = 8 + length;
  check_places(path, entries, file.size() - data_begin);
  for (const Entry& entry : entries) out.tensors.emplace_back(entry.name, make_tensor(file, entry, data_begin, copies));
  return out;
}

void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto code = std::ranges::find_if(dtypes(), [&](const auto& entry) { return entry.second == tensor.dtype(); });
    if (code == dtypes().end())
      fail(ErrorCode::kUnimplemented, path, ": '", name, "' is of type ", name_of(tensor.dtype()),
           ", which safetensors does not have");
    const uint64_t end = offset + tensor.size_bytes();
    header[name] = {{"dtype", code->first},
                    {"shape", std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t size = text.size();
  AtomicFile file(path);
  file.write(std::string_view(reinterpret_cast<const char*>(&size), sizeof(size)));
  file.write(text);
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.device().is_host()) {
      fail(ErrorCode::kFailedPrecondition, path, ": '", name, "' is on ", to_string(tensor.device()),
           ", not on the CPU");
    }
    const Tensor row_major = tensor.contiguous();
    file.write(std::string_view(static_cast<const char*>(row_major.raw_data()), row_major.size_bytes()));
  }
  file.commit();
}

}  // namespace tensord::jit
