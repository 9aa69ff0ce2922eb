#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tensord::jit::onnx {

// Appends fields of a message in protobuf's wire format.
class MessageWriter {
 public:
  const std::string& bytes() const { return bytes_; }

  void number(uint32_t field, int64_t value) {
    varint(uint64_t{field} << 3);
    varint(static_cast<uint64_t>(value));
  }
  void float32(uint32_t field, float value) {
    varint(uint64_t{field} << 3 | 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
  }
  // Appends a string, bytes, or a serialized message.
  void text(uint32_t field, std::string_view value) {
    begin_bytes(field, value.size());
    bytes_ += value;
  }
  void message(uint32_t field, const MessageWriter& value) { text(field, value.bytes()); }
  // Appends the header of a bytes field; the caller appends the contents.
  void begin_bytes(uint32_t field, size_t size) {
    varint(uint64_t{field} << 3 | 2);
    varint(size);
  }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace tensord::jit::onnx
