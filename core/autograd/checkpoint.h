#pragma once

#include <functional>
#include <memory>

#include "core/autograd/hooks/saved_hooks.h"

// Activation checkpointing, with the meaning of torch.utils.checkpoint (use_reentrant=False).
namespace tensord::autograd {

// As long as it lives, what the calling thread records keeps none of its tensors for the backward pass. The first node
// that needs one calls `again`, which must compute the same once more, from the same values; it runs on a thread of the
// backward pass, with the random numbers (unless keeps_random_numbers is false), autocast and numerics of this scope.
// The tensors that it saves are given out, each freed after its use.
//
// `again` lives as long as the graph. It must not refer to the results, which own the graph. Outside of grad mode the
// scope does nothing. Scopes nest; the inner one computes its own part again. A backward pass throws
// Error{kFailedPrecondition} if `again` saves other tensors, or if one of them was written since.
class CheckpointScope {
 public:
  explicit CheckpointScope(std::function<void()> again, bool keeps_random_numbers = true);

 private:
  std::unique_ptr<SavedTensorHooksScope> hooks_;
};

}  // namespace tensord::autograd
