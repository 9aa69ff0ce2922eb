// simplify: rewrites that follow from the structure of the graph alone: unpacking of values that were just packed,
// casts without effect, isinstance of a known type, branches with equal results, values that a loop does not change,
// fork followed by wait. It needs no constants (const_prop) and knows no operators (peephole).
#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"

namespace tensord::jit {

using ops::TypeKind;

namespace {

class Simplifier {
 public:
  Simplifier(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {}

  bool run() {
    for_each_node(graph_.block(), [this](Node* node) { visit(node); });
    return changed_;
  }

 private:
  void visit(Node* node) {
    switch (node->kind()) {
      case NodeKind::kTupleIndex:
      case NodeKind::kTupleUnpack: return unpack_tuple(node);
      case NodeKind::kListUnpack: return unpack_list(node);
      case NodeKind::kUncheckedCast:
        if (ops::is_subtype(node->input()->type(), node->output()->type())) replace(node->output(), node->input());
        return;
      case NodeKind::kIsInstance: return is_instance(node);
      case NodeKind::kIf: return branches(node);
      case NodeKind::kLoop: return carried(node);
      case NodeKind::kFork: return fork(node);
      default: return;
    }
  }

  // Removes the uses; dce removes the node.
  void replace(GraphValue* value, GraphValue* by) {
    if (value == by || !value->has_uses() || !context_.take_change()) return;
    value->replace_all_uses_with(by);
    changed_ = true;
  }

  void unpack_tuple(Node* node) {
    const Node* tuple = node->input()->node();
    if (!tuple || tuple->kind() != NodeKind::kTupleConstruct) return;
    for (GraphValue* output : node->outputs()) {
      size_t i = node->kind() == NodeKind::kTupleIndex ? static_cast<size_t>(node->index()) : output->index();
      if (i >= tuple->inputs().size() || !ops::is_subtype(tuple->input(i)->type(), output->type())) continue;
      replace(output, tuple->input(i));
    }
  }

  void unpack_list(Node* node) {
    const Node* list = node->input()->node();
    if (!list || list->kind() != NodeKind::kListConstruct || list->inputs().size() != node->outputs().size()) return;
    if (list_is_written(node->input())) return;
    for (GraphValue* output : node->outputs()) replace(output, list->input(output->index()));
  }

  // Checks only the list itself: a write to its items does not matter, because the memory is the same either way.
  bool list_is_written(const GraphValue* list) const {
    int location = alias_.location(list);
    return location != AliasAnalysis::kNoMemory && (!alias_.writers(location).empty() || alias_.is_external(location));
  }

  void is_instance(Node* node) {
    const ops::TypePtr& type = node->input()->type();
    if (!is_exact(*type)) return;
    bool result = false;
    for (const ops::TypePtr& asked : node->types()) {
      if (ops::is_subtype(type, asked)) {
        result = true;
      } else if (asked->kind() == type->kind() && !type->contained().empty()) {
        return;  // List[int] and List[Any]: left to the run
      }
    }
    if (!node->output()->has_uses() || !context_.take_change()) return;
    node->output()->replace_all_uses_with(GraphBuilder(node).constant(result));
    changed_ = true;
  }

  // Whether a value of this static type always has exactly this type at run time.
  static bool is_exact(const ops::Type& type) {
    switch (type.kind()) {
      case TypeKind::kTensor:
      case TypeKind::kInt:
      case TypeKind::kFloat:
      case TypeKind::kBool:
      case TypeKind::kString:
      case TypeKind::kNone:
      case TypeKind::kDevice:
      case TypeKind::kList:
      case TypeKind::kDict:
      case TypeKind::kClass:
      case TypeKind::kEnum: return true;
      default: return false;
    }
  }

  void branches(Node* node) {
    for (GraphValue* output : node->outputs()) {
      GraphValue* first = node->blocks()[0]->outputs()[output->index()];
      GraphValue* second = node->blocks()[1]->outputs()[output->index()];
      // A value that is the same in both branches must come from outside both.
      if (first == second && ops::is_subtype(first->type(), output->type())) replace(output, first);
      if (first != second && are_same(first->constant(), second->constant())) agree(node, output, constant_of(first));
    }
  }

  static bool are_same(const ops::Value* a, const ops::Value* b) {
    return a && b && (a->is_number() || a->is_string() || a->is_none()) && same_constant(*a, *b);
  }

  // Both branches return this constant.
  void agree(Node* node, GraphValue* output, const ops::Value& value) {
    if (!output->has_uses() || !context_.take_change()) return;
    output->replace_all_uses_with(GraphBuilder(node).constant(value));
    changed_ = true;
  }

  void carried(Node* node) {
    Block* body = node->blocks()[0];
    for (GraphValue* output : node->outputs()) {
      GraphValue* inner = body->inputs()[output->index() + 1];
      GraphValue* initial = node->input(output->index() + 2);
      if (body->outputs()[output->index() + 1] != inner) continue;
      if (ops::is_subtype(initial->type(), inner->type())) replace(inner, initial);
      if (ops::is_subtype(initial->type(), output->type())) replace(output, initial);
    }
  }

  // A fork runs immediately, so a fork whose future is only waited for is a plain block.
  void fork(Node* node) {
    Block* body = node->blocks()[0];
    if (body->outputs().size() != 1) return;
    bool is_awaited = false;
    for (const GraphValue::Use& use : node->output()->uses()) {
      if (use.block || use.node->kind() != NodeKind::kWait) return;
      is_awaited |= use.node->has_output_uses();
    }
    if (!is_awaited || !context_.take_change()) return;
    changed_ = true;
    for (GraphValue* input : body->inputs()) input->replace_all_uses_with(node->input(input->index()));
    GraphValue* result = body->outputs()[0];
    while (body->first()) body->first()->move_before(node);
    // The empty fork stays until dce removes it.
    for (const GraphValue::Use& use : node->output()->uses()) use.node->output()->replace_all_uses_with(result);
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  bool changed_ = false;
};

}  // namespace

bool simplify_structure(Graph& graph, PassContext& context) { return Simplifier(graph, context).run(); }

}  // namespace tensord::jit
