#include "core/jit/runtime/operator_override.h"

#include <unordered_set>

#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::jit {

void override_operator(Block* block, const ops::Op& stand_in) {
  for (Node* node = block->first(); node != nullptr;) {
    Node* const next = node->next();
    for (Block* inner : node->blocks()) override_operator(inner, stand_in);
    if (node->is_op(stand_in.schema.full_name())) {
      Node* const other = block->graph()->create(stand_in, node->inputs());
      other->set_location(node->location());
      other->insert_before(node);
      for (GraphValue* output : node->outputs()) output->replace_all_uses_with(other->output(output->index()));
      node->destroy();
    }
    node = next;
  }
}

std::shared_ptr<const ops::Op> requires_grad_of(const std::vector<Tensor>& parameters) {
  const ops::Op& own = ops::get_op("prim::requires_grad");
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& tensor : parameters) known.insert(tensor.impl());
  return ops::with_function(
      own, [&own, known = std::move(known)](std::span<const ops::Value> v, std::vector<ops::Value>& returns) {
        if (v[0].is_strided() && known.contains(v[0].to_tensor().impl())) {
          returns.emplace_back(true);
        } else {
          ops::run(own, v, returns);
        }
      });
}

}  // namespace tensord::jit
