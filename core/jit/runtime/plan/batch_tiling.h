#pragma once

#include <memory>
#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// A step of the planner before memory is placed: sequences of batch-independent calls
// (core/ops/attributes/batch_independence.h) become loops over samples if that is faster: if the intermediate tensors
// of the whole batch do not fit the cache, or threads can work on separate samples without a barrier after each call.
// `escapes` tells by root what is returned.
//
// Whether dimension 0 of a tensor is the batch is decided by memory alone: one sample after another, each within its
// own part of the root. Views therefore need no rule of their own, and a view of one sample is never mistaken for a
// batch.
void split_samples(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings);

// The prepared call for these shapes; null if the operator has none.
std::unique_ptr<const ops::PreparedCall> prepare_call(const PlanCall& call, const std::vector<Tensor>& outputs,
                                                      Device device, const PlanSettings& settings);

}  // namespace tensord::jit
