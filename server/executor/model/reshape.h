#pragma once

#include "server/executor/model/model.h"

namespace tensord::server {

// Changes a tensor's sizes from `from` to `to`, as a configured `reshape` says. Each -1 in `to`, the batch dimension
// included, takes the size of the corresponding -1 in `from`. Throws Error naming the tensor if its sizes do not match
// `from`.
void reshape(InferTensor& tensor, const Dims& from, const Dims& to);

// Changes the sizes. REQUIRES: the number of elements stays the same.
void set_sizes(InferTensor& tensor, const Dims& sizes);

}  // namespace tensord::server
