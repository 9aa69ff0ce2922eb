#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// A step of a pipeline: one pass, or several that are repeated in order until none changes
// the graph any more (with a bound).
struct PipelineStep {
  std::vector<Pass> passes;
  bool until_stable = false;
};

// What a loaded method goes through, in order: calls inlined, attributes frozen, the graph
// simplified, then prepared for the kernels.
std::span<const PipelineStep> inference_pipeline();
// The part that keeps to the script's own operators: inline, freeze, simplify.
std::span<const PipelineStep> simplification_pipeline();
// What a copy of a method's graph goes through for one input signature: shapes, then fusion, then
// plans. Its inputs have known() values.
std::span<const PipelineStep> plan_pipeline();

// Runs the steps. Passes that `options` disables are left out, those with a limit stop
// rewriting when it is used up (over all their runs in this call), and the observer is told
// of every change. A graph that was changed is verified at the end; with `verify_each` after every
// pass that changed it, so that an error names the pass. Throws Error{kInternal} on an ill-formed graph.
void run_pipeline(Graph& graph, PassContext& context, const PassOptions& options, std::span<const PipelineStep> steps,
                  bool verify_each = false);

// Every pass name once, in order, the planner's steps last; for --jit-disable and its help.
std::vector<std::string> pass_names();
// Throws Error{kInvalidArgument} that lists the names when there is none such.
const Pass& find_pass(const std::string& name);

}  // namespace tensord::jit
