#pragma once

#include <cstddef>

#include "core/nn/optim/optimizer_info.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// What the engine says of the optimizer of a job. Throws Error{kInvalidArgument} for a name that there is not.
const nn::OptimizerInfo& optimizer_of(const OptimizerSpec& spec);

// Checks an optimizer and its groups, at most `max_groups`, by what the engine says of it, so that the optimizer of a
// job that passes can be made; no name is the default. Throws Error{kInvalidArgument} that starts with the field.
void check_optimizer(OptimizerSpec& spec, size_t max_groups);

}  // namespace tensord::server
