#pragma once

#include <string>
#include <unordered_map>

#include "core/ops/value.h"

namespace tensord::jit {

// Dotted names of the objects below a module: "" is the module itself, "layer1.0.bn1" one
// of its submodules. An object that is reachable in several ways has the first path, in the
// order of attributes, as its only name.
class AttributePaths {
 public:
  explicit AttributePaths(const ops::ObjectPtr& self);
  // Null when the object is not below the module.
  const std::string* path_of(const ops::Object* object) const;
  // "layer1.0.bn1.running_mean"; "" when the object is not below the module.
  std::string path_of(const ops::Object* object, const std::string& attribute) const;
  const std::unordered_map<const ops::Object*, std::string>& all() const { return paths_; }

 private:
  std::unordered_map<const ops::Object*, std::string> paths_;
};

}  // namespace tensord::jit
