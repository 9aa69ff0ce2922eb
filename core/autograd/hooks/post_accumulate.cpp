#include "core/autograd/hooks/post_accumulate.h"

#include "core/autograd/accumulate_grad.h"
#include "core/autograd/meta.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"

namespace tensord::autograd {

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, PostAccumulateGradHook hook) {
  check(is_leaf(leaf) && requires_grad(leaf),
        "post accumulate grad hooks cannot be registered on tensors that are not leaves or require no gradient");
  const NodePtr node = gradient_edge(leaf).node;
  // Not the leaf itself, which owns the node.
  const Tensor parameter = detach(leaf);
  ensure_state(parameter).slot = static_cast<const AccumulateGrad&>(*node).slot();
  return node->register_hook([parameter, hook = std::move(hook)](const auto&, const auto&) {
    hook(parameter);
    return std::optional<std::vector<Tensor>>();
  });
}

}  // namespace tensord::autograd
