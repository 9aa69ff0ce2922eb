#include "server/executor/requests/recorded_requests.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/tensor/device_copy.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "TNSDREQ1";
constexpr uint32_t kMaxHeadBytes = 1 << 20;
constexpr size_t kMaxTensors = 4096;  // per request
constexpr size_t kLengthBytes = 12;   // lengths in front of each head

template <class T>
void append_number(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

template <class T>
T read_number(const char* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i);
  return value;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A serialized JSON object without its closing brace.
std::string open_object(const Json& json) {
  std::string text = dump(json);
  text.pop_back();
  return text;
}

// Reads one file.
class Reader {
 public:
  Reader(const std::string& path, const RecordLimits& limits) : path_(path), limits_(limits) {
    std::error_code error;
    left_ = std::filesystem::file_size(path, error);
    if (error) fail(ErrorCode::kNotFound, path, ": cannot be opened");
    if (left_ > limits.bytes) {
      fail(ErrorCode::kResourceExhausted, path, ": has ", left_, " bytes, more than ", limits.bytes);
    }
    file_.open(path, std::ios::binary);
    std::string magic(std::min<uint64_t>(left_, kMagic.size()), '\0');
    read(magic.data(), magic.size());
    if (magic == kMagic) return;
    if (magic.size() == kMagic.size() && magic.starts_with(kMagic.substr(0, kMagic.size() - 1))) {
      fail(ErrorCode::kUnimplemented, path, ": of a newer tensord ('", to_printable(magic), "'; this one reads '",
           kMagic, "')");
    }
    fail(ErrorCode::kDataLoss, path, ": is not a file of recorded requests");
  }

  // Returns false at the end of the file or at a truncated request.
  bool next(RecordedRequest& request) {
    if (left_ < kLengthBytes) return false;
    char lengths[kLengthBytes];
    read(lengths, sizeof(lengths));
    const auto head_bytes = read_number<uint32_t>(lengths);
    const auto data_bytes = read_number<uint64_t>(lengths + 4);
    if (head_bytes > kMaxHeadBytes) fail(ErrorCode::kDataLoss, path_, ": record ", number_, " has a bad length");
    if (head_bytes > left_ || data_bytes > left_ - head_bytes) return false;
    std::string head(head_bytes, '\0');
    read(head.data(), head.size());
    if (++number_ > limits_.requests) {
      fail(ErrorCode::kResourceExhausted, path_, ": has more than ", limits_.requests, " requests");
    }
    try {
      parse(Json::parse(head), data_bytes, request);
    } catch (const Json::exception&) {
      fail(ErrorCode::kDataLoss, path_, ": the head of record ", number_, " is malformed");
    }
    return true;
  }

 private:
  // Reads from the remaining bytes.
  void read(char* to, uint64_t size) {
    file_.read(to, static_cast<std::streamsize>(size));
    if (!file_) fail(ErrorCode::kDataLoss, path_, ": cannot be read");
    left_ -= size;
  }

  void parse(const Json& head, uint64_t data_bytes, RecordedRequest& request) {
    request.model = head.at("model").get<std::string>();
    request.version = head.at("version").get<std::string>();
    request.id = head.at("id").get<std::string>();
    request.time_unix_us = head.at("time_unix_us").get<int64_t>();
    for (const bool is_input : {true, false}) {
      const Json& list = head.at(is_input ? "inputs" : "outputs");
      check_record(list.is_array() && list.size() <= kMaxTensors);
      for (const Json& tensor : list) {
        (is_input ? request.inputs : request.outputs).push_back(read_tensor(tensor, data_bytes));
      }
    }
    check_record(data_bytes == 0);
  }

  InferTensor read_tensor(const Json& info, uint64_t& data_left) {
    InferTensor out;
    out.name = info.at("name").get<std::string>();
    const auto datatype = parse_datatype(info.at("datatype").get<std::string>());
    const Json& shape = info.at("shape");
    const auto bytes = info.at("bytes").get<uint64_t>();
    check_record(datatype && shape.is_array() && shape.size() <= kMaxDims && bytes <= data_left);
    data_left -= bytes;
    out.datatype = *datatype;
    for (const Json& size : shape) {
      out.shape.push_back(size.get<int64_t>());
      check_record(out.shape.back() >= 0);
    }
    const auto count = static_cast<uint64_t>(checked_numel(out.shape));
    if (out.datatype == DataType::kBytes) {
      read_strings(count, bytes, out.strings);
      return out;
    }
    check_record(count <= bytes / size_of(out.datatype) && count * size_of(out.datatype) == bytes);
    if (is_widened_unsigned(out.datatype)) {
      const WidenedTensor wide = make_widened_tensor(out.datatype, out.shape);
      read(wide.wire_bytes, bytes);
      widen(wide, out.datatype, concat(path_, ": record ", number_, ", '", out.name, "'"));
      out.tensor = wide.tensor;
      return out;
    }
    out.tensor = Tensor::empty(out.shape, *to_dtype(out.datatype));
    read(static_cast<char*>(out.tensor.raw_data()), bytes);
    if (out.datatype == DataType::kBool) {
      // Bytes other than 0 and 1 are not valid bools.
      auto* values = static_cast<uint8_t*>(out.tensor.raw_data());
      for (uint64_t i = 0; i < bytes; ++i) values[i] = values[i] != 0 ? 1 : 0;
    }
    return out;
  }

  void read_strings(uint64_t count, uint64_t bytes, std::vector<std::string>& out) {
    for (uint64_t i = 0; i < count; ++i) {
      char length_bytes[4];
      check_record(bytes >= 4);
      read(length_bytes, 4);
      const auto length = read_number<uint32_t>(length_bytes);
      bytes -= 4;
      check_record(length <= bytes);
      out.emplace_back(length, '\0');
      read(out.back().data(), length);
      bytes -= length;
    }
    check_record(bytes == 0);
  }

  void check_record(bool is_well_formed) const {
    if (!is_well_formed) fail(ErrorCode::kDataLoss, path_, ": record ", number_, " is malformed");
  }

  const std::string path_;
  const RecordLimits limits_;
  std::ifstream file_;
  uint64_t left_ = 0;
  size_t number_ = 0;
};

}  // namespace

