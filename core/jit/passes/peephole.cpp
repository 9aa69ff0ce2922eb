// peephole: applies the table of peephole_rules.cpp, which has small rewrites of an operator and the operators of its
// arguments. The engine itself knows no operator. dce removes what becomes unused.
#include "core/jit/passes/peephole.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/type_match.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/peephole_pattern.h"
#include "core/jit/passes/same_constant.h"

namespace tensord::jit {

using ops::Value;

GraphValue* Match::value(std::string_view name) const {
  for (const auto& [bound, value] : names_) {
    if (bound == name) return value;
  }
  fail(ErrorCode::kInternal, "peephole rule: the pattern has no '", name, "'");
}

struct RuleTable::Rules {
  struct Compiled {
    const PeepholeRule* rule;
    Pattern pattern, replacement;
  };
  std::deque<Compiled> all;
  std::unordered_map<const ops::Op*, std::vector<const Compiled*>> by_root;
  std::vector<std::string> inactive;

  std::span<const Compiled* const> find(const ops::Op* root) const {
    const auto it = by_root.find(root);
    if (it == by_root.end()) return {};
    return it->second;
  }
};

RuleTable::RuleTable(std::span<const PeepholeRule> rules) : rules_(std::make_unique<Rules>()) {
  for (const PeepholeRule& rule : rules) {
    Rules::Compiled compiled{&rule, parse_pattern(rule.pattern), {}};
    if (!rule.rewrite) compiled.replacement = parse_pattern(rule.replacement);
    check_internal(compiled.pattern.kind == Pattern::Kind::kCall, "peephole rule '", rule.name,
                   "' matches no operator");
    if (compiled.pattern.is_incomplete() || compiled.replacement.is_incomplete()) {
      rules_->inactive.push_back(rule.name);
      continue;
    }
    const Rules::Compiled& kept = rules_->all.emplace_back(std::move(compiled));
    for (const ops::Op* root : kept.pattern.ops) rules_->by_root[root].push_back(&kept);
  }
}

RuleTable::~RuleTable() = default;

const std::vector<std::string>& RuleTable::inactive() const { return rules_->inactive; }

namespace {

using CompiledRule = RuleTable::Rules::Compiled;

bool match_value(const Pattern& pattern, GraphValue* value, Match& match);

// Matches the arguments of the pattern; with `swapped` the first two are exchanged.
bool match_arguments(const Pattern& pattern, const Node* node, bool swapped, Match& match) {
  for (size_t i = 0; i < pattern.arguments.size(); ++i) {
    if (!match_value(pattern.arguments[i], node->input(swapped && i < 2 ? 1 - i : i), match)) return false;
  }
  return true;
}

bool match_call(const Pattern& pattern, const Node* node, Match& match) {
  if (!node || std::find(pattern.ops.begin(), pattern.ops.end(), node->op()) == pattern.ops.end()) return false;
  if (node->inputs().size() < pattern.arguments.size() || node->outputs().size() != 1) return false;
  const auto before = match.state();
  if (!match_arguments(pattern, node, false, match)) {
    match.restore(before);
    if (!pattern.swaps || !match_arguments(pattern, node, true, match)) return false;
  }
  for (size_t i = pattern.arguments.size(); i < node->inputs().size() && !pattern.is_open; ++i) {
    // Arguments that the pattern omits must have their defaults.
    const auto& arguments = node->op()->schema.arguments;
    const Value* constant = node->input(i)->constant();
    if (i >= arguments.size() || !arguments[i].default_value || !constant) return false;
    if (!same_constant(*constant, *arguments[i].default_value)) return false;
  }
  return pattern.name.empty() || match.bind(pattern.name, node->output());
}

bool match_value(const Pattern& pattern, GraphValue* value, Match& match) {
  switch (pattern.kind) {
    case Pattern::Kind::kAny: return true;
    case Pattern::Kind::kName: return match.bind(pattern.name, value);
    case Pattern::Kind::kLiteral: {
      const Value* constant = value->constant();
      return constant && same_constant(*constant, pattern.literal);
    }
    case Pattern::Kind::kCall: return match_call(pattern, value->node(), match) && match.add_inner(value);
  }
  return false;
}

class Rewriter {
 public:
  Rewriter(Graph& graph, PassContext& context, const RuleTable::Rules& rules)
      : graph_(graph), context_(context), rules_(rules), alias_(graph) {}

  bool run() {
    block(graph_.block());
    // Destroys nodes at the end, because the walk and the alias snapshot still point to them.
    for (Node* node : gone_) node->destroy();
    return changed_;
  }

 private:
  void block(Block* block) {
    for (Node* node = block->first(); node; node = node->next()) {
      for (Block* inner : node->blocks()) this->block(inner);
      if (!node->op() || !node->has_output_uses()) continue;
      for (const CompiledRule* rule : rules_.find(node->op())) {
        GraphValue* made = apply(*rule, node);
        if (!made) continue;
        if (rule->rule->memory == PeepholeRule::Memory::kShapeOnly) follow(made->node());
        break;
      }
    }
  }

  // Applies the rules for shape queries repeatedly: each rule moves the query one operator up.
  void follow(Node* node) {
    for (bool moved = true; moved && node && node->op();) {
      moved = false;
      for (const CompiledRule* rule : rules_.find(node->op())) {
        if (rule->rule->memory != PeepholeRule::Memory::kShapeOnly) continue;
        GraphValue* made = apply(*rule, node);
        if (!made) continue;
        gone_.push_back(node);
        node = made->node();
        moved = true;
        break;
      }
    }
  }

