#include "server/commands/engine_inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/files/table.h"
#include "core/jit/importers/format.h"
#include "core/jit/runtime/inputs/known_inputs.h"

namespace tensord::server {

namespace {

using nlohmann::json;
using ops::TypeKind;
using ops::Value;

constexpr size_t kMaxDepth = 32;

template <class T>
void fill(const Tensor& tensor) {
  T* data = tensor.data<T>();
  uint32_t state = 12345;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    if constexpr (std::is_integral_v<T>) {
      data[i] = static_cast<T>(state >> 28);
    } else {
      data[i] = static_cast<T>(2 * unit - 1);
    }
  }
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  check(in && !std::filesystem::is_directory(path, error), path, ": cannot be read");
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The shape of regular nested lists.
Dims shape_of(const json& values) {
  Dims shape;
  for (const json* inner = &values; inner->is_array(); inner = &inner->front()) {
    check(shape.size() < kMaxDepth, "lists are more than ", kMaxDepth, " deep");
    shape.push_back(static_cast<int64_t>(inner->size()));
    if (inner->empty()) break;
  }
  return shape;
}

void collect_leaves(const json& value, const Dims& shape, size_t depth, std::vector<const json*>& leaves) {
  const bool is_list = depth < shape.size();
  check(value.is_array() == is_list && (!is_list || static_cast<int64_t>(value.size()) == shape[depth]),
        "the lists are not all of the same length");
  if (!is_list) return leaves.push_back(&value);
  for (const json& item : value) collect_leaves(item, shape, depth + 1, leaves);
}

// Makes a bool, int64 or float32 tensor, depending on the values.
Tensor tensor_of_numbers(const json& values) {
  const Dims shape = shape_of(values);
  std::vector<const json*> leaves;
  collect_leaves(values, shape, 0, leaves);
  DType dtype = leaves.empty() ? DType::kFloat32 : DType::kBool;
  for (const json* leaf : leaves) {
    check(leaf->is_number() || leaf->is_boolean(), "a tensor is made of numbers, got ", leaf->dump());
    if (leaf->is_number_float()) dtype = DType::kFloat32;
    if (leaf->is_number_integer() && dtype == DType::kBool) dtype = DType::kInt64;
  }
  const Tensor out = Tensor::empty(shape, dtype);
  dispatch_all(dtype, "--input", [&]<class T>() {
    for (size_t i = 0; i < leaves.size(); ++i) {
      const json& leaf = *leaves[i];
      const double number = leaf.is_boolean() ? leaf.get<bool>() : leaf.get<double>();
      out.data<T>()[i] = leaf.is_number_integer() && dtype == DType::kInt64 ? static_cast<T>(leaf.get<int64_t>())
                                                                            : static_cast<T>(number);
    }
  });
  return out;
}

Value value_of_json(const json& values, const ops::Type& declared) {
  const ops::Type& type = declared.kind() == TypeKind::kOptional ? *declared.element() : declared;
  switch (type.kind()) {
    case TypeKind::kTensor: return tensor_of_numbers(values);
    case TypeKind::kString:
      check(values.is_string(), "a text is wanted, got ", values.dump());
      return values.get<std::string>();
    case TypeKind::kList: {
      check(values.is_array(), "a list is wanted, got ", values.dump());
      std::vector<Value> items;
      for (const json& item : values) items.push_back(value_of_json(item, *type.element()));
      return ops::make_list(type.element(), std::move(items));
    }
    case TypeKind::kBool:
      check(values.is_boolean(), "true or false is wanted, got ", values.dump());
      return values.get<bool>();
    case TypeKind::kInt:
      check(values.is_number_integer(), "a whole number is wanted, got ", values.dump());
      return values.get<int64_t>();
    case TypeKind::kFloat:
    case TypeKind::kNumber:
      check(values.is_number(), "a number is wanted, got ", values.dump());
      if (type.kind() == TypeKind::kNumber && values.is_number_integer()) return values.get<int64_t>();
      return values.get<double>();
    default:
      fail(ErrorCode::kInvalidArgument, "an argument of type ", declared.str(),
           " cannot be written so; give a tuple of all arguments, written by torch.save, by --args");
  }
}

json parse_json(const std::string& text, const char* otherwise) {
  json values = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (values.is_discarded()) fail(ErrorCode::kInvalidArgument, otherwise);
  return values;
}

bool takes_tensor(const ops::Type& declared) {
  const ops::Type& type = declared.kind() == TypeKind::kOptional ? *declared.element() : declared;
  return type.kind() == TypeKind::kTensor;
}

// What the file says of an argument's type, or else what its graph implies.
std::optional<DType> known_dtype(const jit::Module& module, const jit::Method& method, size_t index) {
  if (const jit::MethodSignature* signature = module.signature(method.name())) return signature->inputs.at(index).dtype;
  return jit::find_known_inputs(method).at(index).dtype;
}

template <class KnownType>
Value read_value(const InputText& text, const ops::Type& type, int64_t batch, const KnownType& known_type) {
  using Kind = InputText::Kind;
  const auto check_tensor = [&] {
    check(takes_tensor(type), "the argument is of type ", type.str(), ", which JSON requires");
  };
  switch (text.kind) {
    case Kind::kRandom: {
      check_tensor();
      check(text.shape.has_value(), "random: takes :SHAPE[:TYPE] here");
      Dims sizes(std::span<const int64_t>(*text.shape));
      if (batch > 0 && !sizes.empty()) sizes[0] = batch;
      return made_up_tensor(sizes, text.type.empty() ? known_type().value_or(DType::kFloat32) : dtype_named(text.type));
    }
    case Kind::kNpy: check_tensor(); return files::read_npy(text.value);
    case Kind::kText: return value_of_json(json(text.value), type);
    case Kind::kBytes: return value_of_json(json(bytes_of(text.value)), type);
    case Kind::kJsonFile: return value_of_json(parse_json(bytes_of(text.value), "the file is not JSON"), type);
    default:
      return value_of_json(parse_json(text.value,
                                      "bad shape or value: it is neither SHAPE[:TYPE], random:SHAPE[:TYPE], JSON, a "
                                      "file (.npy, .npz, .json, @FILE), nor text:TEXT"),
                           type);
  }
}

// Assigns input values to the arguments that they name.
class ArgumentReader {
 public:
  ArgumentReader(const std::string& flag, const jit::Module& module, const jit::Method& method, int64_t batch)
      : flag_(flag),
        module_(module),
        method_(method),
        schema_(method.schema()),
        batch_(batch),
        given_(schema_.arguments.size()) {}

