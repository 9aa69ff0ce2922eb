#pragma once

#include <string>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// The frontend's replacement for an unsupported operator in a branch. If a run reaches it, the run ends with
// Error{kUnimplemented} and its message.
inline constexpr const char* kMissingOperator = "prim::MissingOperator";

struct MissingOperator {
  std::string message;      // "operator aten::x is not supported"
  SourceLocation location;  // location of the call in the script
};

// The calls of unsupported operators in the graph and in the functions that it calls by name; each place once, in the
// order of the graph. Functions that do not compile are skipped, because calling them reports the error.
std::vector<MissingOperator> missing_operators(const Graph& graph, const FunctionLibrary& functions);

// The operators that they call, each once, in the order of the graph.
std::vector<const ops::Op*> called_operators(const Graph& graph, const FunctionLibrary& functions);

}  // namespace tensord::jit
