#pragma once

#include <span>

#include "server/executor/model/model.h"
#include "server/executor/warmup/warmup.h"

namespace tensord::server {

// Fills in types and shapes of outputs that neither script nor configuration say, as two runs show them: the first
// warm-up request, and the second one (which has another batch size) with random data. A dimension that differs between
// them, or is 0, is open; shapes are only taken where those of all inputs are known. Models that keep state are not
// run. What cannot be seen stays unknown. Does not throw.
void complete_outputs(const Model& model, std::span<const WarmupRequest> requests, int threads, Signature& signature);

}  // namespace tensord::server
