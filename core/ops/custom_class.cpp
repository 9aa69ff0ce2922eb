#include "core/ops/custom_class.h"

#include <map>
#include <utility>

namespace tensord::ops {
namespace {

std::map<std::string, CustomClassFn>& classes() {
  static std::map<std::string, CustomClassFn> classes;
  return classes;
}

}  // namespace

const CustomClassFn* find_custom_class(const std::string& qualified_name) {
  const auto it = classes().find(qualified_name);
  return it == classes().end() ? nullptr : &it->second;
}

CustomClassBuilder::CustomClassBuilder(const char* qualified_name, CustomClassFn function) {
  classes().emplace(qualified_name, std::move(function));
}

}  // namespace tensord::ops
