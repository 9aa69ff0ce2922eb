#include "core/jit/importers/onnx/wire.h"

#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace tensord::jit::onnx {

void Wire::fail_cut() const { fail(ErrorCode::kDataLoss, message_, ": a field ends after the message"); }

uint64_t Wire::read_varint(std::span<const uint8_t>& from) const {
  uint64_t value = 0;
  for (size_t i = 0; i < from.size() && i < 10; ++i) {
    // The tenth byte can hold one more bit.
    if (i == 9 && from[i] > 1) break;
    value |= uint64_t{from[i] & 0x7fU} << (7 * i);
    if (from[i] < 0x80) {
      from = from.subspan(i + 1);
      return value;
    }
  }
  fail(ErrorCode::kDataLoss, message_, ": a number is damaged");
}

std::span<const uint8_t> Wire::take(size_t count) {
  if (count > bytes_.size()) fail_cut();
  const std::span<const uint8_t> taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

bool Wire::next() {
  if (bytes_.empty()) return false;
  const std::span<const uint8_t> rest = bytes_;
  const uint64_t tag = read_varint(bytes_);
  if (tag >> 3 == 0 || tag >> 3 > (uint64_t{1} << 29) - 1)
    fail(ErrorCode::kDataLoss, message_, ": a field has no number");
  field_ = static_cast<uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0: number_ = read_varint(bytes_); break;
    case 1: contents_ = take(8); break;
    case 2: contents_ = take(read_varint(bytes_)); break;
    case 5: contents_ = take(4); break;
    // Groups are deprecated, and ONNX never used them.
    default: fail(ErrorCode::kDataLoss, message_, ": field ", field_, " has an unknown wire type");
  }
  type_ = static_cast<Type>(tag & 7);
  whole_ = rest.first(rest.size() - bytes_.size());
  return true;
}

void Wire::expect(Type type) const {
  if (type_ != type) fail(ErrorCode::kDataLoss, message_, ": field ", field_, " has another type than it should");
}

int64_t Wire::integer() const {
  expect(Type::kVarint);
  return static_cast<int64_t>(number_);
}

int32_t Wire::small_integer() const {
  const int64_t value = integer();
  if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kDataLoss, message_, ": field ", field_, " is ", value);
  }
  return static_cast<int32_t>(value);
}

float Wire::float32() const {
  expect(Type::kFixed32);
  float value = 0;
  std::memcpy(&value, contents_.data(), sizeof value);
  return value;
}

std::span<const uint8_t> Wire::bytes() const {
  expect(Type::kBytes);
  return contents_;
}

std::string Wire::text() const {
  const std::span<const uint8_t> found = bytes();
  std::string text(found.begin(), found.end());
  if (!is_utf8(text)) fail(ErrorCode::kDataLoss, message_, ": field ", field_, " is not UTF-8");
  return text;
}

void Wire::append_to(std::vector<uint64_t>& values) const {
  if (type_ == Type::kVarint) {
    values.push_back(number_);
    return;
  }
  for (std::span<const uint8_t> rest = bytes(); !rest.empty();) values.push_back(read_varint(rest));
}

void Wire::append_to(std::vector<int64_t>& values) const {
  if (type_ == Type::kVarint) {
    values.push_back(integer());
    return;
  }
  for (std::span<const uint8_t> rest = bytes(); !rest.empty();) {
    values.push_back(static_cast<int64_t>(read_varint(rest)));
  }
}

std::span<const uint8_t> Wire::fixed(Type single, size_t size_bytes) const {
  if (type_ != single) expect(Type::kBytes);
  if (contents_.size() % size_bytes != 0) fail(ErrorCode::kDataLoss, message_, ": field ", field_, " is cut off");
  return contents_;
}

void Wire::append_to(std::vector<float>& values) const {
  const std::span<const uint8_t> found = fixed32s();
  const size_t old = values.size();
  values.resize(old + found.size() / sizeof(float));
  if (!found.empty()) std::memcpy(values.data() + old, found.data(), found.size());
}

}  // namespace tensord::jit::onnx
