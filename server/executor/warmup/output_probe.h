#pragma once

#include <span>

#include "server/executor/model/model.h"
#include "server/executor/warmup/warmup.h"

namespace tensord::server {

// Finds the types and shapes of outputs that neither the script nor the configuration gives, from two runs: the first
// warm-up request, and the second one (with another batch size) with random data. A dimension that differs between the
// runs, or is 0, stays variable. Shapes are learned only if the shapes of all inputs are known. Models with state are
// not run. Types and shapes that the runs do not show stay unknown. Does not throw.
void complete_outputs(const Model& model, std::span<const WarmupRequest> requests, int threads, Signature& signature);

}  // namespace tensord::server
