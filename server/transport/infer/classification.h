#pragma once

#include <string>
#include <vector>

#include "server/executor/model/model.h"

namespace tensord::server {

// The `classes` largest values of an output, largest first, each as the text "VALUE:INDEX", or "VALUE:INDEX:LABEL"
// where the index has a label: a BYTES tensor [classes], or [rows, classes] of a batched model, over all that is in a
// row. Equal values in the order of their indices, NaN after all others. Throws Error{kInvalidArgument} for BYTES and
// BOOL.
InferTensor classify(const InferTensor& output, int64_t classes, bool is_batched,
                     const std::vector<std::string>& labels);

// What classify() may take, labels not counted.
uint64_t classes_bytes(const InferTensor& output, int64_t classes, bool is_batched);

}  // namespace tensord::server
