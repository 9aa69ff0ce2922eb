#include "server/transport/infer/encode.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "server/transport/grpc/wire_reader.h"
#include "server/transport/infer/contents.h"

namespace tensord::server {
namespace {

// Smaller payloads are copied into the head: a slice of their own, with its reference, costs more than the copy.
constexpr size_t kInlineBytes = 512;

// Maximum size of a varint.
constexpr size_t kVarintBytes = 10;

// Returns the position behind the varint.
char* put_varint(char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}

void put_varint(std::string& out, uint64_t value) {
  char bytes[kVarintBytes];
  out.append(bytes, put_varint(bytes, value));
}

// Writes the header of a length-delimited field.
void put_header(std::string& out, uint32_t field, uint64_t size) {
  char bytes[2 * kVarintBytes];
  out.append(bytes, put_varint(put_varint(bytes, field << 3 | 2), size));
}

void put_text(std::string& out, uint32_t field, std::string_view text) {
  if (text.empty()) return;
  put_header(out, field, text.size());
  out += text;
}

size_t varint_bytes(uint64_t value) { return static_cast<size_t>(std::bit_width(value | 1) + 6) / 7; }

// Size of a string field whose number is below 16.
size_t text_bytes(std::string_view text) { return text.empty() ? 0 : 1 + varint_bytes(text.size()) + text.size(); }

// Writes an InferOutputTensor. Sizes are computed first, so that it is written in place.
void put_output(std::string& out, const InferTensor& output) {
  const std::string_view datatype = name_of(output.datatype);
  size_t shape_bytes = 0;
  for (const int64_t size : output.shape) shape_bytes += varint_bytes(static_cast<uint64_t>(size));
  const size_t packed_bytes = shape_bytes == 0 ? 0 : 1 + varint_bytes(shape_bytes) + shape_bytes;
  put_header(out, 5, text_bytes(output.name) + text_bytes(datatype) + packed_bytes);
  put_text(out, 1, output.name);
  put_text(out, 2, datatype);
  if (shape_bytes == 0) return;
  put_header(out, 3, shape_bytes);
  for (const int64_t size : output.shape) put_varint(out, static_cast<uint64_t>(size));
}

void put_fixed64(std::string& out, uint32_t field, const void* value) {
  put_varint(out, field << 3 | 1);
  out.append(static_cast<const char*>(value), sizeof(uint64_t));
}

// Serializes an InferParameter.
std::string encode_parameter(const ParameterValue& value) {
  std::string out;
  const auto put_number = [&out](uint32_t field, uint64_t number) {
    put_varint(out, field << 3);
    put_varint(out, number);
  };
  if (const auto* flag = std::get_if<bool>(&value)) put_number(1, *flag);
  if (const auto* number = std::get_if<int64_t>(&value)) put_number(2, static_cast<uint64_t>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) {
    put_header(out, 3, text->size());
    out += *text;
  }
  if (const auto* number = std::get_if<double>(&value)) put_fixed64(out, 4, number);
  if (const auto* number = std::get_if<uint64_t>(&value)) put_number(5, *number);
  return out;
}

// Writes a map from strings to InferParameters.
void put_parameters(std::string& out, uint32_t field, const ParameterMap& parameters) {
  for (const auto& [name, value] : parameters) {
    std::string entry;
    put_text(entry, 1, name);
    put_text(entry, 2, encode_parameter(value));
    put_header(out, field, entry.size());
    out += entry;
  }
}

std::string encode_head(const ResponseHead& head, size_t more_bytes = 0) {
  std::string out;
  out.reserve(64 + head.model_name.size() + head.id.size() + more_bytes);
  put_text(out, 1, head.model_name);
  put_text(out, 2, head.model_version);
  put_text(out, 3, head.id);
  put_parameters(out, 4, head.parameters);
  return out;
}

// Throws Error if the outputs are too large for one message, before anything is allocated for them.
void check_payload(const std::vector<InferTensor>& outputs) {
  uint64_t bytes = 0;
  for (const InferTensor& output : outputs) {
    bytes += raw_strings_bytes(output.strings);
    if (output.tensor.defined()) bytes += output.tensor.size_bytes();
  }
  check(bytes <= INT_MAX, "Response has byte size ", bytes, " which exceeds the limit of gRPC, ", INT_MAX);
}

// Approximate size of the outputs in the head.
size_t head_bytes(const std::vector<InferTensor>& outputs) {
  size_t bytes = 0;
  for (const InferTensor& output : outputs) {
    bytes += 32 + output.name.size() + 2 * output.shape.size();
    const size_t payload_bytes = output.tensor.defined() ? output.tensor.size_bytes() : 0;
    if (payload_bytes <= kInlineBytes) bytes += payload_bytes;
  }
  return bytes;
}

void check_size(const EncodedResponse& response) {
  check(response.size_bytes <= INT_MAX, "Response has byte size ", response.size_bytes,
        " which exceeds the limit of gRPC, ", INT_MAX);
}

}  // namespace

uint64_t response_bytes(const std::vector<InferTensor>& outputs, const std::vector<bool>& is_elsewhere) {
  constexpr uint64_t kOutputBytes = 256;
  uint64_t bytes = kOutputBytes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bytes += kOutputBytes + outputs[i].name.size();
    if (!is_elsewhere.empty() && is_elsewhere[i]) continue;
    bytes += raw_strings_bytes(outputs[i].strings);
    if (outputs[i].tensor.defined()) bytes += outputs[i].tensor.size_bytes();
  }
  return bytes;
}

