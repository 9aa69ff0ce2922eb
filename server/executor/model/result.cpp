#include "server/executor/model/result.h"
#include "server/executor/model/argument.h"

#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/jit/ir/result_keys.h"
#include "core/jit/runtime/module.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

// Maximum nesting of results. Scripted values can nest without bound.
constexpr int kMaxDepth = 16;

// Runs for every request, so it avoids streams.
std::string positional_name(size_t index) { return "OUTPUT__" + std::to_string(index); }

template <class T>
Tensor vector_tensor(const std::vector<Value>& items, T (*get)(const Value&)) {
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(items.size())}, dtype_of<T>);
  for (size_t i = 0; i < items.size(); ++i) out.data<T>()[i] = get(items[i]);
  return out;
}

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// The path of a value in the result.
struct Place {
  std::string name;           // from dict keys and tuple fields on the path; empty: it gets the next number
  std::string numbers = {};   // of the items on the way to the first of those: "1", "0.2"
  bool says_numbers = false;  // names below this value start with the numbers

  Place item(size_t i) const {
    if (!name.empty()) return {join(name, std::to_string(i)), numbers};
    return {"", join(numbers, std::to_string(i)), says_numbers};
  }
  Place member(const std::string& key) const { return {join(says_numbers ? numbers : name, key), numbers}; }
};

// Assigns each output of one result a unique name.
class OutputNames {
 public:
  std::string take(const Place& place) {
    std::string name = place.name;
    if (name.empty()) {
      do name = positional_name(next_++);
      while (!taken_.insert(name).second);
      return name;
    }
    if (taken_.insert(name).second) return name;
    if (!place.numbers.empty()) name = join(place.numbers, name);
    for (size_t i = 1; !taken_.insert(name).second; ++i) name = concat(place.name, "_", i);
    return name;
  }
  // A None takes a number but is not an output.
  void skip(size_t count) { next_ += count; }

 private:
  std::unordered_set<std::string> taken_;
  size_t next_ = 0;
};

class Flattener {
 public:
  explicit Flattener(std::span<const std::string> names) : known_names_(names) {}
  std::vector<InferTensor> outputs;

