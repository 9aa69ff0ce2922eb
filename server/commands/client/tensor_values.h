#pragma once

#include <tensord/client/tensor.h>

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

// Converts client tensors from and to JSON, prints them and makes random ones.
namespace tensord::server {

// Calls `function.operator()<T>()` with the C++ type of the elements. REQUIRES: not BYTES.
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

// Parses a type name in any common spelling: "f32", "float32", "FP32". Throws client::InvalidArgumentError.
client::DataType parse_type(const std::string& name);
// NumPy's name, "float32"; "text" for BYTES.
std::string type_string(client::DataType type);
// "[1, 3]"
std::string shape_string(const std::vector<int64_t>& shape);

// These functions throw client::InvalidArgumentError that describes the problem. `values` are numbers, booleans,
// strings, or regular nested lists of them. `data_type` is the protocol's name of the type; if empty, the type follows
// from the values (INT64, FP32, FP64 for numbers too large for FP32, BOOL or BYTES).
client::Tensor tensor_of_json(const nlohmann::json& values, const std::string& data_type);
// Repeats one string in every element of the shape.
client::Tensor string_tensor(const std::string& text, const std::vector<int64_t>& shape);
// Floats in [0, 1), integers 0 or 1, from a fixed seed. REQUIRES: not BYTES.
client::Tensor random_tensor(client::DataType type, const std::vector<int64_t>& shape);

// Nested lists. NaN and infinity become null; strings are taken to be UTF-8.
nlohmann::ordered_json json_of_tensor(const client::Tensor& tensor);
// Prints nested brackets with one row per line. Large tensors show only the first and last elements of each dimension.
void print_values(std::ostream& out, const client::Tensor& tensor);

}  // namespace tensord::server
