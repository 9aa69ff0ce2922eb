#pragma once

#include <memory>
#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// A step of the planner, before memory is placed: runs of calls that keep the samples of a batch apart
// (core/ops/attributes/batch_independence.h) become loops over the samples, where that pays: what passes between the
// calls for the whole batch does not fit the cache, or threads can take samples of their own instead of meeting after
// each call. `escapes` says by root what leaves with the results.
//
// Which tensors have the batch along dimension 0 is told by memory alone: one sample after another, each
// within its own part of the root. So views need no rule of their own, and a view of a sample is never
// taken for one of the batch.
void split_samples(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings);

// What a call is prepared with; null where its operator has no prepared form for these shapes.
std::unique_ptr<const ops::PreparedCall> prepare_call(const PlanCall& call, const std::vector<Tensor>& outputs,
                                                      Device device, const PlanSettings& settings);

}  // namespace tensord::jit
