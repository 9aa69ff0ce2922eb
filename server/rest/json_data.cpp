#include "server/rest/json_data.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "server/executor/model/unsigned_widening.h"
#include "server/rest/json_reader.h"
#include "server/transport/infer/contents.h"

namespace tensord::server {
namespace {

// Two messages, because Triton has two. `where` is " (input 'x' …)".
[[noreturn]] void fail_too_many(const std::string& where) {
  fail(ErrorCode::kInvalidArgument, "Unable to parse 'data': Shape does not match true shape of 'data' field", where);
}
[[noreturn]] void fail_too_few(const std::string& where) {
  fail(ErrorCode::kInvalidArgument, "Failed to parse 'data' field: shape does not match true shape", where);
}

std::string where_of(const std::string& input, const Dims& shape, int64_t count) {
  return concat(" (input '", input, "' of shape ", to_string(shape), " has ", count,
                count == 1 ? " element)" : " elements)");
}

template <class T>
T to_floating(const JsonReader& reader, std::string_view text) {
  double value = 0;
  const bool is_negative = text.starts_with('-');
  const std::string_view word = text.substr(is_negative ? 1 : 0);
  if (word.starts_with('N')) return std::numeric_limits<T>::quiet_NaN();
  if (word.starts_with('I'))
    return is_negative ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  const T narrow = static_cast<T>(value);
  if (std::isinf(narrow)) reader.fail_here("Number too big to be stored in double.");
  return narrow;
}

template <class T>
T to_integer(const JsonReader& reader, std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    reader.fail_here("a number is not an integer of the input's datatype");
  }
  return value;
}

// Some clients write booleans as 0 and 1.
bool to_bool(JsonReader& reader) {
  if (reader.peek() != JsonReader::Kind::kNumber) return reader.boolean();
  const std::string_view text = reader.number();
  if (text != "0" && text != "1") reader.fail_here("attempt to access JSON non-boolean as boolean");
  return text == "1";
}

// Calls `leaf()` for each element. Elements must all lie at one depth, and lists at the same depth must have the same
// length. Any nesting that meets this is accepted, as in Triton.
template <class Leaf>
class Elements {
 public:
  Elements(JsonReader& reader, const std::string& where, const Leaf& leaf)
      : reader_(reader), where_(where), leaf_(leaf) {}

  void read(size_t depth = 0) {
    if (reader_.peek() != JsonReader::Kind::kArray) {
      if (std::exchange(leaf_depth_, depth) != depth && has_leaf_) fail_ragged();
      has_leaf_ = true;
      return leaf_();
    }
    if (has_leaf_ && depth >= leaf_depth_) fail_ragged();
    int64_t count = 0;
    reader_.array([&] {
      ++count;
      read(depth + 1);
    });
    if (lengths_.size() <= depth) lengths_.resize(depth + 1, -1);
    if (lengths_[depth] >= 0 && lengths_[depth] != count) fail_ragged();
    lengths_[depth] = count;
  }

 private:
  [[noreturn]] void fail_ragged() const {
    fail(ErrorCode::kInvalidArgument, "Unable to parse 'data': its lists are ragged, with other lengths or depths",
         where_);
  }

  JsonReader& reader_;
  const std::string& where_;
  const Leaf& leaf_;
  std::vector<int64_t> lengths_;  // length of the lists at each depth; -1 until one has been read
  size_t leaf_depth_ = 0;
  bool has_leaf_ = false;
};

template <class T>
void read_elements(JsonReader& reader, const std::string& where, int64_t count, void* to) {
  auto* out = static_cast<T*>(to);
  int64_t left = count;
  const auto read_one = [&] {
    if (left-- == 0) fail_too_many(where);
    if constexpr (std::is_same_v<T, bool>) {
      *out++ = to_bool(reader);
    } else if constexpr (std::is_floating_point_v<T>) {
      *out++ = to_floating<T>(reader, reader.number());
    } else {
      *out++ = to_integer<T>(reader, reader.number());
    }
  };
  Elements(reader, where, read_one).read();
  if (left != 0) fail_too_few(where);
}

void read_elements(JsonReader& reader, const std::string& where, DataType datatype, int64_t count, void* to) {
  switch (datatype) {
    case DataType::kBool: return read_elements<bool>(reader, where, count, to);
    case DataType::kUint8: return read_elements<uint8_t>(reader, where, count, to);
    case DataType::kUint16: return read_elements<uint16_t>(reader, where, count, to);
    case DataType::kUint32: return read_elements<uint32_t>(reader, where, count, to);
    case DataType::kUint64: return read_elements<uint64_t>(reader, where, count, to);
    case DataType::kInt8: return read_elements<int8_t>(reader, where, count, to);
    case DataType::kInt16: return read_elements<int16_t>(reader, where, count, to);
    case DataType::kInt32: return read_elements<int32_t>(reader, where, count, to);
    case DataType::kInt64: return read_elements<int64_t>(reader, where, count, to);
    case DataType::kFp32: return read_elements<float>(reader, where, count, to);
    case DataType::kFp64: return read_elements<double>(reader, where, count, to);
    default: check_internal(false, "a datatype that is not in JSON");
  }
}

void read_strings(JsonReader& reader, const std::string& where, int64_t count, InferTensor& out) {
  out.strings.reserve(static_cast<size_t>(count));
  const auto read_one = [&] {
    if (static_cast<int64_t>(out.strings.size()) == count) fail_too_many(where);
    out.strings.push_back(reader.string());
  };
  Elements(reader, where, read_one).read();
  if (static_cast<int64_t>(out.strings.size()) != count) fail_too_few(where);
}

template <class T>
void put_number(T value, AnswerText& out) {
  char text[40];
  if constexpr (std::is_floating_point_v<T>) {
    // NaN and Infinity are not JSON, but Triton and Python's json module write them.
    if (std::isnan(value)) {
      out += "NaN";
      return;
    }
    if (std::isinf(value)) {
      out += value < 0 ? "-Infinity" : "Infinity";
      return;
    }
  }
  const char* end = std::to_chars(text, text + sizeof(text), value).ptr;
  const std::string_view written(text, static_cast<size_t>(end - text));
  out += written;
  // Keeps the ".0" of whole floating-point numbers, for readers that distinguish integers.
  if (std::is_floating_point_v<T> && written.find_first_of(".e") == std::string_view::npos) out += ".0";
}

template <class T>
void write_elements(const Tensor& tensor, AnswerText& out) {
  const auto* values = static_cast<const T*>(tensor.raw_data());
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    if (i != 0) out += ',';
    if constexpr (std::is_same_v<T, bool>) {
      out += values[i] ? "true" : "false";
    } else {
      put_number(values[i], out);
    }
  }
}

