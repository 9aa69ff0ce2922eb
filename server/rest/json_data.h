#pragma once

#include <string>
#include <string_view>

#include "server/executor/model/model.h"
#include "server/http/answer_text.h"
#include "server/rest/call_charge.h"

namespace tensord::server {

// Reads `count` elements from a JSON value (an array of any nesting, or a scalar) into `out`, whose name, datatype and
// shape are set. Memory is allocated only after it was charged, and only for elements that the JSON can hold. `model`
// is used in error messages. Throws Error: kInternal for a wrong number of elements, as the protocol requires;
// kInvalidArgument for a value that is not an element of the datatype.
void read_json_data(std::string_view json, int64_t count, const std::string& model, const CallCharge& charge,
                    InferTensor& out);

// Throws read_json_data's Error if `elements` differs from `count`, the number of elements of the input's shape.
void check_json_count(int64_t elements, int64_t count, const std::string& input, const Dims& shape);

// Appends the elements as a flat JSON array, or a single element without brackets. Throws Error{kInvalidArgument} for
// datatypes and strings that JSON cannot hold. REQUIRES: a row-major tensor.
void write_json_data(const InferTensor& tensor, AnswerText& out, bool has_brackets = true);

void write_json_string(std::string_view text, AnswerText& out);  // REQUIRES: UTF-8

}  // namespace tensord::server