  void add(const Value& value, const Place& name, int depth) {
    check(depth <= kMaxDepth, "the result nests deeper than ", kMaxDepth, " levels");
    if (value.is_none()) {
      names_.skip(1);
    } else if (value.is_strided()) {
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
    } else if (value.is_tensor()) {
      fail(ErrorCode::kUnimplemented, "the model returned a tensor ", describe(value.to_tensor()),
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

  std::string take_name(const Place& place) {
    if (known_names_.empty()) return names_.take(place);
    check_internal(outputs.size() <= known_names_.size(), "the model returned more outputs than its type tells");
    return known_names_[outputs.size() - 1];
  }

  void push(const Place& name, const Tensor& tensor) {
    const DataType datatype = from_dtype(tensor.dtype());
    InferTensor& out = outputs.emplace_back();
    out.name = take_name(name);
    out.datatype = datatype;
    out.shape = tensor.sizes();
    out.tensor = tensor;
  }

  void push_strings(const Place& name, std::vector<std::string> strings) {
    const auto count = static_cast<int64_t>(strings.size());
    push_strings(name, std::move(strings), Dims{count});
  }

  void push_strings(const Place& name, std::vector<std::string> strings, const Dims& shape) {
    InferTensor& out = outputs.emplace_back();
    out.name = take_name(name);
    out.datatype = DataType::kBytes;
    out.shape = shape;
    out.strings = std::move(strings);
  }

  void add_tuple(const ops::TupleObject& tuple, const Place& name, int depth) {
    for (size_t i = 0; i < tuple.items.size(); ++i) {
      add(tuple.items[i], tuple.type ? name.member(tuple.type->field_names()[i]) : name.item(i), depth + 1);
    }
  }

  void add_dict(const ops::DictObject& dict, const Place& name, int depth) {
    for (const auto& [key, value] : dict.items()) {
      if (!key.is_string() && !key.is_int()) {
        fail(ErrorCode::kUnimplemented, "the model returned a dict with keys of type ", key.tag_name());
      }
      add(value, name.member(key.is_string() ? key.to_string() : std::to_string(key.to_int())), depth + 1);
    }
  }

  void add_rows_of_texts(const ops::ListObject& rows, const Place& name) {
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

  void add_list(const ops::ListObject& list, const Place& name, int depth) {
    if (is_list_of_strings(*list.element)) return add_rows_of_texts(list, name);
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
        Place item = name.item(i);
        // Otherwise items of the second element would get the names of the first, if that has none of its own.
        item.says_numbers = item.says_numbers || i > 0;
        add(list.items[i], item, depth + 1);
      }
    }
  }

  const std::span<const std::string> known_names_;
  OutputNames names_;
};

// The datatype of all values of a type, if it is determined.
std::optional<DataType> datatype_of(const ops::Type& type) {
  if (type.kind() == TypeKind::kList && is_list_of_strings(*type.element())) return DataType::kBytes;
  const ops::Type& inner = type.kind() == TypeKind::kList ? *type.element() : type;
  switch (inner.kind()) {
    case TypeKind::kInt: return DataType::kInt64;
    case TypeKind::kFloat: return DataType::kFp64;
    case TypeKind::kBool: return DataType::kBool;
    case TypeKind::kString: return DataType::kBytes;
    default: return std::nullopt;
  }
}

// An output whose name is not decided yet.
struct Described {
  Place place;
  size_t nones_before = 0;  // since the previous output
  TensorSpec spec = {};
};

class Describer {
 public:
  // Returns false if a run may return other outputs than those added.
  bool add(const ops::Type& type, const Place& place) {
    if (type.kind() == TypeKind::kNone) {
      ++nones_;
      return true;
    }
    const std::optional<DataType> datatype = datatype_of(type);
    if (type.kind() == TypeKind::kTensor || datatype) {
      Described& one = outputs_.emplace_back(place, std::exchange(nones_, 0));
      one.spec.datatype = datatype;
      if (datatype) one.spec.shape = Dims{type.kind() == TypeKind::kList ? -1 : 1};
      if (type.kind() == TypeKind::kList && is_list_of_strings(*type.element())) one.spec.shape = Dims{-1, -1};
      return true;
    }
    if (type.kind() != TypeKind::kTuple) return false;
    bool is_complete = true;
    for (size_t i = 0; i < type.contained().size() && is_complete; ++i) {
      const bool is_named = i < type.field_names().size();
      is_complete = add(*type.contained()[i], is_named ? place.member(type.field_names()[i]) : place.item(i));
    }
    return is_complete;
  }

  // The model's own names take precedence over numbers, if all outputs are known.
  std::vector<TensorSpec> named(bool is_complete) {
    OutputNames names;
    for (Described& one : outputs_) {
      if (is_complete && !one.place.name.empty()) one.spec.name = names.take(one.place);
    }
    std::vector<TensorSpec> specs;
    for (Described& one : outputs_) {
      names.skip(one.nones_before);
      if (one.spec.name.empty()) one.spec.name = names.take(one.place);
      specs.push_back(std::move(one.spec));
    }
    return specs;
  }

 private:
  std::vector<Described> outputs_;
  size_t nones_ = 0;
};

}  // namespace

std::vector<InferTensor> flatten_result(const Value& value, const std::string& whole,
                                        std::span<const std::string> names) {
  Flattener flattener(names);
  flattener.add(value, Place{whole}, 0);
  return std::move(flattener.outputs);
}

std::vector<TensorSpec> describe_result(const ops::Type& type, bool* is_complete, const std::string& whole) {
  Describer describer;
  *is_complete = describer.add(type, Place{whole});
  return describer.named(*is_complete);
}

ResultNames result_names(const jit::Method& method) {
  const ops::Schema& schema = method.schema();
  if (schema.returns.empty()) return {};
  ResultNames out{schema.returns[0].name, {}};
  ops::TypePtr type = schema.returns[0].type;
  const bool may_hold_dicts = type->kind() == TypeKind::kDict || type->kind() == TypeKind::kTuple;
  if (may_hold_dicts) type = jit::result_type_with_keys(method.graph());
  bool is_complete = false;
  const std::vector<TensorSpec> specs = describe_result(*type, &is_complete, out.whole);
  for (const TensorSpec& spec : specs) out.own.push_back(spec.name);
  if (!is_complete) out.own.clear();
  return out;
}

}  // namespace tensord::server