  // Returns the replacement of the node's result, or null.
  GraphValue* apply(const CompiledRule& rule, Node* node) {
    Match match(graph_, alias_, node);
    if (!match_call(rule.pattern, node, match)) return nullptr;
    if (rule.rule->guard && !rule.rule->guard(match)) return nullptr;
    const bool reads_shape = rule.rule->memory == PeepholeRule::Memory::kShapeOnly;
    if (reads_shape ? inner_may_change_shape(match) : inner_is_written(match, node)) return nullptr;
    GraphValue* old = node->output();
    if (context_.is_for_training && may_hold_tensor(*old->type())) return nullptr;
    if (!rule.rule->rewrite && rule.replacement.kind == Pattern::Kind::kName &&
        !may_stand_for(match.value(rule.replacement.name), *rule.rule, node)) {
      return nullptr;
    }
    if (context_.remaining_changes <= 0) return nullptr;
    GraphValue* made = rule.rule->rewrite ? rule.rule->rewrite(match) : build(rule.replacement, match);
    if (!made || !ops::is_subtype(made->type(), old->type())) return nullptr;
    context_.take_change();
    changed_ = true;
    if (alias_.location(old) != alias_.location(made)) mixed_.insert({alias_.location(old), alias_.location(made)});
    if (made->name().empty()) made->set_name(old->name());
    old->replace_all_uses_with(made);
    if (rule.rule->memory == PeepholeRule::Memory::kGivesBack) gone_.push_back(node);
    return made;
  }

  // A pattern does not express what happens to an inner result before the root reads it.
  bool inner_is_written(const Match& match, const Node* root) const {
    for (const GraphValue* value : match.inner()) {
      if (!AliasAnalysis::is_mutable_type(*value->type())) continue;
      if (mixed_.contains(alias_.location(value)) || alias_.may_be_written_between(value, value->node(), root))
        return true;
      for (const GraphValue* input : value->node()->inputs()) {
        if (AliasAnalysis::is_mutable_type(*input->type()) && alias_.may_be_written_between(input, value->node(), root))
          return true;
      }
    }
    return false;
  }

  // Whether a node other than an in-place operator, which keeps the shape, writes to the tensors of the pattern.
  bool inner_may_change_shape(const Match& match) const {
    const auto may_change = [&](const GraphValue* value) {
      if (!AliasAnalysis::is_mutable_type(*value->type())) return false;
      const int location = alias_.location(value);
      if (location < 0 || mixed_.contains(location)) return true;
      for (const Node* writer : alias_.writers(location)) {
        const ops::Op* op = writer->op();
        if (!op || !op->base || op->base->schema.name == op->schema.name) return true;
      }
      return false;
    };
    for (const GraphValue* value : match.inner()) {
      if (may_change(value)) return true;
      for (const GraphValue* input : value->node()->inputs()) {
        if (may_change(input)) return true;
      }
    }
    return false;
  }

  // Whether `value` can replace the node's result with respect to writes.
  bool may_stand_for(const GraphValue* value, const PeepholeRule& rule, const Node* node) const {
    if (!AliasAnalysis::is_mutable_type(*value->type()) || rule.memory == PeepholeRule::Memory::kGivesBack) return true;
    const GraphValue* result = node->output();
    int from = alias_.location(result), to = alias_.location(value);
    if (from == to && node->op()->is_view) return true;
    // The snapshot does not know the aliases that earlier rewrites of this pass introduced.
    if (mixed_.contains(from) || mixed_.contains(to)) return false;
    if (alias_.has_writers(result) || alias_.may_be_written_after(value, node)) return false;
    return !(alias_.escapes(result) && alias_.is_external(to));
  }

  GraphValue* build(const Pattern& pattern, const Match& match) {
    if (pattern.kind == Pattern::Kind::kName) return match.value(pattern.name);
    GraphBuilder builder(match.root());
    if (pattern.kind == Pattern::Kind::kLiteral) return builder.constant(pattern.literal);
    std::vector<GraphValue*> inputs;
    for (const Pattern& argument : pattern.arguments) inputs.push_back(build(argument, match));
    return builder.call(*pattern.ops.front(), inputs)->output();
  }

  Graph& graph_;
  PassContext& context_;
  const RuleTable::Rules& rules_;
  AliasAnalysis alias_;
  std::unordered_set<int> mixed_;
  std::vector<Node*> gone_;
  bool changed_ = false;
};

}  // namespace

bool Match::bind(std::string_view name, GraphValue* value) {
  for (const auto& [bound, known] : names_) {
    if (bound != name) continue;
    if (known == value) return true;
    const Value *a = known->constant(), *b = value->constant();
    return a && b && same_constant(*a, *b);
  }
  names_.emplace_back(name, value);
  return true;
}

bool RuleTable::apply(Graph& graph, PassContext& context) const { return Rewriter(graph, context, *rules_).run(); }

namespace {
const RuleTable& peephole_table() {
  static const RuleTable table(peephole_rules());
  return table;
}
}  // namespace

bool apply_peepholes(Graph& graph, PassContext& context) { return peephole_table().apply(graph, context); }

std::vector<std::string> inactive_peephole_rules() { return peephole_table().inactive(); }

}  // namespace tensord::jit
