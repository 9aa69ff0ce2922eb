#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::client {

enum class DataType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes,  // strings of arbitrary bytes; see Tensor::strings
};

const char* to_string(DataType type);  // "FP32", as the protocol has it
// Throws InvalidArgumentError for an unknown name.
DataType parse_data_type(std::string_view text);
// Bytes per element; 0 for kBytes, whose elements vary in size.
size_t element_size(DataType type);

// bfloat16. Conversion rounds to nearest, ties to even.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// IEEE half precision. Conversion rounds to nearest, ties to even; values that are too large become infinite.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

namespace detail {
template <class T>
constexpr std::optional<DataType> data_type_of() {
  if constexpr (std::same_as<T, bool>) return DataType::kBool;
  if constexpr (std::same_as<T, uint8_t>) return DataType::kUint8;
  if constexpr (std::same_as<T, uint16_t>) return DataType::kUint16;
  if constexpr (std::same_as<T, uint32_t>) return DataType::kUint32;
  if constexpr (std::same_as<T, uint64_t>) return DataType::kUint64;
  if constexpr (std::same_as<T, int8_t>) return DataType::kInt8;
  if constexpr (std::same_as<T, int16_t>) return DataType::kInt16;
  if constexpr (std::same_as<T, int32_t>) return DataType::kInt32;
  if constexpr (std::same_as<T, int64_t>) return DataType::kInt64;
  if constexpr (std::same_as<T, Float16>) return DataType::kFp16;
  if constexpr (std::same_as<T, BFloat16>) return DataType::kBf16;
  if constexpr (std::same_as<T, float>) return DataType::kFp32;
  if constexpr (std::same_as<T, double>) return DataType::kFp64;
  return std::nullopt;
}
}  // namespace detail

// The element types, except for strings.
template <class T>
concept Element = detail::data_type_of<T>()
.has_value();

// Location of a tensor in registered shared memory (SharedMemory).
struct RegionSlice {
  std::string region;
  size_t offset = 0;
};

// A data type, a shape, and elements in row-major order. Copies share the elements, which cannot be changed through a
// Tensor; reading from several threads is safe. Requests use a tensor's memory without a copy, and tensors of a
// response use the received message, unless it arrived in pieces.
class Tensor {
 public:
  Tensor() = default;  // empty, FP32

  // All throw InvalidArgumentError if the number of values does not match the shape. Takes ownership of the values
  // without a copy.
  template <Element T>
  requires(!std::same_as<T, bool>) static Tensor take(std::vector<T> values, std::vector<int64_t> shape) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    const void* data = owner->data();
    const size_t size = owner->size() * sizeof(T);
    return share(*detail::data_type_of<T>(), std::move(shape), {std::move(owner), data}, size);
  }
  template <Element T>
  static Tensor copy(std::span<const T> values, std::vector<int64_t> shape) {
    return copy_bytes(*detail::data_type_of<T>(), std::move(shape), std::as_bytes(values));
  }
  // Uses the caller's memory without a copy. The pointer's deleter runs when nothing reads the memory any more, which
  // can be after a call has thrown while gRPC still used it. Must be aligned for its elements.
  static Tensor share(DataType type, std::vector<int64_t> shape, std::shared_ptr<const void> data, size_t size_bytes);
  static Tensor copy_bytes(DataType type, std::vector<int64_t> shape, std::span<const std::byte> bytes);
  // Of type BYTES.
  static Tensor strings(std::span<const std::string> values, std::vector<int64_t> shape);

  DataType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t element_count() const;
  size_t size_bytes() const { return size_bytes_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_.get()), size_bytes_}; }
  // Valid as long as a tensor with these elements exists. Throws InvalidArgumentError if the element type differs.
  template <Element T>
  std::span<const T> values() const {
    check_type(*detail::data_type_of<T>());
    return {static_cast<const T*>(data_.get()), size_bytes_ / sizeof(T)};
  }
  // Throws InvalidArgumentError if the type is not BYTES, and Error with DATA_LOSS for malformed bytes.
  std::vector<std::string> strings() const;

  // The owner of the bytes.
  const std::shared_ptr<const void>& data() const { return data_; }
  const std::optional<RegionSlice>& region() const { return region_; }

 private:
  friend class SharedMemory;
  void check_type(DataType wanted) const;

  DataType type_ = DataType::kFp32;
  std::vector<int64_t> shape_ = {0};
  std::shared_ptr<const void> data_;
  size_t size_bytes_ = 0;
  std::optional<RegionSlice> region_;
};

}  // namespace tensord::client
