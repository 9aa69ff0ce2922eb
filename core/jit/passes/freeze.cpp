// freeze: replaces attributes of the module (graph input 0) that no method changes by constants: submodules,
// parameters, numbers, `training`. freeze_analysis finds the changing attributes; PassContext has them. const_prop
// folds what became constant, and inline inlines the calls on submodules.
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/attribute_paths.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

using ops::Value;

namespace {

class Freezer {
 public:
  Freezer(Graph& graph, PassContext& context) : graph_(graph), context_(context), paths_(context.self) {}

  bool run() {
    for_each_node(graph_.block(), [this](Node* node) {
      if (node->kind() == NodeKind::kGetAttr) attribute(node);
    });
    return changed_;
  }

 private:
  const ops::Object* known_object(const GraphValue* value) const {
    if (value == graph_.inputs()[0]) return context_.self.get();
    const Value* constant = value->constant();
    return constant && constant->is_object() ? constant->to_object().get() : nullptr;
  }

  void attribute(Node* node) {
    const ops::Object* object = known_object(node->input());
    if (!object) return;
    int slot = object->type->find_attribute(node->name());
    if (static_cast<size_t>(slot) >= object->slots.size()) return;  // -1: the class has no such attribute
    std::string path = paths_.path_of(object, node->name());
    if (path.empty() || context_.changing_attributes->contains(path)) return;
    if (!context_.take_change()) return;
    const Value& value = object->slots[static_cast<size_t>(slot)];
    GraphValue* constant = GraphBuilder(node).constant(value, constant_type(value, node->output()->type()));
    GraphBuilder::replace_value(constant, node);
    node->destroy();
    changed_ = true;
  }

  // The type of the value if it is more precise than the declared one: a Tensor in an Optional[Tensor], the class
  // behind an interface. Containers keep the declared type.
  static ops::TypePtr constant_type(const Value& value, const ops::TypePtr& declared) {
    if (value.is_list() || value.is_dict() || value.is_tuple() || value.is_function()) return declared;
    ops::TypePtr own = ops::type_of(value);
    return ops::is_subtype(own, declared) ? own : declared;
  }

  Graph& graph_;
  PassContext& context_;
  AttributePaths paths_;
  bool changed_ = false;
};

}  // namespace

bool freeze_attributes(Graph& graph, PassContext& context) {
  if (!context.self || !context.changing_attributes || graph.inputs().empty()) return false;
  return Freezer(graph, context).run();
}

}  // namespace tensord::jit
