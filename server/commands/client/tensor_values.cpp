#include "server/commands/client/tensor_values.h"

#include <tensord/client/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "server/commands/client/table.h"

namespace tensord::server {
namespace {

using client::DataType;
using client::InvalidArgumentError;
using client::Tensor;
using nlohmann::json;

constexpr size_t kMaxDepth = 32;
// Maximum size of a request.
constexpr uint64_t kMaxBytes = uint64_t{1} << 31;

struct TypeNames {
  DataType type;
  const char *brief, *numpy;
};
constexpr std::array<TypeNames, 14> kTypes = {{{DataType::kBool, "bool", "bool"},
                                               {DataType::kUint8, "u8", "uint8"},
                                               {DataType::kUint16, "u16", "uint16"},
                                               {DataType::kUint32, "u32", "uint32"},
                                               {DataType::kUint64, "u64", "uint64"},
                                               {DataType::kInt8, "i8", "int8"},
                                               {DataType::kInt16, "i16", "int16"},
                                               {DataType::kInt32, "i32", "int32"},
                                               {DataType::kInt64, "i64", "int64"},
                                               {DataType::kFp16, "f16", "float16"},
                                               {DataType::kBf16, "bf16", "bfloat16"},
                                               {DataType::kFp32, "f32", "float32"},
                                               {DataType::kFp64, "f64", "float64"},
                                               {DataType::kBytes, "text", "text"}}};

std::vector<int64_t> shape_of(const json& values) {
  std::vector<int64_t> shape;
  for (const json* inner = &values; inner->is_array(); inner = &inner->front()) {
    if (shape.size() == kMaxDepth) throw InvalidArgumentError(concat("lists are more than ", kMaxDepth, " deep"));
    shape.push_back(static_cast<int64_t>(inner->size()));
    if (inner->empty()) break;
  }
  return shape;
}

void collect(const json& value, const std::vector<int64_t>& shape, size_t depth, std::vector<const json*>& leaves) {
  const bool is_list = depth < shape.size();
  if (value.is_array() != is_list || (is_list && static_cast<int64_t>(value.size()) != shape[depth])) {
    throw InvalidArgumentError("the lists are not all of the same length");
  }
  if (!is_list) return leaves.push_back(&value);
  for (const json& item : value) collect(item, shape, depth + 1, leaves);
}

DataType type_of(const std::vector<const json*>& leaves) {
  bool are_bools = !leaves.empty(), are_whole = !leaves.empty();
  for (const json* leaf : leaves) {
    if (leaf->is_string()) return DataType::kBytes;
    are_bools = are_bools && leaf->is_boolean();
    are_whole = are_whole && leaf->is_number_integer();
  }
  if (are_bools || are_whole) return are_bools ? DataType::kBool : DataType::kInt64;
  // Models usually take float32.
  const bool are_small = std::all_of(leaves.begin(), leaves.end(), [](const json* leaf) {
    return !leaf->is_number() || std::abs(leaf->get<double>()) <= std::numeric_limits<float>::max();
  });
  return are_small ? DataType::kFp32 : DataType::kFp64;
}

template <class T>
T element_of(const json& leaf, const char* type) {
  if (!leaf.is_number() && !leaf.is_boolean()) {
    throw InvalidArgumentError(
        concat(type, " is wanted, got ", leaf.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
  if constexpr (std::is_same_v<T, bool>) {
    return leaf.is_boolean() ? leaf.get<bool>() : leaf.get<double>() != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (leaf.is_boolean()) return leaf.get<bool>();
    if (!leaf.is_number_integer()) throw InvalidArgumentError("whole numbers are wanted, got " + leaf.dump());
    const bool fits =
        leaf.is_number_unsigned() ? std::in_range<T>(leaf.get<uint64_t>()) : std::in_range<T>(leaf.get<int64_t>());
    if (!fits) throw InvalidArgumentError(concat(leaf.dump(), " does not fit into ", type));
    return leaf.get<T>();
  } else {
    const double value = leaf.is_boolean() ? leaf.get<bool>() : leaf.get<double>();
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
    if constexpr (!std::is_arithmetic_v<T>) return T(static_cast<float>(value));
  }
}

// Number of elements of a shape. Throws if they exceed the maximum size of a request.
size_t count_of(const std::vector<int64_t>& shape, size_t element_bytes) {
  uint64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) throw InvalidArgumentError(concat("a shape of ", shape_string(shape)));
    if (size > 0 && count > kMaxBytes / element_bytes / static_cast<uint64_t>(size)) {
      throw InvalidArgumentError(concat("a shape of ", shape_string(shape), " is more than a request may have"));
    }
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

// Limits the rank of tensors that a server sent, because each dimension nests one list deeper.
void check_depth(const Tensor& tensor) {
  if (tensor.shape().size() > kMaxDepth)
    throw InvalidArgumentError(concat("a tensor of more than ", kMaxDepth, " dimensions"));
}

template <class T>
double number_of(T value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(value);
  if constexpr (!std::is_arithmetic_v<T>) return static_cast<float>(value);
}

// Prints elements as nested brackets; `is_short` leaves out the middle of long dimensions.
template <class Text>
class Printer {
 public:
  Printer(std::ostream& out, const std::vector<int64_t>& shape, bool is_short, Text text)
      : out_(out), shape_(shape), is_short_(is_short), text_(text) {}

  void print(size_t depth, size_t first, size_t count) {
    if (depth == shape_.size()) {
      out_ << text_(first);
      return;
    }
    const auto size = static_cast<size_t>(shape_[depth]);
    const size_t step = size == 0 ? 0 : count / size;
    const bool is_last = depth + 1 == shape_.size();
    const std::string gap = is_last ? " " : "\n" + std::string(depth + 1, ' ');
    out_ << "[";
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out_ << gap;
      if (is_short_ && size > 2 * kEdge && i == kEdge) {
        out_ << "..." << gap;
        i = size - kEdge;
      }
      print(depth + 1, first + i * step, step);
    }
    out_ << "]";
  }

 private:
  static constexpr size_t kEdge = 4;
  std::ostream& out_;
  const std::vector<int64_t>& shape_;
  const bool is_short_;
  const Text text_;
};

template <class Leaf>
nlohmann::ordered_json nested(const std::vector<int64_t>& shape, size_t depth, size_t& at, const Leaf& leaf) {
  if (depth == shape.size()) return leaf(at++);
  auto list = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < shape[depth]; ++i) list.push_back(nested(shape, depth + 1, at, leaf));
  return list;
}

}  // namespace

DataType parse_type(const std::string& name) {
  for (const TypeNames& names : kTypes) {
    if (name == names.brief || name == names.numpy || name == client::to_string(names.type)) return names.type;
  }
  throw InvalidArgumentError("no type is called '" + name +
                             "'; there are f16, f32, f64, bf16, i8 to i64, u8 to u64, bool");
}

std::string type_string(DataType type) {
  for (const TypeNames& names : kTypes) {
    if (names.type == type) return names.numpy;
  }
  return client::to_string(type);
}

std::string shape_string(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t size : shape) out += concat(out.size() > 1 ? ", " : "", size);
  return out + "]";
}

Tensor tensor_of_json(const json& values, const std::string& data_type) {
  const std::vector<int64_t> shape = shape_of(values);
  std::vector<const json*> leaves;
  collect(values, shape, 0, leaves);
  const DataType type = data_type.empty() ? type_of(leaves) : client::parse_data_type(data_type);
  if (type == DataType::kBytes) {
    std::vector<std::string> texts;
    for (const json* leaf : leaves) {
      if (leaf->is_object() || leaf->is_null()) throw InvalidArgumentError("texts are wanted, got " + leaf->dump());
      texts.push_back(leaf->is_string() ? leaf->get<std::string>() : leaf->dump());
    }
    return Tensor::strings(texts, shape);
  }
  return dispatch_elements(type, [&]<class T>() {
    // Not a vector, because vector<bool> is packed.
    auto elements = std::make_unique<T[]>(leaves.size());
    for (size_t i = 0; i < leaves.size(); ++i) elements[i] = element_of<T>(*leaves[i], client::to_string(type));
    return Tensor::copy<T>({elements.get(), leaves.size()}, shape);
  });
}

Tensor string_tensor(const std::string& text, const std::vector<int64_t>& shape) {
  return Tensor::strings(std::vector<std::string>(count_of(shape, text.size() + 4), text), shape);
}

Tensor random_tensor(DataType type, const std::vector<int64_t>& shape) {
  if (type == DataType::kBytes) throw InvalidArgumentError("random strings are not supported: give its values");
  const size_t count = count_of(shape, client::element_size(type));
  return dispatch_elements(type, [&]<class T>() {
    auto elements = std::make_unique<T[]>(count);
    std::mt19937 generator(0);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        elements[i] = static_cast<T>(generator() & 1);
      } else {
        elements[i] = T(static_cast<float>(generator() >> 8) * 0x1p-24f);
      }
    }
    return Tensor::copy<T>({elements.get(), count}, shape);
  });
}

