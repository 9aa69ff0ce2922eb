#pragma once

#include <span>
#include <string_view>

// The operators that kernels/*/*.ops declare. scripts/operators.py makes the table when the engine is built.
namespace tensord::ops {

struct Declared {
  std::string_view line;  // "aten::relu(Tensor self) -> Tensor; inplace, out"
  const char* file;

  std::string_view name() const { return line.substr(0, line.find('(')); }
};

// By name.
std::span<const Declared> declared_operators();
// What kernels/*/*.ops say of the operator "aten::relu". A program that gives a whole line instead gets it back: its
// operators are of namespaces of their own. Throws Error{kInvalidArgument} for what has no line.
std::string_view line_of(std::string_view name_or_line);

}  // namespace tensord::ops
