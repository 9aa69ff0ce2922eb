#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "server/executor/model/model.h"

namespace tensord::jit {
class Method;
}

namespace tensord::server {

// Takes what a method returned apart into tensors, each with a name of its own: a tensor is OUTPUT__0; tuples and lists
// count on (OUTPUT__0, OUTPUT__1 …), NamedTuples and dicts with str keys use their names, joined by '.' below the first
// level. Items of a list from the second on say their place before ("1.boxes"), and so does whatever has a name that
// another one has. Numbers become one-element tensors, strings BYTES, lists of numbers or strings vectors, lists of
// lists of strings BYTES of two dimensions; None is left out. `whole` is what the model's file calls the result, ""
// where it does not; `names` are those that describe_result gave where it was complete. Throws Error{kUnimplemented}
// naming a type that has no place in a response, Error{kFailedPrecondition} when such lists have different lengths.
std::vector<InferTensor> flatten_result(const ops::Value& value, const std::string& whole = {},
                                        std::span<const std::string> names = {});

// What the results of a method are called: what flatten_result takes.
struct ResultNames {
  std::string whole;             // by the model's file; empty: nothing
  std::vector<std::string> own;  // of all outputs; empty: the type does not tell them
};
ResultNames result_names(const jit::Method& method);

// The outputs that a method of this return type will have, as far as the type tells, by the names that they will have;
// `*is_complete` is false when a run may give others.
std::vector<TensorSpec> describe_result(const ops::Type& type, bool* is_complete, const std::string& whole = {});

}  // namespace tensord::server
