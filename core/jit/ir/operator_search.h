#pragma once

#include <functional>
#include <set>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// Looks for an operator in graphs and in what they call by name, each function once.
class OperatorSearch {
 public:
  OperatorSearch(const FunctionLibrary& functions, std::function<bool(const ops::Op&)> is_wanted)
      : functions_(functions), is_wanted_(std::move(is_wanted)) {}

  // The first one that is wanted; null: none in this block and in all that was looked at before.
  const ops::Op* find(const Block* block);
  // Something was met that calls what only a run knows: an interface, a function value.
  bool has_unknown_calls() const { return has_unknown_calls_; }

 private:
  void search(const Block* block);
  void visit(const Node& node);
  void call(const Function* function);

  const FunctionLibrary& functions_;
  std::function<bool(const ops::Op&)> is_wanted_;
  std::set<const Function*> seen_;
  std::vector<const Function*> pending_;  // a list, since chains of calls may be of any length
  const ops::Op* found_ = nullptr;
  bool has_unknown_calls_ = false;
};

// A call of a function or method by name, or of a value.
bool is_call(NodeKind kind);
// Whether one is in the block or in those within it.
bool has_calls(const Block& block);

// Whether a call changes the shape of the tensor that it gets ("x.unsqueeze_(0)"), which for passes and plans a value
// keeps as long as it lives.
bool changes_shape(const ops::Op& op);

// Throws Error{kUnimplemented} where a graph, which passes have seen, comes by such an operator after all: through an
// interface or a function value, so that what calls it was taken to keep all shapes.
void check_keeps_shapes(const Graph& graph, const FunctionLibrary& functions);

}  // namespace tensord::jit
