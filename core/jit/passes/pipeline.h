#pragma once

#include <memory>
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
// Parts of it, by which the analysis before freezing finds out what changes: calls inlined, attributes frozen, and
// both with everything that folds.
std::span<const PipelineStep> inlining_pipeline();
std::span<const PipelineStep> freezing_pipeline();
std::span<const PipelineStep> folding_pipeline();
// What a copy of a method's graph goes through for one input signature: shapes, then fusion, then
// plans. Its inputs have known() values.
std::span<const PipelineStep> plan_pipeline();

// Runs the steps. Passes that `options` disables are left out, those with a limit stop
// rewriting when it is used up (over all their runs in this call), and the observer is told
// of every change. A graph that was changed is verified at the end.
// A pass that throws, or leaves a graph that is not well formed, is a bug in tensord: it is logged, counted in
// `context.failures`, and the graph as it was given goes through the others once more. Cancellation and lack of memory
// pass through, as does what is wrong with code that is compiled on the way. Throws Error{kInternal} when the graph
// that was given is not well formed. Returns whether the graph was changed.
bool run_pipeline(std::unique_ptr<Graph>& graph, PassContext& context, const PassOptions& options,
                  std::span<const PipelineStep> steps);

// TENSORD_VERIFY_PASSES=1, for tests: graphs are verified after every pass that changed them, and a pass that fails
// ends the process with a message.
bool verifies_passes();

// Every pass name once, in order, the planner's steps last; for --jit-disable and its help.
std::vector<std::string> pass_names();
// Throws Error{kInvalidArgument} that lists the names when there is none such.
const Pass& find_pass(const std::string& name);

}  // namespace tensord::jit
