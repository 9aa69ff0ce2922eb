#include "server/executor/argument.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

const ops::Type& without_optional(const ops::Type& type) {
  return type.kind() == TypeKind::kOptional ? *type.element() : type;
}

bool is_scalar(TypeKind kind) {
  return kind == TypeKind::kInt || kind == TypeKind::kFloat || kind == TypeKind::kBool || kind == TypeKind::kNumber;
}

// Element `i` of a row-major tensor as a value of the kind.
Value element(const Tensor& tensor, int64_t i, TypeKind kind) {
  const Tensor one = tensor.as_view({}, {}, tensor.offset() + i);
  switch (kind) {
    case TypeKind::kInt: return one.item_int();
    case TypeKind::kBool: return one.item_bool();
    case TypeKind::kNumber:
      if (one.dtype() == DType::kBool) return one.item_bool();
      if (!is_floating(one.dtype())) return one.item_int();
      return one.item_double();
    default: return one.item_double();
  }
}

Value to_scalar(TypeKind kind, const InferTensor& input) {
  check(input.tensor.numel() == 1, "inference input '", input.name, "' must have exactly one element, got shape ",
        to_string(input.shape));
  check(kind != TypeKind::kInt || !is_floating(input.tensor.dtype()), "inference input '", input.name,
        "' must be of an integral data-type, got ", name_of(input.datatype));
  return element(input.tensor, 0, kind);
}

bool is_list_of_texts(const ops::Type& type) {
  return type.kind() == TypeKind::kList && type.element()->kind() == TypeKind::kString;
}

// Rows of strings: the batch dimension of a model that works on text.
Value to_rows_of_texts(const ops::TypePtr& row_type, const InferTensor& input) {
  check(input.shape.size() == 2, "inference input '", input.name, "' must have two dimensions, got shape ",
        to_string(input.shape));
  std::vector<Value> rows;
  const auto width = static_cast<size_t>(input.shape[1]);
  for (size_t row = 0; row < static_cast<size_t>(input.shape[0]); ++row) {
    std::vector<Value> items;
    for (size_t i = 0; i < width; ++i) items.emplace_back(input.strings[row * width + i]);
    rows.emplace_back(ops::make_list(row_type->element(), std::move(items)));
  }
  return ops::make_list(row_type, std::move(rows));
}

Value to_list(const ops::TypePtr& element_type, const InferTensor& input) {
  if (is_list_of_texts(*element_type)) return to_rows_of_texts(element_type, input);
  check(input.shape.size() <= 1, "inference input '", input.name, "' must have one dimension, got shape ",
        to_string(input.shape));
  std::vector<Value> items;
  if (element_type->kind() == TypeKind::kString) {
    for (const std::string& text : input.strings) items.emplace_back(text);
  } else {
    check(element_type->kind() != TypeKind::kInt || !is_floating(input.tensor.dtype()), "inference input '", input.name,
          "' must be of an integral data-type, got ", name_of(input.datatype));
    for (int64_t i = 0; i < input.tensor.numel(); ++i) items.push_back(element(input.tensor, i, element_type->kind()));
  }
  return ops::make_list(element_type, std::move(items));
}

}  // namespace

bool is_feedable(const ops::Type& declared) {
  const ops::Type& type = without_optional(declared);
  if (type.kind() == TypeKind::kList) {
    const TypeKind kind = type.element()->kind();
    return kind == TypeKind::kString || is_list_of_texts(*type.element()) ||
           (is_scalar(kind) && kind != TypeKind::kNumber);
  }
  return type.kind() == TypeKind::kTensor || type.kind() == TypeKind::kString || is_scalar(type.kind());
}

bool takes_bytes(const ops::Type& declared) {
  const ops::Type& type = without_optional(declared);
  return type.kind() == TypeKind::kString || is_list_of_texts(type) ||
         (type.kind() == TypeKind::kList && is_list_of_texts(*type.element()));
}

Value to_argument(const ops::Type& declared, const InferTensor& input) {
  const ops::Type& type = without_optional(declared);
  switch (type.kind()) {
    case TypeKind::kTensor: return input.tensor;
    case TypeKind::kString:
      check(input.strings.size() == 1, "inference input '", input.name, "' must have exactly one element, got shape ",
            to_string(input.shape));
      return input.strings[0];
    case TypeKind::kList: return to_list(type.element(), input);
    default: return to_scalar(type.kind(), input);
  }
}

}  // namespace tensord::server
