#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/formats/onnx/proto.h"

namespace tensord::jit::onnx {

// The values that an attribute may have, where it is a choice. Names, types and defaults of attributes are those of the
// keyword parameters in operators/*.py; docs/onnx_operators.md is made of both (scripts/onnx_reference.py).
struct AttributeValues {
  std::string_view attribute;
  std::string_view operators;  // as functions of the library begin, parted by spaces; empty: all others that have it
  std::string_view values;     // parted by spaces; "*": any; ">=1", ">0": numbers
};
std::span<const AttributeValues> attribute_values();

// Null where the attribute is no choice.
const AttributeValues* find_attribute_values(std::string_view op, std::string_view attribute);

// Of each value the number that it has among those of the row, of which it is one.
std::vector<int64_t> numbers_of_values(const AttributeValues& row, const std::vector<std::string>& given);

// `op`: as its functions begin, "microsoft_FusedConv"; `name`: of the attribute, which may take its value from one of a
// function. Throws Error{kUnimplemented} that names attribute and value.
void check_attribute_values(std::string_view op, std::string_view name, const AttributeProto& attribute);

}  // namespace tensord::jit::onnx
