#pragma once

#include <string>
#include <vector>

#include "core/ops/value.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// Takes what a method returned apart into tensors: a tensor is OUTPUT__0; tuples and lists
// count on (OUTPUT__0, OUTPUT__1 …), NamedTuples and dicts with str keys use their names,
// joined by '.' below the first level. Numbers become one-element tensors, strings BYTES,
// lists of numbers or strings vectors, lists of lists of strings BYTES of two dimensions; None is left out. Throws
// Error{kUnimplemented} naming a type that has no place in a response, Error{kFailedPrecondition} when such lists have
// different lengths.
std::vector<InferTensor> flatten_result(const ops::Value& value);

// The outputs that a method of this return type will have, as far as the type tells;
// `*is_complete` is false when a run may give others.
std::vector<TensorSpec> describe_result(const ops::Type& type, bool* is_complete);

}  // namespace tensord::server
