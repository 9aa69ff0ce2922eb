#pragma once

#include <tensord/client/tensor.h>

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

// The client's tensors as values: of JSON, for people, and made up.
namespace tensord::server {

// `function.operator()<T>()` with the type of the elements. REQUIRES: not BYTES.
template <class Function>
decltype(auto) dispatch_elements(client::DataType type, Function&& function) {
  using client::DataType;
  switch (type) {
    case DataType::kBool: return function.template operator()<bool>();
    case DataType::kUint8: return function.template operator()<uint8_t>();
    case DataType::kUint16: return function.template operator()<uint16_t>();
    case DataType::kUint32: return function.template operator()<uint32_t>();
    case DataType::kUint64: return function.template operator()<uint64_t>();
    case DataType::kInt8: return function.template operator()<int8_t>();
    case DataType::kInt16: return function.template operator()<int16_t>();
    case DataType::kInt32: return function.template operator()<int32_t>();
    case DataType::kInt64: return function.template operator()<int64_t>();
    case DataType::kFp16: return function.template operator()<client::Float16>();
    case DataType::kBf16: return function.template operator()<client::BFloat16>();
    case DataType::kFp64: return function.template operator()<double>();
    default: return function.template operator()<float>();
  }
}

// The type of a name in any of the usual forms: "f32", "float32", "FP32". Throws client::InvalidArgumentError.
client::DataType parse_type(const std::string& name);
// As NumPy has it, "float32"; "text" for BYTES.
std::string type_text(client::DataType type);
// "[1, 3]"
std::string shape_text(const std::vector<int64_t>& shape);

// All of them throw client::InvalidArgumentError that says what is wrong with the values.
// Numbers, booleans, texts, or regular lists of lists of them. `data_type` is the protocol's name of the type that is
// wanted; empty: what the values are (INT64, FP32, FP64 where a number is too large for
// that, BOOL or BYTES).
client::Tensor tensor_of_json(const nlohmann::json& values, const std::string& data_type);
// One text, in each place of the shape.
client::Tensor text_tensor(const std::string& text, const std::vector<int64_t>& shape);
// Floats in [0, 1), whole numbers 0 or 1; the same ones each time. Not of BYTES.
client::Tensor random_tensor(client::DataType type, const std::vector<int64_t>& shape);

// Nested lists; what is no number is null, texts are taken to be UTF-8.
nlohmann::ordered_json json_of_tensor(const client::Tensor& tensor);
// In brackets, rows on lines of their own; of many values only the first and last of each dimension.
void print_values(std::ostream& out, const client::Tensor& tensor);

}  // namespace tensord::server