nlohmann::ordered_json json_of_tensor(const Tensor& tensor) {
  check_depth(tensor);
  if (tensor.element_count() == 0) return nlohmann::ordered_json::array();
  size_t at = 0;
  if (tensor.type() == DataType::kBytes) {
    const std::vector<std::string> texts = tensor.strings();
    return nested(tensor.shape(), 0, at, [&](size_t i) -> nlohmann::ordered_json { return texts[i]; });
  }
  return dispatch_elements(tensor.type(), [&]<class T>() {
    const std::span<const T> values = tensor.values<T>();
    return nested(tensor.shape(), 0, at, [&](size_t i) -> nlohmann::ordered_json {
      if constexpr (std::is_integral_v<T>) {
        return values[i];
      } else {
        const double value = number_of(values[i]);
        return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
      }
    });
  });
}

void print_values(std::ostream& out, const Tensor& tensor) {
  constexpr size_t kShownAll = 128;
  check_depth(tensor);
  const auto count = static_cast<size_t>(tensor.element_count());
  if (count == 0) {
    out << "[]";
    return;
  }
  const auto print = [&](const auto& text) {
    Printer(out, tensor.shape(), count > kShownAll, text).print(0, 0, count);
  };
  if (tensor.type() == DataType::kBytes) {
    const std::vector<std::string> texts = tensor.strings();
    // Quotes and escapes strings as JSON, so that no control character reaches a terminal.
    return print([&](size_t i) {
      return to_printable_json(json(texts[i]).dump(-1, ' ', false, json::error_handler_t::replace));
    });
  }
  dispatch_elements(tensor.type(), [&]<class T>() {
    const std::span<const T> values = tensor.values<T>();
    print([&](size_t i) -> std::string {
      if constexpr (std::is_same_v<T, bool>) return values[i] ? "true" : "false";
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return std::to_string(values[i]);
      if constexpr (!std::is_integral_v<T>) return number_text(number_of(values[i]), 6);
    });
  });
}

}  // namespace tensord::server
