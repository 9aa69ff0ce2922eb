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

// Flattens the result of a method into named tensors. A tensor is named OUTPUT__0; tuples and lists are numbered
// (OUTPUT__0, OUTPUT__1 …); NamedTuples and dicts with str keys use their keys, joined by '.' below the first level.
// Items of a list from the second on have their index as a prefix ("1.boxes"), as does an output whose name is already
// taken. Numbers become one-element tensors, strings BYTES, lists of numbers or strings vectors, lists of lists of
// strings 2-D BYTES; None is omitted. `whole` is the name of the result in the model's file, or "". `names` are the
// names from describe_result, if these were complete. Throws Error{kUnimplemented} naming an unsupported type,
// Error{kFailedPrecondition} if nested lists have different lengths.
std::vector<InferTensor> flatten_result(const ops::Value& value, const std::string& whole = {},
                                        std::span<const std::string> names = {});

// The names of a method's results, for flatten_result.
struct ResultNames {
  std::string whole;             // from the model's file; empty: none
  std::vector<std::string> own;  // of all outputs; empty: the type does not give them
};
ResultNames result_names(const jit::Method& method);

// The outputs of a method with this return type and their names, as far as the type gives them. Sets `*is_complete` to
// false if a run may return others.
std::vector<TensorSpec> describe_result(const ops::Type& type, bool* is_complete, const std::string& whole = {});

}  // namespace tensord::server
