#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/importers/onnx/proto.h"

namespace tensord::jit::onnx {

// The allowed values of an enumerated attribute. Names, types and defaults of attributes are those of the keyword
// parameters in operators/*.py; scripts/onnx_reference.py generates docs/onnx_operators.md from both.
struct AttributeValues {
  std::string_view attribute;
  std::string_view operators;  // operator prefixes, separated by spaces; empty: all other operators
  std::string_view values;     // parted by spaces; "*": any; ">=1", ">0": numbers
};
std::span<const AttributeValues> attribute_values();

// Returns null if the attribute is not enumerated.
const AttributeValues* find_attribute_values(std::string_view op, std::string_view attribute);

// The index of each value among the row's values. REQUIRES: each of them is in the row.
std::vector<int64_t> numbers_of_values(const AttributeValues& row, const std::vector<std::string>& given);

// `op` is the prefix of its functions, "microsoft_FusedConv". `name` is the attribute, which may refer to an attribute
// of a function. Throws Error{kUnimplemented} that names attribute and value.
void check_attribute_values(std::string_view op, std::string_view name, const AttributeProto& attribute);

}  // namespace tensord::jit::onnx
