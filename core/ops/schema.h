#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/type.h"
#include "core/ops/value.h"

namespace tensord::ops {

// The alias mark of an argument or return, as in "Tensor(a!)": `set` is the letter ('*' for a wildcard, 0 for none),
// `is_write` the exclamation mark.
struct AliasMark {
  char set = 0;
  bool is_write = false;
};

struct Argument {
  std::string name;
  TypePtr type;
  std::optional<Value> default_value;
  bool is_keyword_only = false;
  int64_t fixed_list_size = 0;  // N of "int[N]": a single int is accepted and repeated
  AliasMark alias;              // of a list: the mark of the list or of its elements
  // "ScalarType", "MemoryFormat" or "Layout" if the schema says so; the type is then int.
  std::string enum_name;
};

// "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", parsed.
struct Schema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor", may be empty
  std::vector<Argument> arguments;
  std::vector<Argument> returns;
  bool is_vararg = false;         // "..." takes any further arguments
  bool is_vararg_return = false;  // "-> ..."

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  std::string str() const;   // can be parsed to an equal schema
  bool is_mutating() const;  // some argument is marked (a!)
  bool has_alias_return() const;
  int find_argument(std::string_view name) const;  // -1 if there is none
};

// Throws Error{kInvalidArgument} that shows the place of the mistake. `-> ()` means no return; "SymInt" is read as int;
// "Tensor(a)[]" marks the elements.
Schema parse_schema(std::string_view text);

}  // namespace tensord::ops