  void add(const InputText& text) {
    if (text.kind == InputText::Kind::kNpz) {
      for (const auto& [name, tensor] : files::read_npz(text.value)) set(find(name), Value(tensor), false);
      return;
    }
    const size_t index = text.name.empty() ? next_++ : find(text.name);
    check(index < given_.size(), flag_, ": ", schema_.name, " takes ", given_.size(), " arguments");
    const ops::Argument& argument = schema_.arguments[index];
    try {
      const auto known_type = [&] { return known_dtype(module_, method_, index); };
      set(index, read_value(text, *argument.type, batch_, known_type), text.kind == InputText::Kind::kRandom);
    } catch (const Error& error) {
      fail(error.code(), input_place(flag_, text.name.empty() ? argument.name : text.name, text.value), error.what());
    }
  }

  std::vector<GivenArgument> take() { return std::move(given_); }

 private:
  size_t find(const std::string& name) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < given_.size(); ++i) {
      if (schema_.arguments[i].name == name) return i;
      names.push_back(schema_.arguments[i].name);
    }
    fail(ErrorCode::kInvalidArgument, flag_, ": ", schema_.name, " has no argument '", name, "'",
         right_names(name, names));
  }

  void set(size_t index, Value value, bool is_made_up) {
    GivenArgument& given = given_[index];
    check(!given.value, flag_, ": '", schema_.arguments[index].name, "' is given twice");
    given = {std::move(value), is_made_up};
  }

  const std::string& flag_;
  const jit::Module& module_;
  const jit::Method& method_;
  const ops::Schema& schema_;
  const int64_t batch_;
  std::vector<GivenArgument> given_;
  size_t next_ = 0;
};

}  // namespace

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                            DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8, DType::kBool}) {
    if (name == name_of(dtype)) return dtype;
  }
  fail(ErrorCode::kInvalidArgument, "tensors of a model have no dtype '", name, "'");
}

Tensor made_up_tensor(const Dims& sizes, DType dtype) {
  const Tensor out = Tensor::empty(sizes, dtype);
  dispatch_all(dtype, "--input", [&]<class T>() { fill<T>(out); });
  return out;
}

std::vector<GivenArgument> read_inputs(const std::string& flag, const std::vector<std::string>& texts,
                                       const jit::Module& module, const jit::Method& method, WholeNumber number,
                                       int64_t batch) {
  ArgumentReader reader(flag, module, method, batch);
  for (const std::string& text : texts) reader.add(parse_input(flag, text, number));
  return reader.take();
}

std::vector<Value> read_call(const std::string& flag, const std::vector<std::string>& texts, const jit::Module& module,
                             const jit::Method& method, WholeNumber number, int64_t batch) {
  const ops::Schema& schema = method.schema();
  const std::vector<GivenArgument> given = read_inputs(flag, texts, module, method, number, batch);
  size_t count = given.size();
  while (count > 0 && !given[count - 1].value && schema.arguments[count - 1].default_value) --count;
  std::vector<Value> out;
  for (size_t i = 0; i < count; ++i) {
    const ops::Argument& argument = schema.arguments[i];
    const bool is_known = given[i].value || argument.default_value;
    check(is_known, "give the arguments of ", schema.str(), ": ", flag, " has nothing for '", argument.name, "'");
    out.push_back(given[i].value ? *given[i].value : *argument.default_value);
  }
  return out;
}

}  // namespace tensord::server
