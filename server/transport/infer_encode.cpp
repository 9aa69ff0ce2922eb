#include "server/transport/infer_encode.h"

#include <climits>
#include <cstring>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Below this a copy into the head is cheaper than a slice of its own.
constexpr size_t kInlineBytes = 4096;

void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Length-delimited field.
void put_header(std::string& out, uint32_t field, uint64_t size) {
  put_varint(out, field << 3 | 2);
  put_varint(out, size);
}

void put_text(std::string& out, uint32_t field, std::string_view text) {
  if (text.empty()) return;
  put_header(out, field, text.size());
  out += text;
}

std::string encode_output_header(const InferTensor& output) {
  std::string body;
  put_text(body, 1, output.name);
  put_text(body, 2, name_of(output.datatype));
  if (!output.shape.empty()) {
    std::string packed;
    for (const int64_t size : output.shape) put_varint(packed, static_cast<uint64_t>(size));
    put_text(body, 3, packed);
  }
  return body;
}

void put_strings(std::string& out, const std::vector<std::string>& strings) {
  uint64_t size = 0;
  for (const std::string& text : strings) size += sizeof(uint32_t) + text.size();
  put_header(out, 6, size);
  for (const std::string& text : strings) {
    const auto length = static_cast<uint32_t>(text.size());
    char bytes[sizeof(length)];
    std::memcpy(bytes, &length, sizeof(length));
    out.append(bytes, sizeof(length));
    out += text;
  }
}

}  // namespace

EncodedResponse encode_response(const std::string& model_name, const std::string& model_version, const std::string& id,
                                const std::vector<InferTensor>& outputs) {
  EncodedResponse response;
  response.pieces.emplace_back();
  std::string* head = &response.pieces.back().head;
  uint64_t payload_bytes = 0;
  for (const InferTensor& output : outputs) {
    for (const std::string& text : output.strings) payload_bytes += sizeof(uint32_t) + text.size();
    if (output.tensor.defined()) payload_bytes += output.tensor.size_bytes();
  }
  check(payload_bytes <= INT_MAX, "Response has byte size ", payload_bytes, " which exceeds the limit of gRPC, ",
        INT_MAX);

  put_text(*head, 1, model_name);
  put_text(*head, 2, model_version);
  put_text(*head, 3, id);
  for (const InferTensor& output : outputs) {
    const std::string body = encode_output_header(output);
    put_header(*head, 5, body.size());
    *head += body;
  }
  for (const InferTensor& output : outputs) {
    if (output.datatype == DataType::kBytes) {
      put_strings(*head, output.strings);
      continue;
    }
    const Tensor tensor = output.tensor.contiguous();
    const size_t size_bytes = tensor.size_bytes();
    if (!tensor.is_same(output.tensor)) response.copied_bytes += size_bytes;
    put_header(*head, 6, size_bytes);
    if (size_bytes <= kInlineBytes) {
      head->append(static_cast<const char*>(size_bytes ? tensor.raw_data() : ""), size_bytes);
      response.copied_bytes += size_bytes;
    } else {
      response.pieces.back().payload = tensor;
      response.pieces.emplace_back();
      head = &response.pieces.back().head;
    }
  }
  for (const auto& piece : response.pieces) {
    response.size_bytes += piece.head.size() + (piece.payload.defined() ? piece.payload.size_bytes() : 0);
  }
  check(response.size_bytes <= INT_MAX, "Response has byte size ", response.size_bytes,
        " which exceeds the limit of gRPC, ", INT_MAX);
  return response;
}

}  // namespace tensord::server
