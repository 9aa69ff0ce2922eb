#pragma once

#include <string>
#include <string_view>

#include "server/executor/model/model.h"
#include "server/http/answer_text.h"
#include "server/rest/call_charge.h"

namespace tensord::server {

// Reads the elements of a JSON value, an array of any nesting or one element, into memory of `out`, whose name,
// datatype and shape are set: `count` elements. Nothing is allocated for elements that cannot be there, or that are not
// charged. `model` is for messages. Throws Error: kInternal when there are more or fewer elements, as the protocol has
// it, kInvalidArgument for what is no element of the datatype.
void read_json_data(std::string_view json, int64_t count, const std::string& model, const CallCharge& charge,
                    InferTensor& out);

// Throws read_json_data's Error where `elements` of JSON are not the `count` that a shape has.
void check_json_count(int64_t elements, int64_t count);

// Appends the elements as a flat JSON array, or, without brackets, one of them by itself. Throws
// Error{kInvalidArgument} for datatypes and texts that JSON cannot hold. REQUIRES: a row-major tensor.
void write_json_data(const InferTensor& tensor, AnswerText& out, bool has_brackets = true);

void write_json_string(std::string_view text, AnswerText& out);  // REQUIRES: UTF-8

}  // namespace tensord::server
