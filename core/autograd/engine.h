#pragma once

#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Backward passes. Both functions run the nodes reachable from the roots in descending order of their sequence numbers,
// so that every node has received all of its gradients when it runs.
namespace tensord::autograd {

struct BackwardOptions {
  bool retain_graph = false;  // keeps what nodes saved, for another pass
  bool create_graph = false;  // records the pass itself, for gradients of gradients; implies retain_graph
  // The number of threads that may run nodes of independent branches in parallel. Results do not depend on it:
  // gradients from several nodes are added in a fixed order.
  int threads = 1;
  // For backward: only these leaves get gradients, and only nodes on paths to them run. Empty: all leaves.
  std::span<const Tensor> inputs = {};
};

// Adds the gradients of `tensors` to the leaves that they were computed from. `gradients` has one gradient for each
// tensor, of its sizes; an undefined or missing one means 1 for a tensor with one element, and is an Error otherwise
// ("grad can be implicitly created only for scalar outputs"). Reentrant: nodes may call it.
void backward(std::span<const Tensor> tensors, std::span<const Tensor> gradients = {}, BackwardOptions options = {});
void backward(const Tensor& tensor, const Tensor& gradient = {}, BackwardOptions options = {});

// Returns the gradients of `outputs` with respect to `inputs` and accumulates none. The gradient of an input that is
// not reached is undefined if `allow_unused`, otherwise it is an Error.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs = {}, BackwardOptions options = {},
                         bool allow_unused = false);

// During its lifetime, nodes store where they were made, and a backward pass that fails or produces NaN names the
// forward operator. Slow. Applies to all threads.
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
