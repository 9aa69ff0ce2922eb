#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph.h"
#include "core/jit/passes/pass.h"

namespace tensord::jit {

// A match of a pattern: the root node, and the values of the pattern's names.
class Match {
 public:
  Match(Graph& graph, const AliasAnalysis& alias, Node* root) : graph_(graph), alias_(alias), root_(root) {}
  Graph& graph() const { return graph_; }
  const AliasAnalysis& alias() const { return alias_; }
  Node* root() const { return root_; }
  // REQUIRES: the pattern has the name.
  GraphValue* value(std::string_view name) const;
  // Null if the value is not a constant.
  const ops::Value* constant(std::string_view name) const { return value(name)->constant(); }
  // Binds a name, or compares the value with the bound one.
  bool bind(std::string_view name, GraphValue* value);
  // The results of operators in the pattern below the root.
  const std::vector<GraphValue*>& inner() const { return inner_; }
  bool add_inner(GraphValue* value) {
    inner_.push_back(value);
    return true;
  }
  // Saves and restores the bindings, to try another order.
  std::pair<size_t, size_t> state() const { return {names_.size(), inner_.size()}; }
  void restore(std::pair<size_t, size_t> state) {
    names_.resize(state.first);
    inner_.resize(state.second);
  }

 private:
  Graph& graph_;
  const AliasAnalysis& alias_;
  Node* root_;
  std::vector<std::pair<std::string_view, GraphValue*>> names_;
  std::vector<GraphValue*> inner_;
};

// One rewrite. A pattern is a call of operators by full name ("aten::t(aten::t(x))"). A name matches any value (a
// second occurrence must be the same value or an equal constant), `_` matches anything, and "y=aten::relu(x)" names an
// inner result. Literals are numbers, True, False and None. "aten::mul.*" matches any overload; "aten::mul.*~" matches
// its first two arguments in either order. "keeps_rank" matches every operator for which ops::keeps_rank holds. After
// "..." any arguments may follow; otherwise omitted arguments must have their defaults.
struct PeepholeRule {
  // The relation between the memory of the result and of its replacement.
  enum class Memory {
    kCompare,    // by the schema: a view shares memory with its base, and a new result
                 // is replaced only if neither value is ever written
    kGivesBack,  // the operator returns its argument itself here and has no effect
    kShapeOnly,  // the pattern reads only shapes, which in-place operators keep
  };
  const char* name;
  const char* pattern;
  // The replacement of the root's result: a name, a literal or a call. Unused with `rewrite`.
  const char* replacement;
  bool (*guard)(const Match& match) = nullptr;
  // Returns the new value (new nodes go before the root), or null if the match does not apply.
  GraphValue* (*rewrite)(const Match& match) = nullptr;
  Memory memory = Memory::kCompare;
};

// The table. It names operators as data; the engine knows none.
std::span<const PeepholeRule> peephole_rules();

// The names of rules that use an unregistered operator; they never match.
std::vector<std::string> inactive_peephole_rules();

// The parsed rules. They are parsed once, with the first graph, when all operators are registered.
class RuleTable {
 public:
  explicit RuleTable(std::span<const PeepholeRule> rules);
  ~RuleTable();
  bool apply(Graph& graph, PassContext& context) const;
  const std::vector<std::string>& inactive() const;

  struct Rules;

 private:
  std::unique_ptr<Rules> rules_;
};

}  // namespace tensord::jit
