#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/value.h"

namespace tensord::jit {

// A parsed pattern or replacement of a peephole rule.
struct Pattern {
  enum class Kind { kAny, kName, kLiteral, kCall };
  Kind kind = Kind::kAny;
  std::string name;  // the name of a kName, or of the result of a kCall; may be empty
  ops::Value literal;
  std::vector<const ops::Op*> ops;  // alternatives; empty if the operator is not registered
  bool swaps = false;               // the first two arguments may be in either order
  std::vector<Pattern> arguments;
  bool is_open = false;  // any arguments may follow

  // Whether the pattern contains an unregistered operator.
  bool is_incomplete() const;
};

// Throws Error{kInternal}, because rules are part of the program.
Pattern parse_pattern(std::string_view text);

}  // namespace tensord::jit
