#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/run_options.h"

namespace tensord::jit {

// The memory that one worker runs plans on: an arena as large as the largest plan's, and for each
// plan the addresses of its tensors. Not thread-safe.
class PlanState {
 public:
  PlanState();
  ~PlanState();

  // Appends the results. Tensors among `arguments` have the shapes the plan was made for; one whose strides differ is
  // copied. `result_numbers` are those of the plan's outputs in options.result_memory, or -1; empty: all -1. Memory is
  // used where it is large enough, aligned, and the plan allows it. Throws Error, with the call that failed in
  // *failed_call.
  void run(const Plan& plan, std::span<const ops::Value> arguments, std::vector<ops::Value>& results,
           const RunOptions& options, std::span<const int32_t> result_numbers, const PlanCall** failed_call);

  size_t arena_bytes() const;

 private:
  struct Binding;
  Binding& bind(const Plan& plan);

  Tensor& arena_of(Device device);

  std::vector<Tensor> arenas_;                                       // one of each device that plans were run on
  std::unordered_map<uint64_t, std::unique_ptr<Binding>> bindings_;  // by plan id
  std::vector<uint64_t> order_;                                      // of bindings_, oldest first
};

}  // namespace tensord::jit
