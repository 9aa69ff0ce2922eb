// cse: common subexpression elimination. Gives equal pure nodes with equal inputs one result if neither the inputs nor
// the results are ever written, and merges equal constants. A result replaces another only where it is in scope: later
// in its block or in nested blocks.
#include <algorithm>
#include <bit>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/type_match.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

void mix(size_t& hash, size_t value) { hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2); }

size_t hash_of(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::kBool: return value.to_bool();
    case Value::Tag::kInt: return std::hash<int64_t>()(value.to_int());
    case Value::Tag::kFloat: return std::hash<int64_t>()(std::bit_cast<int64_t>(value.to_float()));
    case Value::Tag::kString: return std::hash<std::string>()(value.to_string());
    case Value::Tag::kTensor: return std::hash<const void*>()(value.to_tensor().impl());
    case Value::Tag::kObject: return std::hash<const void*>()(value.to_object().get());
    case Value::Tag::kList: {
      if (!is_number_list(value)) return std::hash<const void*>()(value.to_list().get());
      size_t hash = value.to_list()->items.size();
      for (const Value& item : value.to_list()->items) mix(hash, hash_of(item));
      return hash;
    }
    default: return static_cast<size_t>(value.tag());
  }
}

struct NodeHash {
  size_t operator()(const Node* node) const {
    size_t hash = static_cast<size_t>(node->kind());
    mix(hash, std::hash<const void*>()(node->op()));
    for (const GraphValue* input : node->inputs()) mix(hash, static_cast<size_t>(input->id()));
    if (!node->name().empty()) mix(hash, std::hash<std::string>()(node->name()));
    if (node->kind() == NodeKind::kConstant) mix(hash, hash_of(node->constant()));
    mix(hash, static_cast<size_t>(node->index()));
    return hash;
  }
};

struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    const auto what = [](const Node* n) {
      return std::tuple(n->kind(), n->op(), std::string_view(n->name()), n->index());
    };
    const auto same = [](const ops::TypePtr& x, const ops::TypePtr& y) { return ops::same_type(x, y); };
    const auto gives_same = [](const GraphValue* x, const GraphValue* y) {
      return ops::same_type(x->type(), y->type());
    };
    if (what(a) != what(b) || !std::ranges::equal(a->inputs(), b->inputs()) ||
        !std::ranges::equal(a->outputs(), b->outputs(), gives_same) ||
        !std::ranges::equal(a->types(), b->types(), same)) {
      return false;
    }
    return a->kind() != NodeKind::kConstant || same_constant(a->constant(), b->constant());
  }
};

class Merger {
 public:
  Merger(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {
    collect(*graph.block());
  }

  bool run() {
    block(graph_.block());
    return changed_;
  }

 private:
  void collect(const Block& block) {
    for_each_node(block, [this](const Node& node) {
      if (node.kind() == NodeKind::kSetAttr) assigned_.insert(node.name());
      calls_ |= node.kind() == NodeKind::kCallMethod || node.kind() == NodeKind::kCallFunction ||
                node.kind() == NodeKind::kCallValue;
    });
  }

  void block(Block* block) {
    std::vector<const Node*> added;
    for (Node* node = block->first(); node;) {
      Node* next = node->next();
      for (Block* inner : node->blocks()) this->block(inner);
      if (is_mergeable(*node)) {
        auto [it, is_new] = seen_.emplace(node, node);
        if (is_new) {
          added.push_back(node);
        } else if (context_.take_change()) {
          for (size_t i = 0; i < node->outputs().size(); ++i) {
            node->output(i)->replace_all_uses_with(it->second->output(i));
          }
          node->destroy();
          changed_ = true;
        }
      }
      node = next;
    }
    for (const Node* node : added) seen_.erase(node);
  }

  bool is_mergeable(const Node& node) const {
    if (!node.blocks().empty() || node.outputs().empty()) return false;
    switch (node.kind()) {
      case NodeKind::kOp:
        if (!node.is_pure_op()) return false;
        if (context_.is_for_training && gives_tensors(node)) return false;
        break;
      case NodeKind::kConstant: return is_shareable(node);
      case NodeKind::kGetAttr: return !calls_ && !assigned_.contains(node.name());
      case NodeKind::kListConstruct:
      case NodeKind::kTupleConstruct:
      case NodeKind::kTupleIndex:
      case NodeKind::kTupleUnpack:
      case NodeKind::kListUnpack:
      case NodeKind::kIsInstance:
      case NodeKind::kUncheckedCast: break;
      default: return false;
    }
    for (const GraphValue* input : node.inputs()) {
      if (is_written(input)) return false;
    }
    for (const GraphValue* output : node.outputs()) {
      if (is_written(output) || is_new_list_given_back(output)) return false;
    }
    return true;
  }

  static bool gives_tensors(const Node& node) {
    return std::any_of(node.outputs().begin(), node.outputs().end(),
                       [](const GraphValue* output) { return may_hold_tensor(*output->type()); });
  }

  bool is_shareable(const Node& node) const {
    return !AliasAnalysis::is_mutable_type(*node.output()->type()) || !is_number_list(node.constant()) ||
           !(is_written(node.output()) || is_new_list_given_back(node.output()));
  }

  bool is_written(const GraphValue* value) const {
    return AliasAnalysis::is_mutable_type(*value->type()) && alias_.has_writers(value);
  }

  // A caller may append to one of two equal lists that it received.
  bool is_new_list_given_back(const GraphValue* value) const {
    if (value->type()->kind() != TypeKind::kList && value->type()->kind() != TypeKind::kDict) return false;
    int location = alias_.location(value);
    return location == alias_.wildcard() || alias_.is_given_back(location);
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  std::unordered_map<const Node*, Node*, NodeHash, NodeEqual> seen_;
  std::unordered_set<std::string> assigned_;
  bool calls_ = false;
  bool changed_ = false;
};

}  // namespace

bool eliminate_common_subexpressions(Graph& graph, PassContext& context) { return Merger(graph, context).run(); }

}  // namespace tensord::jit
