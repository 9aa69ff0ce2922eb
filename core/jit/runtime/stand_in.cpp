#include "core/jit/runtime/stand_in.h"

namespace tensord::jit {

void use_stand_in(Block* block, const ops::Op& stand_in) {
  for (Node* node = block->first(); node != nullptr;) {
    Node* const next = node->next();
    for (Block* inner : node->blocks()) use_stand_in(inner, stand_in);
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

}  // namespace tensord::jit
