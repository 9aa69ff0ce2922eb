#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::jit::onnx {

// Reads protobuf's wire format from contiguous bytes, which must outlive it. Every read is bounds-checked and throws
// Error{kDataLoss}. Intended for one loop over the fields:
//
//     for (Wire wire(bytes, "NodeProto"); wire.next();) {
//         switch (wire.field()) { case 1: node.inputs.push_back(wire.text()); break; }
//     }
//
// Fields that the loop does not read are skipped; reading a field as another type is an error.
class Wire {
 public:
  Wire(std::span<const uint8_t> bytes, const char* message) : bytes_(bytes), message_(message) {}

  // Moves to the next field; returns false at the end.
  bool next();
  uint32_t field() const { return field_; }
  // The whole field including its tag.
  std::span<const uint8_t> whole() const { return whole_; }

  int64_t integer() const;
  // An enum, or another number below 2^31.
  int32_t small_integer() const;
  float float32() const;
  std::span<const uint8_t> bytes() const;
  std::string text() const;  // throws if it is not UTF-8
  // Appends the values of a repeated field: one number, or many if packed.
  void append_to(std::vector<int64_t>& values) const;
  void append_to(std::vector<uint64_t>& values) const;
  void append_to(std::vector<float>& values) const;
  // The bytes of a repeated field of floats or doubles: one value, or many if packed.
  std::span<const uint8_t> fixed32s() const { return fixed(Type::kFixed32, 4); }
  std::span<const uint8_t> fixed64s() const { return fixed(Type::kFixed64, 8); }

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint64_t read_varint(std::span<const uint8_t>& from) const;
  std::span<const uint8_t> take(size_t count);
  void expect(Type type) const;
  std::span<const uint8_t> fixed(Type single, size_t size_bytes) const;
  [[noreturn]] void fail_cut() const;

  std::span<const uint8_t> bytes_;
  const char* message_;
  uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  uint64_t number_ = 0;                // for varints
  std::span<const uint8_t> contents_;  // for other types
  std::span<const uint8_t> whole_;
};

}  // namespace tensord::jit::onnx
