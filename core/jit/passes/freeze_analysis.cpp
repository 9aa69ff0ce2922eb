#include "core/jit/passes/freeze_analysis.h"

#include "core/jit/ir/alias.h"
#include "core/jit/ir/operator_search.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/attribute_paths.h"
#include "core/jit/passes/pipeline.h"

namespace tensord::jit {

using ops::Value;

namespace {

// Whether a value can be folded into branches. Memory must wait until the written attributes are known.
bool is_plain(const Value& value) {
  return value.is_none() || value.is_number() || value.is_string() || value.is_device() || value.is_enum() ||
         value.is_object();
}

// The limit for all methods together after inlining. Above it, every attribute counts as changing.
constexpr size_t kMaxAnalyzedNodes = 1'000'000;

class ChangeFinder {
 public:
  ChangeFinder(const PassContext& context, std::span<const Graph* const> methods, const std::set<std::string>& changing,
               const PassOptions& options)
      : self_(context.self), context_(context), options_(options), changing_(changing), paths_(self_) {
    for (const Graph* method : methods) graphs_.push_back(method->clone());
    for (const auto& [object, path] : paths_.all()) {
      const auto& attributes = object->type->attributes();
      for (size_t i = 0; i < object->slots.size(); ++i) {
        all_.push_back({object, &object->slots[i], attributes[i].name, paths_.path_of(object, attributes[i].name)});
      }
    }
  }

  std::set<std::string> run() {
    if (!open_calls()) return all_paths();
    // Folding removes assignments, which makes more attributes constant, which allows more folding.
    std::set<std::string> assigned = find_assigned();
    constexpr int kMaxRounds = 5;
    for (int round = 0; round < kMaxRounds; ++round) {
      fold(assigned);
      std::set<std::string> fewer = find_assigned();
      if (fewer.size() == assigned.size()) break;
      assigned = std::move(fewer);
    }
    for (const auto& graph : graphs_) add_written(*graph, assigned);
    add_sharing(assigned);
    return assigned;
  }

 private:
  struct Slot {
    const ops::Object* object;
    const Value* value;
    std::string name, path;
  };

  // Inlines all calls, so that every assignment is visible. Calls through interfaces resolve once their objects are
  // known. Returns false if a call stays unknown or the code is too large.
  bool open_calls() {
    std::set<std::string> changing;
    PassContext context = make_context(changing);
    std::set<std::string> frozen;
    constexpr int kMaxRounds = 10;
    for (int round = 0; round < kMaxRounds; ++round) {
      size_t node_count = 0;
      for (auto& graph : graphs_) {
        run_pipeline(graph, context, options_, inlining_pipeline());
        node_count += graph->node_count();
        if (node_count > kMaxAnalyzedNodes) return false;
      }
      std::set<std::string> assigned = find_assigned();
      // Inlined code may assign an object that was treated as constant.
      for (const std::string& path : assigned) {
        if (frozen.contains(path)) return false;
      }
      if (!has_calls()) return true;
      changing = assigned;
      for (const Slot& slot : all_) {
        if (!slot.value->is_object())
          changing.insert(slot.path);
        else if (!assigned.contains(slot.path))
          frozen.insert(slot.path);
      }
      bool changed = false;
      for (auto& graph : graphs_) changed |= run_pipeline(graph, context, options_, freezing_pipeline());
      if (!changed && round > 0) break;
    }
    return !has_calls();
  }

  PassContext make_context(const std::set<std::string>& changing) const {
    PassContext context;
    context.functions = context_.functions;
    context.self = self_;
    context.failures = context_.failures;
    context.changing_attributes = &changing;
    return context;
  }

  std::set<std::string> all_paths() const {
    std::set<std::string> out;
    for (const Slot& slot : all_) out.insert(slot.path);
    return out;
  }

  bool has_calls() const {
    for (const auto& graph : graphs_) {
      if (jit::has_calls(*graph->block())) return true;
    }
    return false;
  }

  // The attributes that a SetAttr assigns. An attribute of an object with an unknown path counts by its name for all
  // objects.
  std::set<std::string> find_assigned() const {
    std::set<std::string> out = changing_, names;
    for (const auto& graph : graphs_) collect_assigned(*graph, *graph->block(), out, names);
    for (const Slot& slot : all_) {
      if (names.contains(slot.name)) out.insert(slot.path);
    }
    return out;
  }

  void collect_assigned(const Graph& graph, const Block& block, std::set<std::string>& out,
                        std::set<std::string>& names) const {
    for_each_node(block, [&](const Node& node) {
      if (node.kind() != NodeKind::kSetAttr) return;
      std::string path = assigned_path(graph, node);
      if (path.empty())
        names.insert(node.name());
      else
        out.insert(path);
    });
  }

