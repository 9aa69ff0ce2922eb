#include "tensord/client/tensor.h"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "tensord/client/error.h"

namespace tensord::client {
namespace {

struct TypeInfo {
  const char* name;
  size_t size;
};

// Indexed by DataType.
constexpr std::array<TypeInfo, 14> kTypes{{{"BOOL", 1},
                                           {"UINT8", 1},
                                           {"UINT16", 2},
                                           {"UINT32", 4},
                                           {"UINT64", 8},
                                           {"INT8", 1},
                                           {"INT16", 2},
                                           {"INT32", 4},
                                           {"INT64", 8},
                                           {"FP16", 2},
                                           {"BF16", 2},
                                           {"FP32", 4},
                                           {"FP64", 8},
                                           {"BYTES", 0}}};

// Number of elements.
uint64_t count_of(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) throw InvalidArgumentError("a tensor's shape has the size " + std::to_string(size));
    const auto positive = static_cast<uint64_t>(size);
    if (positive != 0 && count > std::numeric_limits<int64_t>::max() / positive) {
      throw InvalidArgumentError("a tensor's shape has too many elements");
    }
    count *= positive;
  }
  return count;
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

constexpr uint32_t kExponent = 0x7f800000;

}  // namespace

const char* to_string(DataType type) { return kTypes[static_cast<size_t>(type)].name; }

DataType parse_data_type(std::string_view text) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (text == kTypes[i].name) return static_cast<DataType>(i);
  }
  throw InvalidArgumentError("no data type is called '" + std::string(text) + "'");
}

size_t element_size(DataType type) { return kTypes[static_cast<size_t>(type)].size; }

BFloat16::BFloat16(float value) {
  const auto wide = std::bit_cast<uint32_t>(value);
  const bool is_nan = (wide & ~0x80000000u) > kExponent;
  bits = static_cast<uint16_t>(is_nan ? (wide >> 16) | 0x40 : (wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

Float16::Float16(float value) {
  const auto wide = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(wide >> 16 & 0x8000);
  const uint32_t magnitude = wide & 0x7fffffff;
  if (magnitude > kExponent) {
    bits = sign | 0x7e00;  // NaN
  } else if (magnitude >= 0x477ff000) {
    bits = sign | 0x7c00;  // 65520 and larger
  } else if (magnitude >= 0x38800000) {
    // Changes the exponent bias from 127 to 15. Rounding up may carry into the exponent.
    const uint32_t shifted = magnitude - (112u << 23);
    bits = static_cast<uint16_t>(sign | ((shifted + 0xfff + (shifted >> 13 & 1)) >> 13));
  } else {
    // Numbers below 2^-14 are subnormal, multiples of 2^-24. Adding 0.5 leaves the multiple in the lowest bits, rounded
    // by the CPU.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  float magnitude = 0;
  if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    magnitude = std::bit_cast<float>(wide << 23 | fraction << 13);
  }
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

Tensor Tensor::share(DataType type, std::vector<int64_t> shape, std::shared_ptr<const void> data, size_t size_bytes) {
  const uint64_t count = count_of(shape);
  if (type != DataType::kBytes && (size_bytes % element_size(type) != 0 || size_bytes / element_size(type) != count)) {
    throw InvalidArgumentError(std::string(to_string(type)) + " tensor of shape " + text_of(shape) + ": " +
                               std::to_string(size_bytes) + " bytes are not its " + std::to_string(count) +
                               " elements");
  }
  Tensor tensor;
  tensor.type_ = type;
  tensor.shape_ = std::move(shape);
  tensor.data_ = std::move(data);
  tensor.size_bytes_ = size_bytes;
  return tensor;
}

Tensor Tensor::copy_bytes(DataType type, std::vector<int64_t> shape, std::span<const std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const void* data = owner->data();
  return share(type, std::move(shape), {std::move(owner), data}, bytes.size());
}

Tensor Tensor::strings(std::span<const std::string> values, std::vector<int64_t> shape) {
  if (count_of(shape) != values.size()) {
    throw InvalidArgumentError("BYTES tensor of shape " + text_of(shape) + " with " + std::to_string(values.size()) +
                               " strings");
  }
  std::string packed;
  for (const std::string& value : values) {
    if (value.size() > std::numeric_limits<uint32_t>::max()) throw InvalidArgumentError("a string is above 4 GB");
    // Lengths are little-endian on the wire.
    for (int shift = 0; shift < 32; shift += 8) packed += static_cast<char>(value.size() >> shift & 0xff);
    packed += value;
  }
  return copy_bytes(DataType::kBytes, std::move(shape), std::as_bytes(std::span(packed)));
}

int64_t Tensor::element_count() const { return static_cast<int64_t>(count_of(shape_)); }

void Tensor::check_type(DataType wanted) const {
  if (type_ == wanted) return;
  throw InvalidArgumentError(std::string("the tensor's elements are ") + to_string(type_) + ", not " +
                             to_string(wanted));
}

std::vector<std::string> Tensor::strings() const {
  check_type(DataType::kBytes);
  std::vector<std::string> values;
  const auto* at = reinterpret_cast<const unsigned char*>(data_.get());
  const auto* end = at + size_bytes_;
  while (at != end) {
    if (end - at < 4) throw_error(StatusCode::kDataLoss, "a BYTES tensor ends in the middle of a length");
    const uint32_t size = uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
    at += 4;
    if (static_cast<size_t>(end - at) < size) {
      throw_error(StatusCode::kDataLoss, "a BYTES tensor ends in the middle of a string");
    }
    values.emplace_back(reinterpret_cast<const char*>(at), size);
    at += size;
  }
  if (values.size() != count_of(shape_)) {
    throw_error(StatusCode::kDataLoss,
                "a BYTES tensor of shape " + text_of(shape_) + " has " + std::to_string(values.size()) + " strings");
  }
  return values;
}

}  // namespace tensord::client
