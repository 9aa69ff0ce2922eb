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

// What a pattern matched: the node at its root, and the values its names stand for.
class Match {
 public:
  Match(Graph& graph, const AliasAnalysis& alias, Node* root) : graph_(graph), alias_(alias), root_(root) {}
  Graph& graph() const { return graph_; }
  const AliasAnalysis& alias() const { return alias_; }
  Node* root() const { return root_; }
  // REQUIRES: the pattern has the name.
  GraphValue* value(std::string_view name) const;
  // Null when the value is no constant.
  const ops::Value* constant(std::string_view name) const { return value(name)->constant(); }
  // Binds a name, or compares with what it is bound to.
  bool bind(std::string_view name, GraphValue* value);
  // Results of operators within the pattern, below the root.
  const std::vector<GraphValue*>& inner() const { return inner_; }
  bool add_inner(GraphValue* value) {
    inner_.push_back(value);
    return true;
  }
  // To try again another way: what is bound so far, and back to that.
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

// One rewrite. Patterns are calls of operators by full name ("aten::t(aten::t(x))"); a name
// stands for any value (twice: the same one, or an equal constant), `_` for anything, and
// "y=aten::relu(x)" names an inner result. Literals are numbers, True, False and None.
// "aten::mul.*" is any overload, and "aten::mul.*~" takes its first two arguments in either order. "keeps_rank" is
// every operator that ops::keeps_rank says it of. After "..." any arguments may follow; else those left out have their
// defaults.
struct PeepholeRule {
  // What the memory of the result is, compared with that of its replacement.
  enum class Memory {
    kCompare,    // by the schema: views are the same memory, fresh results are only
                 // replaced when nothing is ever written to either
    kGivesBack,  // the operator gives back its argument itself here, and does nothing else
    kShapeOnly,  // the pattern reads shapes only, which in-place forms of operators keep
  };
  const char* name;
  const char* pattern;
  // What the root's result becomes: a name, a literal or a call. Unused with `rewrite`.
  const char* replacement;
  bool (*guard)(const Match& match) = nullptr;
  // Gives the new value (new nodes go before the root), or null to leave the match alone.
  GraphValue* (*rewrite)(const Match& match) = nullptr;
  Memory memory = Memory::kCompare;
};

// The table; it names operators as data, the engine that applies it knows none.
std::span<const PeepholeRule> peephole_rules();

// Names of rules that use an operator which is not registered; they never match.
std::vector<std::string> inactive_peephole_rules();

// Rules parsed once, when the first graph comes and all operators are registered.
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
