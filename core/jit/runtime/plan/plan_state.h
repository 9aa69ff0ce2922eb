#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/jit/runtime/plan/plan.h"
#include "core/jit/runtime/profile.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

// Memory of the caller that a result of a run should lie in, so that nobody has to copy it there.
struct ResultMemory {
  size_t result = 0;  // number among what the method returns, tuples taken apart
  Storage storage;    // writable; others may write to it at any time
};

// The memory that one worker runs plans on: an arena as large as the largest plan's, and for each
// plan the addresses of its tensors. Not thread-safe.
class PlanState {
 public:
  PlanState();
  ~PlanState();

  struct Options {
    const std::function<bool()>* is_cancelled = nullptr;  // asked between calls; may be null
    Profile* profile = nullptr;
    bool poison = false;  // fills all memory with NaN before the run
    // Where the plan's results should lie; used where it is large enough, aligned, and the plan allows it.
    std::span<const ResultMemory> result_memory = {};
    std::span<const int32_t> result_numbers = {};  // of each of the plan's outputs, or -1; may be empty
  };

  // Appends the results. Tensors among `arguments` have the shapes the plan was made for; one
  // whose strides differ is copied. Throws Error, with the call that failed in
  // *failed_call.
  void run(const Plan& plan, std::span<const ops::Value> arguments, std::vector<ops::Value>& results,
           const Options& options, const PlanCall** failed_call);

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
