#pragma once

#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/ops/arguments.h"

// The operators of one folder of kernels as typed functions. Overloads are chosen by the compiler; what is for keywords
// only is named in braces at the end: add(a, b, {.alpha = 2}). Operators of other namespaces than aten have theirs in front
// of the name: tensord_fused. An undefined tensor stands for None where the schema has an optional one.
namespace tensord::keyword {

@STRUCTS@

}  // namespace tensord::keyword

namespace tensord::ops {

@OPERATORS@

}  // namespace tensord::ops
