// Calls of the library's functions: parameters before "*" are inputs by position, those after it are attributes by
// name.
#include <algorithm>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/jit/importers/onnx/attribute_values.h"
#include "core/jit/importers/onnx/importer.h"
#include "core/ops/registry.h"

namespace tensord::jit::onnx {

using ops::Type;
using ops::TypeKind;
using ops::TypePtr;

namespace {

// Parameter that receives the number of the node's outputs. A function with it returns its outputs as a list.
constexpr std::string_view kOutputs = "_outputs";
// Attributes that hold an ONNX element type. Functions get the corresponding dtype number; 0 counts as omitted.
constexpr std::string_view kTypeAttributes[] = {"to",         "dtype",     "output_dtype",     "output_datatype",
                                                "stash_type", "precision", "softmax_precision"};

const Type& without_optional(const Type& type) { return type.kind() == TypeKind::kOptional ? *type.element() : type; }

bool is_list_of(const Type& type, TypeKind kind) {
  return type.kind() == TypeKind::kList && type.element()->kind() == kind;
}

template <class T>
Tensor as_tensor(const std::vector<T>& values) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, dtype_of<T>);
  std::ranges::copy(values, tensor.data<T>());
  return tensor;
}

size_t count_of(const std::vector<std::string>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

}  // namespace

std::string_view operator_of(const Function& function) {
  const std::string_view name = function.name;
  const size_t begin = name.rfind('.') + 1;
  return name.substr(begin, name.rfind('_') - begin);
}

Importer::Values Importer::call_operator(const Function& function, const NodeProto& node) {
  GraphValue* result = inline_function(function, bind(function, node));
  const TypePtr& type = result->type();
  const bool is_variadic = function.schema.find_argument(kOutputs) >= 0 && type->kind() == TypeKind::kList;
  if (type->kind() != TypeKind::kTuple && !is_variadic) return {result};
  Node* unpack = builder_.add(is_variadic ? NodeKind::kListUnpack : NodeKind::kTupleUnpack,
                              std::span<GraphValue* const>(&result, 1));
  const size_t count = is_variadic ? node.outputs.size() : type->contained().size();
  Values results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(unpack->add_output(is_variadic ? type->element() : type->contained()[i]));
  }
  checks_.node(*unpack);
  return results;
}

Importer::Values Importer::bind(const Function& function, const NodeProto& node) {
  const Attributes given = attributes(node);
  const size_t input_count = count_of(node.inputs);
  std::set<std::string> used;
  size_t next = 0;
  Values arguments;
  for (const ops::Argument& parameter : function.schema.arguments) {
    const Type& type = *parameter.type;
    GraphValue* value = nullptr;
    if (parameter.name == kOutputs) {
      value = builder_.constant(static_cast<int64_t>(std::max<size_t>(count_of(node.outputs), 1)));
      if (is_list_of(*function.schema.returns.front().type, TypeKind::kTensor)) {
        value = builder_.constant(static_cast<int64_t>(node.outputs.size()));
      }
    } else if (parameter.is_keyword_only) {
      if (const auto found = given.find(parameter.name); found != given.end()) {
        used.insert(parameter.name);
        value = attribute_value(operator_of(function), parameter.name, *found->second, type);
      }
    } else if (is_list_of(type, TypeKind::kTensor)) {
      GraphValue* first = next < input_count ? input(node, next) : nullptr;
      if (first && first->type()->kind() == TypeKind::kList) {
        value = first;
        ++next;
      } else {
        Values items;
        for (; next < input_count; ++next) {
          items.push_back(input(node, next));
          if (!items.back()) fail(ErrorCode::kDataLoss, "input ", next, " is left out, but must be given");
        }
        value = builder_.list(ops::tensor_type(), items);
      }
    } else if (next < input_count) {
      value = input(node, next++);
      if (value) value = converted(value, parameter.type, parameter.name);
    }
    if (!value && parameter.default_value) value = builder_.constant(*parameter.default_value);
    if (!value && type.kind() == TypeKind::kOptional) value = builder_.none();
    if (!value) {
      fail(ErrorCode::kDataLoss, parameter.is_keyword_only ? "attribute '" : "input '", parameter.name, "' is missing");
    }
    arguments.push_back(value);
  }
  if (next < input_count) fail(ErrorCode::kDataLoss, "has ", input_count, " inputs, but takes ", next);
  for (const auto& [name, attribute] : given) {
    if (!used.contains(name)) fail(ErrorCode::kUnimplemented, "attribute '", name, "' is not known");
  }
  return arguments;
}

