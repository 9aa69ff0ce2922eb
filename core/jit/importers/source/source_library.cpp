#include "core/jit/importers/source/source_library.h"

#include <algorithm>

#include "core/jit/ir/graph_builder.h"

namespace tensord::jit {
namespace {

// A method that forwards its arguments to a function.
std::unique_ptr<const Function> as_method(const Function& function, const std::string& name, const ops::TypePtr& self) {
  auto method = std::make_unique<Function>();
  method->name = name;
  method->schema = function.schema;
  method->schema.name = name;
  ops::Argument argument;
  argument.name = "self";
  argument.type = self;
  method->schema.arguments.insert(method->schema.arguments.begin(), std::move(argument));
  method->graph = std::make_unique<Graph>();
  GraphBuilder builder(*method->graph);
  std::vector<GraphValue*> arguments;
  for (const ops::Argument& one : method->schema.arguments)
    arguments.push_back(builder.block()->add_input(one.type, one.name));
  Node* call = builder.add(NodeKind::kCallFunction, std::span<GraphValue* const>(arguments).subspan(1));
  call->set_name(function.name);
  for (const ops::Argument& one : method->schema.returns) builder.block()->add_output(call->add_output(one.type));
  return method;
}

}  // namespace

SourceLibrary::SourceLibrary(const std::string& path, std::string text)
    : unit_({SourceFile{path, std::move(text)}}),
      functions_class_(std::make_shared<ops::ClassType>(kFunctionsClass, /*is_module=*/true)) {
  for (const std::string& name : unit_.function_names()) functions_.push_back(name.substr(name.rfind('.') + 1));
  if (unit_.find_type(kFunctionsClass)) functions_.clear();
}

const Function* SourceLibrary::find_method(const std::string& class_name, const std::string& method) const {
  if (functions_.empty() || class_name != kFunctionsClass) return unit_.find_method(class_name, method);
  if (std::ranges::find(functions_, method) == functions_.end()) return nullptr;
  const MutexLock lock(mutex_);
  std::unique_ptr<const Function>& made = methods_[method];
  if (!made) {
    const Function* function = unit_.find_function(std::string(kModule) + "." + method);
    made = as_method(*function, std::string(kFunctionsClass) + "." + method, functions_class_);
  }
  return made.get();
}

ops::TypePtr SourceLibrary::find_type(const std::string& name) const {
  if (!functions_.empty() && name == kFunctionsClass) return functions_class_;
  return unit_.find_type(name);
}

std::vector<std::string> SourceLibrary::method_names(const std::string& class_name) const {
  return !functions_.empty() && class_name == kFunctionsClass ? functions_ : unit_.method_names(class_name);
}

}  // namespace tensord::jit
