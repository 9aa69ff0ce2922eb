#pragma once

#include <CLI/CLI.hpp>

#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// --optimizer, and a flag for each option that the engine's optimizers have. `spec` must live until the command line is
// read.
void add_optimizer_options(CLI::App& command, OptimizerSpec& spec);

// All optimizers with their options: a table for people, or JSON.
void print_optimizers(bool as_json);

}  // namespace tensord::server
