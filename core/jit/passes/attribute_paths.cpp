#include "core/jit/passes/attribute_paths.h"

#include <vector>

namespace tensord::jit {

// An explicit stack, because objects of an archive may be nested arbitrarily deep.
AttributePaths::AttributePaths(const ops::ObjectPtr& self) {
  if (!self) return;
  std::vector<std::pair<const ops::Object*, std::string>> stack{{self.get(), ""}};
  while (!stack.empty()) {
    auto [object, path] = std::move(stack.back());
    stack.pop_back();
    if (!paths_.emplace(object, path).second) continue;
    const auto& attributes = object->type->attributes();
    for (size_t i = object->slots.size(); i > 0; --i) {
      const ops::Value& value = object->slots[i - 1];
      if (!value.is_object()) continue;
      std::string name = path.empty() ? attributes[i - 1].name : path + "." + attributes[i - 1].name;
      stack.emplace_back(value.to_object().get(), std::move(name));
    }
  }
}

const std::string* AttributePaths::path_of(const ops::Object* object) const {
  auto it = paths_.find(object);
  return it == paths_.end() ? nullptr : &it->second;
}

std::string AttributePaths::path_of(const ops::Object* object, const std::string& attribute) const {
  const std::string* path = path_of(object);
  if (!path) return {};
  return path->empty() ? attribute : *path + "." + attribute;
}

}  // namespace tensord::jit
