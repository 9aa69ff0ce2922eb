#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/run_options.h"

namespace tensord::jit {

// The memory on which one worker runs plans: an arena as large as the largest plan's, and for each plan the addresses
// of its tensors. Not thread-safe.
class PlanState {
 public:
  PlanState();
  ~PlanState();

  // Appends the results. Tensors in `arguments` have the shapes for which the plan was made; one with different strides
  // is copied. `result_numbers` maps the plan's outputs to options.result_memory, or -1; empty: all -1. The caller's
  // memory is used if it is large enough, aligned, and the plan allows it. Throws Error and sets *failed_call to the
  // call that failed.
  void run(const Plan& plan, std::span<const ops::Value> arguments, std::vector<ops::Value>& results,
           const RunOptions& options, std::span<const int32_t> result_numbers, const PlanCall** failed_call);

  size_t arena_bytes() const;

 private:
  struct Binding;
  Binding& bind(const Plan& plan);

  Tensor& arena_of(Device device);

  std::vector<Tensor> arenas_;                                       // one per device on which plans were run
  std::unordered_map<uint64_t, std::unique_ptr<Binding>> bindings_;  // by plan id
  std::vector<uint64_t> order_;                                      // keys of bindings_, oldest first
};

}  // namespace tensord::jit
