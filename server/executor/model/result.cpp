#include "server/executor/model/result.h"

#include "core/base/error.h"
#include "core/ops/boxed.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

// Deeper nesting than this is refused; values of scripts can nest without bound.
constexpr int kMaxDepth = 16;

// Made for every request: without a stream.
std::string positional_name(size_t index) { return "OUTPUT__" + std::to_string(index); }

bool is_list_of_texts(const ops::Type& type) {
  return type.kind() == TypeKind::kList && type.element()->kind() == TypeKind::kString;
}

template <class T>
Tensor vector_tensor(const std::vector<Value>& items, T (*get)(const Value&)) {
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(items.size())}, dtype_of<T>);
  for (size_t i = 0; i < items.size(); ++i) out.data<T>()[i] = get(items[i]);
  return out;
}

class Flattener {
 public:
  std::vector<InferTensor> outputs;

  void add(const Value& value, const std::string& name, int depth) {
    check(depth <= kMaxDepth, "the result nests deeper than ", kMaxDepth, " levels");
    if (value.is_none()) {
      ++unnamed_;
    } else if (value.is_tensor()) {
      push(name, value.to_tensor());
    } else if (value.is_number()) {
      push(name, number_tensor(value));
    } else if (value.is_string()) {
      push_strings(name, {value.to_string()});
    } else if (value.is_tuple()) {
      add_tuple(*value.to_tuple(), name, depth);
    } else if (value.is_dict()) {
      add_dict(*value.to_dict(), name, depth);
    } else if (value.is_list()) {
      add_list(*value.to_list(), name, depth);
    } else if (const ops::BoxedTensor* boxed = ops::as_boxed(value)) {
      fail(ErrorCode::kUnimplemented, "the model returned a tensor ", boxed->describe(),
           ", which has no place in a response: its to_dense() or dequantize() has");
    } else {
      fail(ErrorCode::kUnimplemented, "the model returned a value of type ", value.tag_name(),
           ", which has no place in a response");
    }
  }

 private:
  static Tensor number_tensor(const Value& value) {
    const std::vector<Value> one{value};
    if (value.is_bool()) return vector_tensor<bool>(one, [](const Value& v) { return v.to_bool(); });
    if (value.is_int()) return vector_tensor<int64_t>(one, [](const Value& v) { return v.to_int(); });
    return vector_tensor<double>(one, [](const Value& v) { return v.to_float(); });
  }

  // An empty name is the next position.
  std::string take_name(const std::string& name) { return name.empty() ? positional_name(unnamed_++) : name; }

  void push(const std::string& name, const Tensor& tensor) {
    const DataType datatype = from_dtype(tensor.dtype());
    InferTensor& out = outputs.emplace_back();
    out.name = take_name(name);
    out.datatype = datatype;
    out.shape = tensor.sizes();
    out.tensor = tensor;
  }

  void push_strings(const std::string& name, std::vector<std::string> strings) {
    const auto count = static_cast<int64_t>(strings.size());
    push_strings(name, std::move(strings), Dims{count});
  }

  void push_strings(const std::string& name, std::vector<std::string> strings, const Dims& shape) {
    InferTensor& out = outputs.emplace_back();
    out.name = take_name(name);
    out.datatype = DataType::kBytes;
    out.shape = shape;
    out.strings = std::move(strings);
  }

  static std::string join(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }

  void add_tuple(const ops::TupleObject& tuple, const std::string& name, int depth) {
    for (size_t i = 0; i < tuple.items.size(); ++i) {
      const bool is_named = tuple.type != nullptr;
      const std::string item = is_named       ? join(name, tuple.type->field_names()[i])
                               : name.empty() ? std::string()
                                              : join(name, std::to_string(i));
      add(tuple.items[i], item, depth + 1);
    }
  }

  void add_dict(const ops::DictObject& dict, const std::string& name, int depth) {
    for (const auto& [key, value] : dict.items()) {
      if (!key.is_string() && !key.is_int()) {
        fail(ErrorCode::kUnimplemented, "the model returned a dict with keys of type ", key.tag_name());
      }
      add(value, join(name, key.is_string() ? key.to_string() : std::to_string(key.to_int())), depth + 1);
    }
  }

