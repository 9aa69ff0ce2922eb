#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// A step of a pipeline: one pass, or several passes repeated in order until none changes the graph (up to a limit).
struct PipelineStep {
  std::vector<Pass> passes;
  bool until_stable = false;
};

// The pipeline of a loaded method: inlines calls, freezes attributes, simplifies the graph, then prepares it for the
// kernels.
std::span<const PipelineStep> inference_pipeline();
// The part that keeps the script's own operators: inline, freeze, simplify.
std::span<const PipelineStep> simplification_pipeline();
// Parts that the analysis before freezing uses: inlining, freezing, and both with all folding.
std::span<const PipelineStep> inlining_pipeline();
std::span<const PipelineStep> freezing_pipeline();
std::span<const PipelineStep> folding_pipeline();
// The pipeline for a copy of a method's graph and one input signature: shapes, then fusion, then plans. The inputs have
// known() values.
std::span<const PipelineStep> plan_pipeline();

// Runs the steps. It skips the passes in options.disabled and stops a pass with a limit once it is reached (over all
// its runs in this call). It calls the observer for every change. A changed graph is verified at the end. A pass that
// throws or leaves a malformed graph is a bug in tensord: the failure is logged and counted in `context.failures`, and
// the original graph goes through the other passes again. Cancellation, out-of-memory errors, and errors of code that a
// pass compiles are passed on. Throws Error{kInternal} if the given graph is malformed. Returns whether the graph
// changed.
bool run_pipeline(std::unique_ptr<Graph>& graph, PassContext& context, const PassOptions& options,
                  std::span<const PipelineStep> steps);

// TENSORD_VERIFY_PASSES=1, for tests: verifies graphs after every pass that changed them; a failing pass ends the
// process with a message.
bool verifies_passes();

// All pass names, each once, in order, with the planner's steps last; for --jit-disable and its help.
std::vector<std::string> pass_names();
// Throws Error{kInvalidArgument} that lists the names if there is no such pass.
const Pass& find_pass(const std::string& name);

}  // namespace tensord::jit
