#include "core/jit/importers/graph_library.h"

namespace tensord::jit {

void GraphLibrary::add_method(const std::string& class_name, const std::string& method,
                              std::unique_ptr<Function> function) {
  methods_[class_name].push_back(method);
  functions_[class_name + "." + method] = std::move(function);
}

const Function* GraphLibrary::find_function(const std::string& qualified_name) const {
  const auto found = functions_.find(qualified_name);
  return found == functions_.end() ? nullptr : found->second.get();
}

const Function* GraphLibrary::find_method(const std::string& class_name, const std::string& method) const {
  return find_function(class_name + "." + method);
}

ops::TypePtr GraphLibrary::find_type(const std::string& qualified_name) const {
  const auto found = types_.find(qualified_name);
  return found == types_.end() ? nullptr : found->second;
}

std::vector<std::string> GraphLibrary::method_names(const std::string& class_name) const {
  const auto found = methods_.find(class_name);
  return found == methods_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace tensord::jit
