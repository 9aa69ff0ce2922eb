#pragma once

#include <functional>
#include <set>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// Searches for an operator in graphs and in the functions that they call by name; each function once.
class OperatorSearch {
 public:
  OperatorSearch(const FunctionLibrary& functions, std::function<bool(const ops::Op&)> is_wanted)
      : functions_(functions), is_wanted_(std::move(is_wanted)) {}

  // The first wanted operator; null if this block and all code searched before have none.
  const ops::Op* find(const Block* block);
  // Whether the searched code has a call whose target is known only at run time: through an interface or a function
  // value.
  bool has_unknown_calls() const { return has_unknown_calls_; }

 private:
  void search(const Block* block);
  void visit(const Node& node);
  void call(const Function* function);

  const FunctionLibrary& functions_;
  std::function<bool(const ops::Op&)> is_wanted_;
  std::set<const Function*> seen_;
  std::vector<const Function*> pending_;  // a list, because chains of calls may be arbitrarily long
  const ops::Op* found_ = nullptr;
  bool has_unknown_calls_ = false;
};

// A call of a function or method by name, or of a function value.
bool is_call(NodeKind kind);
// Whether the block or a nested block has a call.
bool has_calls(const Block& block);

// Whether a call changes the shape of an argument ("x.unsqueeze_(0)"). Passes and plans assume that the shape of a
// value never changes.
bool changes_shape(const ops::Op& op);

// Throws Error{kUnimplemented} if an optimized graph calls such an operator through an interface or a function value,
// because the passes assumed that all shapes stay the same.
void check_keeps_shapes(const Graph& graph, const FunctionLibrary& functions);

}  // namespace tensord::jit
