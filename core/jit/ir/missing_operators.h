#pragma once

#include <string>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// What the front end puts where a branch calls an operator that is not there: reached, it ends the run with
// Error{kUnimplemented} and its message.
inline constexpr const char* kMissingOperator = "prim::MissingOperator";

struct MissingOperator {
  std::string message;      // "operator aten::x is not supported"
  SourceLocation location;  // of the call in the script
};

// The calls of missing operators that are left in the graph and, where its calls are known, in what it calls; each
// place once, in the order of the graph. Functions that do not compile are passed over: calling them says why.
std::vector<MissingOperator> missing_operators(const Graph& graph, const FunctionLibrary& functions);

}  // namespace tensord::jit