std::string recorded_requests_magic() { return std::string(kMagic); }

RecordWriter::RecordWriter(const std::string& model, const std::string& version, const std::string& id,
                           int64_t time_unix_us)
    : head_(open_object({{"model", model}, {"version", version}, {"id", id}, {"time_unix_us", time_unix_us}})) {}

void RecordWriter::add(const InferTensor& tensor, DataType wire_datatype, std::string& list) {
  const size_t start = data_.size();
  if (tensor.datatype == DataType::kBytes) {
    for (const std::string& text : tensor.strings) {
      append_number(data_, static_cast<uint32_t>(text.size()));
      data_ += text;
    }
  } else if (tensor.scattered) {
    for (const auto& piece : tensor.scattered->pieces) {
      data_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
  } else if (tensor.tensor.defined()) {
    const Tensor values = host_copy(tensor.tensor.contiguous());
    if (wire_datatype != tensor.datatype) {
      append_narrowed(values, wire_datatype, data_);
    } else {
      data_.append(static_cast<const char*>(values.raw_data()), values.size_bytes());
    }
  }
  Json shape = Json::array();
  for (const int64_t size : tensor.shape) shape.push_back(size);
  if (!list.empty()) list += ',';
  list += dump({{"name", tensor.name},
                {"datatype", name_of(wire_datatype)},
                {"shape", std::move(shape)},
                {"bytes", data_.size() - start}});
}

std::string RecordWriter::finish() {
  const std::string head = concat(head_, ",\"inputs\":[", inputs_, "],\"outputs\":[", outputs_, "]}");
  std::string record;
  record.reserve(kLengthBytes + head.size() + data_.size());
  append_number(record, static_cast<uint32_t>(head.size()));
  append_number(record, static_cast<uint64_t>(data_.size()));
  record += head;
  record += data_;
  return record;
}

std::vector<RecordedRequest> read_recorded_requests(const std::string& path, const RecordLimits& limits) {
  Reader reader(path, limits);
  std::vector<RecordedRequest> out;
  for (RecordedRequest request; reader.next(request); request = {}) out.push_back(std::move(request));
  return out;
}

}  // namespace tensord::server
