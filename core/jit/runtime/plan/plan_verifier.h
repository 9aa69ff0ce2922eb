#pragma once

#include "core/base/error.h"
#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// A plan failed verification; the message says which call, and why. The plan is not run: the interpreter runs that part
// of the program.
class PlanRefused : public Error {
 public:
  explicit PlanRefused(const std::string& message) : Error(ErrorCode::kInternal, message) {}
};

// Verifies a plan of `node` before it runs, by walking its calls alongside the node's: every read finds the complete
// value that the graph requires (an input, or the result of an earlier call in the run); nothing is overwritten that is
// read later; inputs are never written; a result overlaps an operand only if the prepared call declares it; scratch
// memory overlaps nothing; everything lies within its memory and is aligned; results are complete when they are
// returned. Loops over samples are walked in each of their parts, and their samples and teams must be disjoint. Strided
// tensors count with all bytes between their first and last, so slightly more is refused than is wrong.
//
// Shares no code with the planner. Does not check what kernels do with the pointers. Throws PlanRefused.
void verify_plan(const Plan& plan, const Node& node);

}  // namespace tensord::jit
