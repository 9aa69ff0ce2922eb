#include "core/jit/runtime/step/module_step.h"

#include <unordered_set>

#include "core/base/error.h"

namespace tensord::jit {

using ops::Value;

namespace {

// An effect of the block that a recording of operators does not capture; empty: none.
std::string find_effect(const Block* block) {
  for (const Node* node = block->first(); node; node = node->next()) {
    switch (node->kind()) {
      case NodeKind::kSetAttr: return concat("the code sets the attribute '", node->name(), "'");
      case NodeKind::kCallMethod:
      case NodeKind::kCallFunction: return concat("the call of '", node->name(), "' is not known before it runs");
      case NodeKind::kCallValue: return "the code calls a function that is a value";
      default: break;
    }
    for (const Block* inner : node->blocks()) {
      if (std::string effect = find_effect(inner); !effect.empty()) return effect;
    }
  }
  return {};
}

// The lists and dicts reachable from an object's attributes.
void collect(const Value& root, std::set<const void*>& containers) {
  std::unordered_set<const void*> seen;
  std::vector<Value> stack{root};
  while (!stack.empty()) {
    const Value value = std::move(stack.back());
    stack.pop_back();
    const bool is_container = value.is_list() || value.is_dict();
    if (!is_container && !value.is_object() && !value.is_tuple()) continue;
    if (!seen.insert(value.identity()).second) continue;
    if (is_container) containers.insert(value.identity());
    if (value.is_list()) stack.insert(stack.end(), value.to_list()->items.begin(), value.to_list()->items.end());
    if (value.is_tuple()) stack.insert(stack.end(), value.to_tuple()->items.begin(), value.to_tuple()->items.end());
    if (value.is_object()) stack.insert(stack.end(), value.to_object()->slots.begin(), value.to_object()->slots.end());
    if (!value.is_dict()) continue;
    for (const auto& [key, item] : value.to_dict()->items()) stack.push_back(item);
  }
}

}  // namespace

void record_module_call(StepRecording& recording, const Module& module, const std::string& method) {
  if (!module.is_for_training()) return recording.refuse("a model runs that was not loaded for training");
  if (module.has_hooks()) return recording.refuse("modules have hooks");
  const std::string effect = find_effect(module.method(method).graph().block());
  if (!effect.empty()) return recording.refuse(concat(method, ": ", effect));
  std::set<const void*> lasting;
  collect(Value(module.object()), lasting);
  recording.add_lasting(lasting);
}

std::unique_ptr<PlannedStep> make_planned_step(const Module& module, std::span<const std::string> methods,
                                               PlannedStepOptions options) {
  check(module.is_for_training(), "planned steps: the module was not loaded for training");
  std::vector<Tensor> parameters, others;
  std::unordered_set<const TensorImpl*> known;
  for (const auto& [name, tensor] : module.named_parameters()) {
    if (known.insert(tensor.impl()).second) parameters.push_back(tensor);
  }
  for (const auto& [name, tensor] : module.named_tensors()) {
    if (known.insert(tensor.impl()).second) others.push_back(tensor);
  }
  for (const std::string& name : methods) {
    const std::string effect = find_effect(module.method(name).graph().block());
    if (options.unsupported_reason.empty() && !effect.empty()) options.unsupported_reason = concat(name, ": ", effect);
  }
  options.find_unsupported_reason = [&module] { return std::string(module.has_hooks() ? "modules have hooks" : ""); };
  collect(Value(module.object()), options.lasting);
  return std::make_unique<PlannedStep>(std::move(parameters), std::move(others), std::move(options));
}

}  // namespace tensord::jit