  std::string assigned_path(const Graph& graph, const Node& node) const {
    if (node.input() == graph.inputs()[0]) return paths_.path_of(self_.get(), node.name());
    const Value* object = node.input()->constant();
    if (!object || !object->is_object()) return {};
    return paths_.path_of(object->to_object().get(), node.name());
  }

  void fold(const std::set<std::string>& assigned) {
    std::set<std::string> changing = assigned;
    for (const Slot& slot : all_) {
      if (!is_plain(*slot.value)) changing.insert(slot.path);
    }
    PassContext context = make_context(changing);
    for (auto& graph : graphs_) run_pipeline(graph, context, options_, folding_pipeline());
  }

  void add_written(const Graph& graph, std::set<std::string>& out) const {
    AliasAnalysis alias(graph, self_);
    bool writes_unknown = !alias.writers(alias.wildcard()).empty() && touches_unknown_memory(alias);
    for (const Slot& slot : all_) {
      if (is_plain(*slot.value) && !slot.value->is_object()) {
        if (writes_unknown) out.insert(slot.path);
        continue;
      }
      int location = alias.location_of_memory(*slot.value);
      if (location < 0 || slot.value->is_object()) continue;
      for (int held : alias.reachable(location)) {
        if (!alias.writers(held).empty()) out.insert(slot.path);
      }
    }
    if (writes_unknown) {
      for (const Slot& slot : all_) out.insert(slot.path);
    }
  }

  // Inputs of the request are wildcards too, but writing only them changes no attribute. Once unknown code or objects
  // occur, every attribute is part of the wildcard.
  bool touches_unknown_memory(const AliasAnalysis& alias) const {
    return alias.location_of_memory(Value(self_)) == alias.wildcard();
  }

  // Adds attributes that share memory with a written one: tied weights, a list in two attributes.
  void add_sharing(std::set<std::string>& out) const {
    std::set<const void*> written;
    for (const Slot& slot : all_) {
      if (out.contains(slot.path)) memory_of(*slot.value, written);
    }
    for (const Slot& slot : all_) {
      std::set<const void*> own;
      memory_of(*slot.value, own);
      for (const void* memory : own) {
        if (written.contains(memory)) out.insert(slot.path);
      }
    }
  }

  // The memory of all tensors and containers reachable from the value. An object's attributes have slots of their own,
  // except if the object is in a container.
  static void memory_of(const Value& root, std::set<const void*>& out) {
    if (root.is_object()) return;
    std::vector<const Value*> stack{&root};
    const auto follow = [&](const std::vector<Value>& items) {
      for (const Value& item : items) stack.push_back(&item);
    };
    while (!stack.empty()) {
      const Value& value = *stack.back();
      stack.pop_back();
      if (value.is_strided()) {
        if (value.to_tensor().storage()) out.insert(value.to_tensor().storage().get());
        continue;
      }
      if (value.is_tensor()) {  // of another layout
        out.insert(value.to_tensor().impl());
        continue;
      }
      const bool leads_on = value.is_list() || value.is_dict() || value.is_tuple() || value.is_object();
      if (!leads_on || !out.insert(value.identity()).second) continue;
      if (value.is_list()) follow(value.to_list()->items);
      if (value.is_tuple()) follow(value.to_tuple()->items);
      if (value.is_object()) follow(value.to_object()->slots);
      if (!value.is_dict()) continue;
      for (const auto& entry : value.to_dict()->items()) stack.push_back(&entry.second);
    }
  }

  ops::ObjectPtr self_;
  const PassContext& context_;
  const PassOptions& options_;
  const std::set<std::string>& changing_;
  AttributePaths paths_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<Slot> all_;
};

}  // namespace

std::set<std::string> find_changing_attributes(const PassContext& context, std::span<const Graph* const> methods,
                                               const std::set<std::string>& changing, const PassOptions& options) {
  if (!context.self) return {};
  return ChangeFinder(context, methods, changing, options).run();
}

std::set<std::string> trained_attributes(const ops::ObjectPtr& self) {
  std::set<std::string> paths;
  const AttributePaths all(self);
  for (const auto& [owner, path] : all.all()) {
    const auto& attributes = owner->type->attributes();
    for (size_t i = 0; i < owner->slots.size(); ++i) {
      const Value& value = owner->slots[i];
      if (!is_plain(value) || attributes[i].name == "training") paths.insert(all.path_of(owner, attributes[i].name));
    }
  }
  return paths;
}

}  // namespace tensord::jit
