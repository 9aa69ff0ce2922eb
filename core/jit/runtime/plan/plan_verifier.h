#pragma once

#include "core/base/error.h"
#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// A plan that is not proven; the message says which call, and what of it. It is not run: the interpreter does
// that part of the program.
class PlanRefused : public Error {
 public:
  explicit PlanRefused(const std::string& message) : Error(ErrorCode::kInternal, message) {}
};

// Proves a plan of `node` before it runs, by walking its calls beside the node's: every read finds, whole, the value
// that the graph says (what came in, or what an earlier call of the run wrote); nothing is written over that is read
// later; inputs are never written; a result lies on an operand only where the prepared call declares it; scratch
// memory overlaps nothing; everything lies within its memory, aligned; results are whole when they leave. Loops over
// samples are walked in each of their parts, and their samples and teams must lie apart. Strided tensors count with
// all bytes between their first and last: what is refused is a little more than what is wrong.
//
// Shares no code with what makes plans. What the kernels do with the pointers is not looked at here. Throws
// PlanRefused.
void verify_plan(const Plan& plan, const Node& node);

}  // namespace tensord::jit
