#include "core/jit/archive/safetensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/base/atomic_file.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/archive/check_bools.h"

namespace tensord::jit {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 64 << 20;
constexpr size_t kMaxHeaderDepth = 3;  // the object of all tensors, a tensor's object, its lists

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

struct Entry {
  std::string name, source;
  DType dtype{};
  Dims sizes;
  uint64_t numel = 0;
  uint64_t begin = 0, end = 0;  // position of its data, counted from the end of the header
};

// Builds the entries of a header from JSON events in linear time. JSON readers usually keep one of two members with the
// same name; this one rejects them.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(int64_t) { return number(UINT64_MAX); }  // a negative number
  bool number_unsigned(uint64_t value) { return number(value); }
  bool number_float(double, const std::string&) { return number(UINT64_MAX); }
  bool string(std::string& text) {
    if (names_.size() != 2 || is_in_list_ || member_ != "dtype") return other();
    dtype_ = text;
    return true;
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) {
    if (is_in_list_ || names_.size() >= kMaxHeaderDepth) fail_depth();
    names_.emplace_back();
    if (names_.size() == 2) dtype_.reset(), shape_.reset(), offsets_.reset(), has_bad_number_ = false;
    return true;
  }
  bool end_object() {
    if (names_.size() == 2) finish();
    names_.pop_back();
    return true;
  }
  bool start_array(size_t) {
    if (names_.size() < 2) other();
    if (is_in_list_ || names_.size() > 2) fail_depth();
    is_in_list_ = true;
    list_ = member_ == "shape" ? &shape_.emplace() : member_ == "data_offsets" ? &offsets_.emplace() : nullptr;
    return true;
  }
  bool end_array() {
    is_in_list_ = false;
    list_ = nullptr;
    return true;
  }
  bool key(std::string& name) {
    check_work_cancelled();
    if (!names_.back().insert(name).second)
      fail(ErrorCode::kDataLoss, path_, ": '", name.substr(0, 200), "' appears twice in the header");
    if (names_.size() == 1) name_ = name;
    if (names_.size() == 2) member_ = name;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { fail_json(); }
  std::vector<Entry> take() { return std::move(entries_); }

 private:
  [[noreturn]] void fail_json() const {
    fail(ErrorCode::kDataLoss, path_, ": the header is not a JSON object of tensors");
  }
  [[noreturn]] void fail_depth() const {
    fail(ErrorCode::kDataLoss, path_, ": the header is nested more than ", kMaxHeaderDepth, " deep");
  }
  bool is_metadata() const { return name_ == "__metadata__"; }
  std::string source() const { return concat(path_, ": '", name_.substr(0, 200), "'"); }
  [[noreturn]] void fail_lacks() const {
    fail(ErrorCode::kDataLoss, source(), ": the header lacks dtype, shape or data_offsets");
  }

  // A value that the reader ignores. At the top level it is an error, except in the metadata.
  bool other() {
    if (names_.empty()) fail_json();
    if (names_.size() == 1 && !is_metadata()) fail_lacks();
    has_bad_number_ = has_bad_number_ || list_ != nullptr;
    return true;
  }
  bool number(uint64_t value) {
    if (list_ == nullptr || value > uint64_t{INT64_MAX}) return other();
    list_->push_back(value);
    return true;
  }

  void finish() {
    if (is_metadata()) return;
    Entry entry;
    entry.name = name_;
    entry.source = source();
    if (!dtype_ || !shape_ || !offsets_) fail_lacks();
    entry.dtype = dtype_of_code(entry.source, *dtype_);
    if (shape_->size() > kMaxDims) fail(ErrorCode::kDataLoss, entry.source, ": has ", shape_->size(), " dimensions");
    if (has_bad_number_) fail(ErrorCode::kDataLoss, entry.source, ": the header has a bad number");
    if (offsets_->size() != 2) fail_lacks();
    for (const uint64_t size : *shape_) entry.sizes.push_back(static_cast<int64_t>(size));
    try {
      entry.numel = static_cast<uint64_t>(checked_numel(entry.sizes));
    } catch (const Error& error) {
      fail(error.code(), entry.source, ": ", error.what());
    }
    entry.begin = (*offsets_)[0];
    entry.end = (*offsets_)[1];
    entries_.push_back(std::move(entry));
  }

  const std::string& path_;
  std::vector<std::unordered_set<std::string>> names_;  // the names in each open object
  std::string name_, member_;                           // the current names at the first and second level
  std::optional<std::string> dtype_;
  std::optional<std::vector<uint64_t>> shape_, offsets_;
  std::vector<uint64_t>* list_ = nullptr;  // the open list, if it is one that is read
  bool is_in_list_ = false, has_bad_number_ = false;
  std::vector<Entry> entries_;
};

// Checks that the tensors' data has the sizes of their shapes and covers the file without gaps and overlaps.
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
    fail(ErrorCode::kDataLoss, path, ": is not a safetensors file, or is truncated");
  if (length > kMaxHeader)
    fail(ErrorCode::kResourceExhausted, path, ": has a header of ", length, " bytes, more than ", kMaxHeader);
  HeaderReader reader(path);
  Json::sax_parse(file.data() + 8, file.data() + 8 + length, &reader);
  std::vector<Entry> entries = reader.take();
  const size_t data_begin = 8 + length;
  check_places(path, entries, file.size() - data_begin);
  for (const Entry& entry : entries) {
    check_work_cancelled();
    out.tensors.emplace_back(entry.name, make_tensor(file, entry, data_begin, copies));
  }
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
