#pragma once

#include "core/autograd/meta.h"
#include "core/autograd/node.h"

namespace tensord::autograd {

// The end of the graph at a leaf: adds incoming gradients to the leaf's gradient. Lives as long as the leaf, or a graph
// that reaches it. Several passes may run it at once.
class AccumulateGrad final : public Node {
 public:
  // Runs before all other nodes, so that the memory of gradients is freed early.
  AccumulateGrad(const Tensor& leaf, IntrusivePtr<GradSlot> slot);

  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  const IntrusivePtr<GradSlot>& slot() const { return slot_; }

 private:
  IntrusivePtr<GradSlot> slot_;
};

}  // namespace tensord::autograd