GraphValue* Importer::attribute_value(std::string_view op, const std::string& name, const AttributeProto& attribute,
                                      const Type& parameter) {
  check_attribute_values(op, name, attribute);
  const Type& type = without_optional(parameter);
  const auto is = [&](AttributeProto::Type wanted) { return attribute.type == wanted; };
  if (is(AttributeProto::kInt) && type.kind() == TypeKind::kInt) {
    if (std::ranges::find(kTypeAttributes, name) == std::end(kTypeAttributes)) return builder_.constant(attribute.i);
    if (attribute.i == 0) return nullptr;
    return builder_.constant(to_dtype(attribute.i, "attribute '" + name + "'"));
  }
  if (is(AttributeProto::kFloat) && type.kind() == TypeKind::kFloat) return builder_.constant(double{attribute.f});
  if (is(AttributeProto::kString) && type.kind() == TypeKind::kString) return builder_.constant(attribute.s);
  if (is(AttributeProto::kTensor) && type.kind() == TypeKind::kTensor && attribute.t) {
    return builder_.constant(tensors_.read_attribute(*attribute.t));
  }
  const auto list = [&](const auto& values, TypePtr element) {
    Values items;
    for (const auto& value : values) items.push_back(builder_.constant(ops::Value(value)));
    return builder_.list(std::move(element), items);
  };
  if (is(AttributeProto::kInts) && is_list_of(type, TypeKind::kInt)) return list(attribute.ints, ops::int_type());
  if (is(AttributeProto::kStrings) && is_list_of(type, TypeKind::kString)) {
    return list(attribute.strings, ops::string_type());
  }
  // Lists that may have one item per node of many trees.
  const AttributeValues* choice = find_attribute_values(op, name);
  if (is(AttributeProto::kStrings) && type.kind() == TypeKind::kTensor && choice) {
    return builder_.constant(as_tensor(numbers_of_values(*choice, attribute.strings)));
  }
  if (is(AttributeProto::kInts) && type.kind() == TypeKind::kTensor)
    return builder_.constant(as_tensor(attribute.ints));
  if (is(AttributeProto::kFloats) && type.kind() == TypeKind::kTensor) {
    return builder_.constant(as_tensor(attribute.floats));
  }
  if (is(AttributeProto::kFloats) && is_list_of(type, TypeKind::kFloat)) {
    return list(std::vector<double>(attribute.floats.begin(), attribute.floats.end()), ops::float_type());
  }
  fail(ErrorCode::kDataLoss, "attribute '", name, "' has type ", attribute.type, " and should be ", type.str());
}

GraphValue* Importer::converted(GraphValue* value, const TypePtr& type, const std::string& parameter) {
  const Type& wanted = without_optional(*type);
  if (value->type()->kind() == TypeKind::kTensor && wanted.kind() != TypeKind::kTensor) {
    const Tensor known = tensor_of(value);
    const bool is_list = wanted.kind() == TypeKind::kList;
    if (known.defined() && (is_list ? known.ndim() > 1 : known.numel() != 1)) {
      fail(ErrorCode::kDataLoss, "input '", parameter, "' has shape ", known.sizes(), " and should be ",
           is_list ? "a list" : "a number");
    }
    switch (wanted.kind()) {
      case TypeKind::kInt:
      case TypeKind::kFloat:
      case TypeKind::kBool: return number(value, wanted.kind());
      case TypeKind::kList:
        if (wanted.element()->kind() != TypeKind::kTensor) return numbers(value, wanted.element()->kind());
        break;
      default: break;
    }
  }
  if (!ops::is_subtype(value->type(), type)) {
    fail(ErrorCode::kDataLoss, "input '", parameter, "' is ", value->type()->str(), " and should be ", type->str());
  }
  return value;
}

GraphValue* Importer::number(GraphValue* tensor, TypeKind kind) {
  const ops::Value* known = tensor->constant();
  if (known && known->is_strided() && known->to_tensor().numel() == 1) {
    const Tensor& one = known->to_tensor();
    if (kind == TypeKind::kInt) return builder_.constant(one.item_int());
    if (kind == TypeKind::kBool) return builder_.constant(one.item_bool());
    return builder_.constant(one.item_double());
  }
  return builder_.op(kind == TypeKind::kInt    ? "aten::Int.Tensor"
                     : kind == TypeKind::kBool ? "aten::Bool.Tensor"
                                               : "aten::Float.Tensor",
                     {tensor});
}

GraphValue* Importer::numbers(GraphValue* tensor, TypeKind kind) {
  constexpr int64_t kMaxConstant = 1024;
  const ops::Value* known = tensor->constant();
  if (known && known->is_strided() && known->to_tensor().numel() <= kMaxConstant) {
    const Tensor flat = known->to_tensor().to(kind == TypeKind::kInt ? DType::kInt64 : DType::kFloat64).contiguous();
    Values items;
    for (int64_t i = 0; i < flat.numel(); ++i) {
      items.push_back(kind == TypeKind::kInt ? builder_.constant(flat.data<int64_t>()[i])
                                             : builder_.constant(flat.data<double>()[i]));
    }
    return builder_.list(ops::simple_type(kind), items);
  }
  return helper(kind == TypeKind::kInt ? "control._int_list" : "control._float_list", {tensor});
}

GraphValue* Importer::helper(const std::string& name, std::initializer_list<GraphValue*> arguments) {
  return inline_function(library_.helper(name), Values(arguments));
}

GraphValue* Importer::inline_function(const Function& function, const Values& arguments) {
  GraphValue* result = copier_.call(function, arguments);
  checks_.call(function, arguments, result);
  return result;
}

Tensor Importer::tensor_of(const GraphValue* value) const {
  if (const ops::Value* constant = value->constant()) return constant->is_strided() ? constant->to_tensor() : Tensor();
  const auto found = weights_.find(value);
  return found == weights_.end() ? Tensor() : found->second;
}

}  // namespace tensord::jit::onnx
