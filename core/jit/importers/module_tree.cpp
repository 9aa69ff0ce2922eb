#include "core/jit/importers/module_tree.h"

#include <algorithm>

#include "core/base/dotted_name.h"
#include "core/base/error.h"

namespace tensord::jit {
namespace {

// The tree is traversed recursively.
constexpr auto kMaxDepth = 100;

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

ModuleTree::ModuleTree(std::string root) : root_(std::make_unique<Module>()) {
  root_->type = std::make_shared<ops::ClassType>(std::move(root), /*is_module=*/true);
}

ModuleTree::Module& ModuleTree::module_at(const std::string& path) {
  if (path.empty()) return *root_;
  const size_t dot = path.rfind('.');
  Module& parent = module_at(dot == std::string::npos ? std::string() : path.substr(0, dot));
  const std::string name = last_part(path);
  if (name.empty()) fail(ErrorCode::kDataLoss, "module '", path, "': a part of its name is empty");
  std::unique_ptr<Module>& module = parent.modules[name];
  if (!module) {
    if (parent.tensors.contains(name)) fail(ErrorCode::kDataLoss, "'", path, "' is a tensor and a module");
    module = std::make_unique<Module>();
    module->type = std::make_shared<ops::ClassType>(parent.type->name() + "." + name, /*is_module=*/true);
    parent.type->add_attribute(name, module->type);
  }
  return *module;
}

void ModuleTree::add(const std::string& name, const Tensor& tensor, Kind kind) {
  if (std::ranges::count(name, '.') > kMaxDepth) fail(ErrorCode::kDataLoss, "'", name, "' is nested too deep");
  const size_t dot = name.rfind('.');
  Module& module = module_at(dot == std::string::npos ? std::string() : name.substr(0, dot));
  const std::string attribute = last_part(name);
  if (attribute.empty()) fail(ErrorCode::kDataLoss, "tensor '", name, "': the last part of its name is empty");
  if (module.modules.contains(attribute) || !module.tensors.emplace(attribute, tensor).second) {
    fail(ErrorCode::kDataLoss, "'", name, "' appears twice");
  }
  module.type->add_attribute(attribute, ops::tensor_type());
  if (kind == Kind::kParameter) module.type->parameter_names.push_back(attribute);
  if (kind == Kind::kBuffer) module.type->buffer_names.push_back(attribute);
  places_[name] = &module;
}

ops::ObjectPtr ModuleTree::make_object(const Module& module, GraphLibrary& library) {
  library.add_type(module.type);
  auto object = make_intrusive<ops::Object>(module.type);
  for (const auto& [name, below] : module.modules) object->attribute(name) = make_object(*below, library);
  for (const auto& [name, tensor] : module.tensors) object->attribute(name) = tensor;
  return object;
}

ops::ObjectPtr ModuleTree::finish(GraphLibrary& library) { return make_object(*root_, library); }

GraphValue* ModuleTree::get(Block* block, GraphValue* self, const std::string& name) const {
  GraphValue* value = self;
  for (const std::string& part : dotted_parts(name)) {
    const auto& owner = static_cast<const ops::ClassType&>(*value->type());
    Node* node = block->graph()->create(NodeKind::kGetAttr, std::span<GraphValue* const>(&value, 1));
    node->set_name(part);
    node->append_to(block);
    value = node->add_output(owner.attributes()[static_cast<size_t>(owner.find_attribute(part))].type);
  }
  return value;
}

Tensor tensor_at(const ops::ObjectPtr& object, const std::string& name) {
  ops::Value value = object;
  for (const std::string& part : dotted_parts(name)) value = value.to_object()->attribute(part);
  return value.to_tensor();
}

}  // namespace tensord::jit
