#pragma once

#include <CLI/CLI.hpp>

#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// Adds --optimizer and a flag for each option of the engine's optimizers. `spec` must outlive the parse.
void add_optimizer_options(CLI::App& command, OptimizerSpec& spec);

// Prints all optimizers with their options, as a table or as JSON.
void print_optimizers(bool as_json);

}  // namespace tensord::server
