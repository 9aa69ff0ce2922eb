#pragma once

#include <cstddef>

#include "core/nn/optim/optimizer_info.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// The engine's description of a job's optimizer. Throws Error{kInvalidArgument} for an unknown name.
const nn::OptimizerInfo& optimizer_of(const OptimizerSpec& spec);

// Validates an optimizer and its groups, at most `max_groups`, by the engine's description, so that the optimizer of a
// valid job can be created. An empty name is the default. Throws Error{kInvalidArgument} that starts with the field.
void check_optimizer(OptimizerSpec& spec, size_t max_groups);

}  // namespace tensord::server