void write_tensor(const InferTensor& output, AnswerText& out) {
  switch (output.tensor.dtype()) {
    case DType::kBool: return write_elements<bool>(output.tensor, out);
    case DType::kUInt8: return write_elements<uint8_t>(output.tensor, out);
    case DType::kInt8: return write_elements<int8_t>(output.tensor, out);
    case DType::kInt16: return write_elements<int16_t>(output.tensor, out);
    case DType::kInt32: return write_elements<int32_t>(output.tensor, out);
    case DType::kInt64: return write_elements<int64_t>(output.tensor, out);
    case DType::kFloat32: return write_elements<float>(output.tensor, out);
    case DType::kFloat64: return write_elements<double>(output.tensor, out);
    default:
      fail(ErrorCode::kInvalidArgument, "sending ", name_of(output.datatype),
           " data via JSON is not supported. Please use the binary data format for output ", output.name);
  }
}

}  // namespace

void check_json_count(int64_t elements, int64_t count, const std::string& input, const Dims& shape) {
  if (elements > count) fail_too_many(where_of(input, shape, count));
  if (elements < count) fail_too_few(where_of(input, shape, count));
}

void read_json_data(std::string_view json, int64_t count, const std::string& model, const CallCharge& charge,
                    InferTensor& out) {
  const DataType datatype = out.datatype;
  if (datatype == DataType::kFp16 || datatype == DataType::kBf16) {
    fail(ErrorCode::kInvalidArgument, "receiving ", name_of(datatype),
         " data via JSON is not supported. Please use the binary data format for input ", out.name);
  }
  const std::string where = where_of(out.name, out.shape, count);
  // Each element and its separator take at least two characters.
  if (static_cast<uint64_t>(count) > json.size() / 2 + 1) fail_too_few(where);
  // Charged before it is allocated. A string costs the same overhead here as on the other input paths.
  const uint64_t element_bytes =
      datatype == DataType::kBytes ? kTextBytes : size_of(*to_dtype(tensor_datatype(datatype)));
  charge.grow(static_cast<uint64_t>(count) * element_bytes);
  JsonReader reader(json, &charge, "failed to parse the data of input '" + out.name + "' for model '" + model + "'");
  if (datatype == DataType::kBytes) {
    read_strings(reader, where, count, out);
  } else if (is_widened_unsigned(datatype)) {
    const WidenedTensor wide = make_widened_tensor(datatype, out.shape);
    read_elements(reader, where, datatype, count, wide.wire_bytes);
    widen(wide, datatype, concat("inference input '", out.name, "' for model '", model, "'"));
    out.tensor = wide.tensor;
    out.datatype = tensor_datatype(datatype);
  } else {
    out.tensor = Tensor::empty(out.shape, *to_dtype(datatype));
    read_elements(reader, where, datatype, count, out.tensor.raw_data());
  }
}

void write_json_string(std::string_view text, AnswerText& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    if (byte >= 0x20) {
      (out += '\\') += text[i];
    } else if (byte == '\n') {
      out += "\\n";
    } else {
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  out.append(text.substr(plain));
  out += '"';
}

void write_json_data(const InferTensor& tensor, AnswerText& out, bool has_brackets) {
  if (has_brackets) out += '[';
  if (tensor.datatype == DataType::kBytes) {
    for (size_t i = 0; i < tensor.strings.size(); ++i) {
      if (i != 0) out += ',';
      check(is_utf8(tensor.strings[i]), "output '", tensor.name,
            "' has bytes that are not UTF-8 text, which JSON cannot hold; ask for it as binary data");
      write_json_string(tensor.strings[i], out);
    }
  } else {
    write_tensor(tensor, out);
  }
  if (has_brackets) out += ']';
}

}  // namespace tensord::server
