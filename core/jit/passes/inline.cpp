// inline: replaces calls of functions and methods by the bodies of the callees if the callee is known: by qualified
// name, or by the class of the object (its static type, or the object itself once freeze made it a constant). Recursive
// calls, and calls through interfaces that are not frozen, stay for the interpreter.
#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

using ops::TypeKind;

namespace {

// A graph above this size keeps its calls, because untrusted scripts must not make loading arbitrarily expensive.
constexpr size_t kMaxInlinedNodes = 200'000;
constexpr int kMaxDepth = 200;

class Inliner {
 public:
  Inliner(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    block(graph_.block());
    return changed_;
  }

 private:
  // The functions that a node was inlined from, innermost first; they limit recursion.
  struct Frame {
    const Function* function;
    const Frame* caller;
    int depth;
  };

  static bool is_running(const Frame* frame, const Function* function) {
    for (; frame; frame = frame->caller) {
      if (frame->function == function) return true;
    }
    return false;
  }

  const Function* callee(const Node& node) const {
    if (node.kind() == NodeKind::kCallFunction) return context_.functions->find_function(node.name());
    if (node.kind() != NodeKind::kCallMethod) return nullptr;
    if (const ops::Value* object = node.input()->constant(); object && object->is_object()) {
      return context_.functions->find_method(object->to_object()->type->name(), node.name());
    }
    const ops::Type& type = *node.input()->type();
    return type.kind() == TypeKind::kClass ? context_.functions->find_method(type.name(), node.name()) : nullptr;
  }

  void block(Block* block) {
    for (Node* node = block->first(); node;) {
      Node* next = node->next();
      visit(node, nullptr);
      node = next;
    }
  }

  void visit(Node* node, const Frame* caller) {
    for (Block* inner : node->blocks()) {
      for (Node* child = inner->first(); child;) {
        Node* next = child->next();
        visit(child, caller);
        child = next;
      }
    }
    const Function* function = callee(*node);
    if (!function || !function->graph || is_running(caller, function)) return;
    if (caller && caller->depth >= kMaxDepth) return;
    if (graph_.node_count() + function->graph->node_count() > kMaxInlinedNodes) return;
    if (node->inputs().size() != function->graph->inputs().size()) return;
    if (!context_.take_change()) return;
    expand(node, function, caller);
  }

  // A line of PyTorch's own modules tells an author little: errors of their operators name the line that calls them.
  static bool is_of_pytorch(const SourceLocation& at) {
    return at.file_name && (at.file_name->starts_with("torch/") || at.file_name->starts_with("code/__torch__/torch/"));
  }
  static void locate(Node* copy, const SourceLocation& call) {
    if (is_of_pytorch(copy->location())) copy->set_location(call);
    for (Block* inner : copy->blocks()) {
      for (Node* child = inner->first(); child; child = child->next()) locate(child, call);
    }
  }

  void expand(Node* node, const Function* function, const Frame* caller) {
    changed_ = true;
    const SourceLocation call = node->location();
    const bool locates = call.line > 0 && !is_of_pytorch(call);
    Node* before = node->previous();
    std::vector<GraphValue*> results =
        graph_.inline_block(*function->graph->block(), node->inputs(), node->block(), node);
    check_internal(results.size() == node->outputs().size(), function->name, " gives ", results.size(), " values");
    for (size_t i = 0; i < results.size(); ++i) {
      // A callee that returns a subtype also satisfies the caller's types.
      if (results[i]->name().empty()) results[i]->set_name(node->output(i)->name());
      node->output(i)->replace_all_uses_with(results[i]);
    }
    Frame frame{function, caller, caller ? caller->depth + 1 : 1};
    for (Node* copy = before ? before->next() : node->block()->first(); copy != node;) {
      Node* next = copy->next();
      if (locates) locate(copy, call);
      visit(copy, &frame);
      copy = next;
    }
    node->destroy();
  }

  Graph& graph_;
  PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool inline_calls(Graph& graph, PassContext& context) { return context.functions && Inliner(graph, context).run(); }

}  // namespace tensord::jit
