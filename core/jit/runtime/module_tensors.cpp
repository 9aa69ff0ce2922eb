#include "core/jit/runtime/module_tensors.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/dotted_name.h"
#include "core/base/error.h"

namespace tensord::jit {

using ops::Value;

namespace {

// Maximum nesting of containers; archives have a separate limit.
constexpr int kMaxModuleDepth = 200;

class Collector {
 public:
  void visit(const Value& value, const std::string& name, int depth) {
    if (depth > kMaxModuleDepth) return;
    if (value.is_strided()) {
      tensors.emplace_back(name, value.to_tensor());
    } else if (value.is_object()) {
      visit_object(*value.to_object(), name, depth);
    } else if (value.is_list()) {
      visit_items(value.to_list()->items, name, depth);
    } else if (value.is_tuple()) {
      visit_items(value.to_tuple()->items, name, depth);
    } else if (value.is_dict()) {
      for (const auto& [key, item] : value.to_dict()->items()) {
        visit(item,
              join(name, key.is_string() ? key.to_string()
                         : key.is_int()  ? std::to_string(key.to_int())
                                         : "?"),
              depth + 1);
      }
    }
  }
  std::vector<std::pair<std::string, Tensor>> tensors;

 private:
  static std::string join(const std::string& name, const std::string& member) {
    return name.empty() ? member : name + "." + member;
  }
  void visit_object(const ops::Object& object, const std::string& name, int depth) {
    if (!visited_.insert(&object).second) return;
    const auto& attributes = object.type->attributes();
    for (size_t i = 0; i < object.slots.size(); ++i) {
      visit(object.slots[i], join(name, attributes[i].name), depth + 1);
    }
  }
  void visit_items(const std::vector<Value>& items, const std::string& name, int depth) {
    for (size_t i = 0; i < items.size(); ++i) visit(items[i], join(name, std::to_string(i)), depth + 1);
  }
  std::unordered_set<const ops::Object*> visited_;
};

}  // namespace

namespace {

// Submodules with their names. Uses an explicit stack, because objects in an archive may be nested deeply.
std::vector<std::pair<std::string, ops::ObjectPtr>> named_modules(const ops::ObjectPtr& root) {
  std::vector<std::pair<std::string, ops::ObjectPtr>> modules, stack{{"", root}};
  std::unordered_set<const ops::Object*> visited;
  while (!stack.empty()) {
    auto [name, object] = std::move(stack.back());
    stack.pop_back();
    if (!visited.insert(object.get()).second) continue;
    const auto& attributes = object->type->attributes();
    for (size_t i = object->slots.size(); i > 0; --i) {
      const Value& value = object->slots[i - 1];
      if (!value.is_object() || !value.to_object()->type->is_module()) continue;
      stack.emplace_back(name + attributes[i - 1].name + ".", value.to_object());
    }
    modules.emplace_back(std::move(name), std::move(object));
  }
  return modules;
}

}  // namespace

std::vector<ops::ObjectPtr> collect_modules(const ops::ObjectPtr& object) {
  std::vector<ops::ObjectPtr> modules;
  for (auto& [name, module] : named_modules(object)) modules.push_back(std::move(module));
  return modules;
}

std::vector<std::pair<std::string, ops::ObjectPtr>> collect_named_modules(const ops::ObjectPtr& object) {
  auto modules = named_modules(object);
  for (auto& [name, module] : modules) {
    if (!name.empty()) name.pop_back();
  }
  return modules;
}

ops::ObjectPtr find_module(const ops::ObjectPtr& object, const std::string& name) {
  ops::ObjectPtr at = object;
  for (const std::string& part : dotted_parts(name)) {
    const int slot = at->type->find_attribute(part);
    const bool is_there = slot >= 0 && static_cast<size_t>(slot) < at->slots.size() &&
                          at->slots[static_cast<size_t>(slot)].is_object() &&
                          at->slots[static_cast<size_t>(slot)].to_object()->type->is_module();
    if (!is_there) fail(ErrorCode::kNotFound, object->type->name(), ": there is no module '", name, "'");
    at = at->slots[static_cast<size_t>(slot)].to_object();
  }
  return at;
}

std::vector<std::pair<std::string, Tensor>> collect_members(const ops::ObjectPtr& object,
                                                            std::vector<std::string> ops::ClassType::*names) {
  std::vector<std::pair<std::string, Tensor>> members;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [prefix, module] : named_modules(object)) {
    for (const std::string& name : (*module->type).*names) {
      const int slot = module->type->find_attribute(name);
      if (static_cast<size_t>(slot) >= module->slots.size()) continue;  // -1: does not exist
      const Value& value = module->slots[static_cast<size_t>(slot)];
      if (value.is_strided() && seen.insert(value.to_tensor().impl()).second) {
        members.emplace_back(prefix + name, value.to_tensor());
      }
    }
  }
  return members;
}

std::vector<std::pair<std::string, Value*>> collect_member_slots(const ops::ObjectPtr& object) {
  std::vector<std::pair<std::string, Value*>> members;
  for (const auto& [prefix, module] : named_modules(object)) {
    for (const auto* names : {&module->type->parameter_names, &module->type->buffer_names}) {
      for (const std::string& name : *names) {
        const int slot = module->type->find_attribute(name);
        if (static_cast<size_t>(slot) >= module->slots.size()) continue;  // -1: does not exist
        Value& value = module->slots[static_cast<size_t>(slot)];
        if (value.is_strided()) members.emplace_back(prefix + name, &value);
      }
    }
  }
  return members;
}

std::vector<std::pair<std::string, Tensor>> collect_tensors(const ops::ObjectPtr& object) {
  Collector collector;
  collector.visit(Value(object), {}, 0);
  return std::move(collector.tensors);
}

size_t storage_bytes(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::unordered_set<const StorageImpl*> seen;
  size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_meta() && seen.insert(tensor.storage().get()).second) bytes += tensor.storage()->size_bytes();
  }
  return bytes;
}

}  // namespace tensord::jit
