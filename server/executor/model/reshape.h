#pragma once

#include "server/executor/model/model.h"

namespace tensord::server {

// Gives a tensor of sizes `from` the sizes `to`, as a `reshape` of the configuration says: each -1 of `to` is what the
// same one of `from` is here, that of the batch among them. Throws Error naming the tensor when it has other sizes.
void reshape(InferTensor& tensor, const Dims& from, const Dims& to);

// The same elements in other sizes. REQUIRES: as many elements.
void set_sizes(InferTensor& tensor, const Dims& sizes);

}  // namespace tensord::server
