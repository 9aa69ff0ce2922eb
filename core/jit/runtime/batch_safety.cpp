#include "core/jit/runtime/batch_safety.h"

#include <algorithm>
#include <set>

#include "core/jit/ir/function.h"
#include "core/ops/samples.h"

namespace tensord::jit {
namespace {

using ops::Value;

class Search {
 public:
  explicit Search(const FunctionLibrary& functions) : functions_(functions) {}

  std::string found;
  bool has_unknown_calls = false;

  void block(const Block* block) {
    for (const Node* node = block->first(); node && found.empty(); node = node->next()) {
      visit(*node);
      for (const Block* inner : node->blocks()) this->block(inner);
    }
  }

 private:
  void visit(const Node& node) {
    switch (node.kind()) {
      case NodeKind::kOp:
        if (ops::mixes_samples(*node.op())) found = node.op()->schema.full_name();
        return;
      case NodeKind::kCallMethod: return call(functions_.find_method(node.input()->type()->name(), node.name()));
      case NodeKind::kCallFunction: return call(functions_.find_function(node.name()));
      case NodeKind::kCallValue: has_unknown_calls = true; return;
      default: return;
    }
  }

  void call(const Function* function) {
    if (!function) {
      has_unknown_calls = true;
    } else if (seen_.insert(function).second) {
      block(function->graph->block());
    }
  }

  const FunctionLibrary& functions_;
  std::set<const Function*> seen_;
};

// The class of an object of the engine among what an object holds; empty: none.
std::string find_packed(const Value& value, std::set<const void*>& seen) {
  if (value.is_opaque()) return value.to_opaque()->class_name();
  if (!value.is_object() && !value.is_list() && !value.is_dict() && !value.is_tuple()) return {};
  if (!seen.insert(value.identity()).second) return {};
  std::string found;
  const auto look = [&](const Value& item) {
    if (found.empty()) found = find_packed(item, seen);
  };
  if (value.is_object()) std::ranges::for_each(value.to_object()->slots, look);
  if (value.is_list()) std::ranges::for_each(value.to_list()->items, look);
  if (value.is_tuple()) std::ranges::for_each(value.to_tuple()->items, look);
  if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) look(item);
  }
  return found;
}

}  // namespace

std::string find_mixing_operator(const Module& module, const Method& method) {
  Search search(module.functions());
  search.block(method.graph().block());
  if (!search.found.empty() || !search.has_unknown_calls) return search.found;
  std::set<const void*> seen;
  return find_packed(Value(module.object()), seen);
}

}  // namespace tensord::jit
