#pragma once

#include <span>
#include <string>

#include "core/base/error.h"
#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// T for Optional[T] and for T.
inline const ops::Type& without_optional(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kOptional ? *type.element() : type;
}

inline bool is_list_of_strings(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kList && type.element()->kind() == ops::TypeKind::kString;
}

// Whether a request's tensor can be converted to this type: Tensor, int, float, bool, number, str, lists of int, float,
// bool and str, lists of lists of str (two dimensions), and Optional of these.
bool is_feedable(const ops::Type& type);
// What to do about an argument of another type, for errors.
std::string way_out(const ops::Type& type);
// Whether the tensor must be BYTES.
bool takes_bytes(const ops::Type& type);

// How to send a value of a type that is not Tensor: a number has one element, a list one dimension, a list of lists
// two.
void describe_argument(const ops::Type& type, jit::KnownInput& known);

// Converts a tensor to the argument's value. Throws Error{kInvalidArgument} naming the input if a single number is
// expected and the tensor does not have one element.
ops::Value to_argument(const ops::Type& type, const InferTensor& input);

// The error of a run with the shapes of its inputs: "…; inputs: x FP32[2,3]". Errors that inputs cannot cause are
// unchanged; kNotFound, a key that a script does not find, becomes kInvalidArgument.
Error with_shapes(const Error& error, std::span<const InferTensor* const> inputs);

// Checks the configuration of an input against the type of its argument. Throws Error{kInvalidArgument} that starts
// with `file` if no request could succeed; returns a warning, or an empty string.
std::string check_configured(const ops::Type& type, const TensorSpec& spec, bool has_batch, const std::string& file);

}  // namespace tensord::server
