#pragma once

#include <string>
#include <vector>

#include "server/executor/model/model.h"

namespace tensord::server {

// The `classes` largest values of an output in descending order, each as the string "VALUE:INDEX", or
// "VALUE:INDEX:LABEL" if the index has a label. The result is a BYTES tensor of shape [classes], or [rows, classes] for
// a batching model, over all elements of a row. Ties keep the order of their indices; NaN comes last. Throws
// Error{kInvalidArgument} for BYTES and BOOL.
InferTensor classify(const InferTensor& output, int64_t classes, bool is_batched,
                     const std::vector<std::string>& labels);

// Upper bound of the memory that classify() needs, without labels.
uint64_t classes_bytes(const InferTensor& output, int64_t classes, bool is_batched);

}  // namespace tensord::server