EncodedResponse encode_response(const ResponseHead& response_head, const std::vector<InferTensor>& outputs,
                                const std::vector<bool>& is_elsewhere) {
  check_payload(outputs);
  EncodedResponse response;
  response.pieces.reserve(outputs.size() + 1);
  response.pieces.push_back({encode_head(response_head, head_bytes(outputs)), {}});
  std::string* head = &response.pieces.back().head;
  for (const InferTensor& output : outputs) put_output(*head, output);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const InferTensor& output = outputs[i];
    if (!is_elsewhere.empty() && is_elsewhere[i]) {
      put_header(*head, 6, 0);
      continue;
    }
    if (output.datatype == DataType::kBytes) {
      put_header(*head, 6, raw_strings_bytes(output.strings));
      append_raw_strings(*head, output.strings);
      continue;
    }
    Tensor tensor = output.tensor.contiguous();
    const size_t size_bytes = tensor.size_bytes();
    if (!tensor.is_same(output.tensor)) response.copied_bytes += size_bytes;
    put_header(*head, 6, size_bytes);
    if (size_bytes <= kInlineBytes) {
      head->append(static_cast<const char*>(size_bytes ? tensor.raw_data() : ""), size_bytes);
      response.copied_bytes += size_bytes;
    } else {
      response.pieces.back().payload = std::move(tensor);
      response.pieces.emplace_back();
      head = &response.pieces.back().head;
    }
  }
  for (const auto& piece : response.pieces) {
    response.size_bytes += piece.head.size() + (piece.payload.defined() ? piece.payload.size_bytes() : 0);
  }
  check_size(response);
  return response;
}

void wrap_for_stream(EncodedResponse& response) {
  std::string wrapped;
  put_header(wrapped, 2, response.size_bytes);
  response.size_bytes += wrapped.size();
  response.pieces.front().head.insert(0, wrapped);
  check_size(response);
}

EncodedResponse encode_stream_error(std::string_view message, const ResponseHead& head) {
  EncodedResponse response;
  std::string& out = response.pieces.emplace_back().head;
  const std::string text = to_valid_utf8(message);
  put_text(out, 1, text.empty() ? "the request failed" : text);
  const std::string body = encode_head(head);
  put_header(out, 2, body.size());
  out += body;
  response.size_bytes = out.size();
  return response;
}

}  // namespace tensord::server