  void add_rows_of_texts(const ops::ListObject& rows, const std::string& name) {
    std::vector<std::string> strings;
    const size_t width = rows.items.empty() ? 0 : rows.items[0].to_list()->items.size();
    for (const Value& row : rows.items) {
      const std::vector<Value>& items = row.to_list()->items;
      if (items.size() != width) {
        fail(ErrorCode::kFailedPrecondition, "the model returned lists of strings of different lengths, ", width,
             " and ", items.size());
      }
      for (const Value& item : items) strings.push_back(item.to_string());
    }
    push_strings(name, std::move(strings), Dims{static_cast<int64_t>(rows.items.size()), static_cast<int64_t>(width)});
  }

  void add_list(const ops::ListObject& list, const std::string& name, int depth) {
    if (is_list_of_texts(*list.element)) return add_rows_of_texts(list, name);
    const TypeKind kind = list.element->kind();
    if (kind == TypeKind::kInt) {
      push(name, vector_tensor<int64_t>(list.items, [](const Value& v) { return v.to_int(); }));
    } else if (kind == TypeKind::kFloat) {
      push(name, vector_tensor<double>(list.items, [](const Value& v) { return v.to_float(); }));
    } else if (kind == TypeKind::kBool) {
      push(name, vector_tensor<bool>(list.items, [](const Value& v) { return v.to_bool(); }));
    } else if (kind == TypeKind::kString) {
      std::vector<std::string> strings;
      for (const Value& item : list.items) strings.push_back(item.to_string());
      push_strings(name, std::move(strings));
    } else {
      for (size_t i = 0; i < list.items.size(); ++i) {
        add(list.items[i], name.empty() ? std::string() : join(name, std::to_string(i)), depth + 1);
      }
    }
  }

  size_t unnamed_ = 0;
};

// The datatype that values of a type always have, where there is one.
std::optional<DataType> datatype_of(const ops::Type& type) {
  if (type.kind() == TypeKind::kList && is_list_of_texts(*type.element())) return DataType::kBytes;
  const ops::Type& inner = type.kind() == TypeKind::kList ? *type.element() : type;
  switch (inner.kind()) {
    case TypeKind::kInt: return DataType::kInt64;
    case TypeKind::kFloat: return DataType::kFp64;
    case TypeKind::kBool: return DataType::kBool;
    case TypeKind::kString: return DataType::kBytes;
    default: return std::nullopt;
  }
}

// `unnamed` is the number of the next output without a name, as Flattener counts.
bool describe(const ops::Type& type, const std::string& name, size_t& unnamed, std::vector<TensorSpec>& out) {
  if (type.kind() == TypeKind::kNone) {
    ++unnamed;
    return true;
  }
  const std::optional<DataType> datatype = datatype_of(type);
  if (type.kind() == TypeKind::kTensor || datatype) {
    TensorSpec spec;
    spec.name = name.empty() ? positional_name(unnamed++) : name;
    spec.datatype = datatype;
    if (datatype) spec.shape = Dims{type.kind() == TypeKind::kList ? -1 : 1};
    if (type.kind() == TypeKind::kList && is_list_of_texts(*type.element())) spec.shape = Dims{-1, -1};
    out.push_back(std::move(spec));
    return true;
  }
  if (type.kind() != TypeKind::kTuple) return false;
  bool is_complete = true;
  for (size_t i = 0; i < type.contained().size() && is_complete; ++i) {
    const bool is_named = i < type.field_names().size();
    const std::string prefix = name.empty() ? "" : name + ".";
    const std::string item = is_named       ? prefix + type.field_names()[i]
                             : name.empty() ? std::string()
                                            : prefix + std::to_string(i);
    is_complete = describe(*type.contained()[i], item, unnamed, out);
  }
  return is_complete;
}

}  // namespace

std::vector<InferTensor> flatten_result(const Value& value) {
  Flattener flattener;
  flattener.add(value, "", 0);
  return std::move(flattener.outputs);
}

std::vector<TensorSpec> describe_result(const ops::Type& type, bool* is_complete) {
  std::vector<TensorSpec> out;
  size_t unnamed = 0;
  *is_complete = describe(type, "", unnamed, out);
  return out;
}

}  // namespace tensord::server
