#include "core/ops/declared.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::ops {

std::string_view line_of(std::string_view name_or_line) {
  const std::string_view name = name_or_line.substr(0, name_or_line.find('('));
  const auto all = declared_operators();
  const auto found = std::ranges::lower_bound(all, name, {}, &Declared::name);
  if (name == name_or_line && found != all.end() && found->name() == name) return found->line;
  const std::string_view space = name.substr(0, name.find(':') + 1);
  const auto near = std::ranges::lower_bound(all, space, {}, &Declared::name);
  const bool is_ours = near != all.end() && near->name().starts_with(space);
  check(name != name_or_line && !is_ours, name, ": an operator has one line in kernels/*/*.ops, which OP names");
  return name_or_line;
}

}  // namespace tensord::ops
