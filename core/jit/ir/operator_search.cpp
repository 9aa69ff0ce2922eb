#include "core/jit/ir/operator_search.h"

#include <algorithm>

namespace tensord::jit {

const ops::Op* OperatorSearch::find(const Block* block) {
  search(block);
  while (!pending_.empty() && !found_) {
    const Function* function = pending_.back();
    pending_.pop_back();
    search(function->graph->block());
  }
  return found_;
}

void OperatorSearch::search(const Block* block) {
  for (const Node* node = block->first(); node && !found_; node = node->next()) {
    visit(*node);
    for (const Block* inner : node->blocks()) search(inner);
  }
}

void OperatorSearch::visit(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kOp:
      if (is_wanted_(*node.op())) found_ = node.op();
      return;
    case NodeKind::kCallMethod: {  // a method of an interface: the object is known only at run time
      const ops::Type& type = *node.input()->type();
      return call(type.kind() == ops::TypeKind::kClass ? functions_.find_method(type.name(), node.name()) : nullptr);
    }
    case NodeKind::kCallFunction: return call(functions_.find_function(node.name()));
    case NodeKind::kCallValue: has_unknown_calls_ = true; return;
    default: return;
  }
}

void OperatorSearch::call(const Function* function) {
  if (!function) {
    has_unknown_calls_ = true;
  } else if (seen_.insert(function).second) {
    pending_.push_back(function);
  }
}

bool is_call(NodeKind kind) {
  return kind == NodeKind::kCallMethod || kind == NodeKind::kCallFunction || kind == NodeKind::kCallValue;
}

bool has_calls(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    if (is_call(node->kind())) return true;
    if (std::ranges::any_of(node->blocks(), [](const Block* inner) { return has_calls(*inner); })) return true;
  }
  return false;
}

bool changes_shape(const ops::Op& op) {
  return op.kind == ops::OpKind::kView && std::ranges::any_of(op.schema.arguments, [](const ops::Argument& argument) {
           return argument.alias.is_write;
         });
}

void check_keeps_shapes(const Graph& graph, const FunctionLibrary& functions) {
  const ops::Op* op = OperatorSearch(functions, changes_shape).find(graph.block());
  if (!op) return;
  fail(ErrorCode::kUnimplemented, op->schema.full_name(),
       ": not supported in a function that is called through an interface or a value; use the form that gives a view");
}

}  // namespace tensord::jit
