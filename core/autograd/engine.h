#pragma once

#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Backward passes. Both run the nodes that the roots hang on in the order of their sequence
// numbers, latest first, so that every node has all of its gradients when it runs.
namespace tensord::autograd {

struct BackwardOptions {
  bool retain_graph = false;  // keep what nodes saved, for another pass
  bool create_graph = false;  // record the pass itself, for gradients of gradients; implies retain_graph
  // Threads that may run nodes side by side where branches allow. Results do not depend on it: what
  // several nodes give to one is added in a fixed order.
  int threads = 1;
  // For backward: only these leaves get gradients, and only what leads to them runs. Empty: all.
  std::span<const Tensor> inputs = {};
};

// Adds the gradients of `tensors` to the leaves they hang on. `gradients` holds one for each tensor, of
// its sizes; undefined or missing means 1 for a tensor of one element, and is an Error for another
// ("grad can be implicitly created only for scalar outputs"). Re-entrant: nodes may call it.
void backward(std::span<const Tensor> tensors, std::span<const Tensor> gradients = {}, BackwardOptions options = {});
void backward(const Tensor& tensor, const Tensor& gradient = {}, BackwardOptions options = {});

// The gradients of `outputs` with respect to `inputs`, accumulated nowhere; undefined for an input
// that is not reached, which is an Error unless `allow_unused`.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs = {}, BackwardOptions options = {},
                         bool allow_unused = false);

// While one lives, nodes remember where they were made, and a backward pass that fails or gives
// NaN says which forward operator it comes from. Slow. For all threads.
class AnomalyModeGuard {
 public:
  explicit AnomalyModeGuard(bool is_enabled = true, bool checks_nan = true);
  ~AnomalyModeGuard();
  AnomalyModeGuard(const AnomalyModeGuard&) = delete;
  AnomalyModeGuard& operator=(const AnomalyModeGuard&) = delete;

 private:
  bool was_enabled_, did_check_nan_;
};

}  // namespace tensord::autograd
