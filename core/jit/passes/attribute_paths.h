#pragma once

#include <string>
#include <unordered_map>

#include "core/ops/value.h"

namespace tensord::jit {

// The dotted names of the objects below a module: "" is the module itself, "layer1.0.bn1" a submodule. An object that
// several paths reach has only the first one, in the order of attributes.
class AttributePaths {
 public:
  explicit AttributePaths(const ops::ObjectPtr& self);
  // Null if the object is not below the module.
  const std::string* path_of(const ops::Object* object) const;
  // "layer1.0.bn1.running_mean"; "" if the object is not below the module.
  std::string path_of(const ops::Object* object, const std::string& attribute) const;
  const std::unordered_map<const ops::Object*, std::string>& all() const { return paths_; }

 private:
  std::unordered_map<const ops::Object*, std::string> paths_;
};

}  // namespace tensord::jit
