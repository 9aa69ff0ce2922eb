// collect_lists: replaces a list that is made here, and only appended to and read in the same block, by a new list of
// known items at every read. Scripts build the operands of cat and stack this way; without the writes they can be
// planned. The rewrite stops at the first use that may keep or change the list; from there on one new list with the
// items so far replaces it.
#include <algorithm>
#include <unordered_map>

#include "core/jit/passes/passes.h"
#include "core/ops/registry.h"

namespace tensord::jit {

namespace {

bool is_append(const Node& node, const GraphValue* list) {
  static const ops::Op* const kAppend = ops::find_op("aten::append.t");
  return node.op() && node.op() == kAppend && node.input(0) == list && node.input(1) != list;
}

// Whether the node reads the items without keeping the list.
bool is_read(const Node& node) {
  if (node.kind() == NodeKind::kListUnpack) return true;
  if (!node.op() || !node.is_pure_op()) return false;
  return std::none_of(node.op()->schema.returns.begin(), node.op()->schema.returns.end(),
                      [](const ops::Argument& returned) {
                        return returned.alias.set != 0 && returned.type->kind() == ops::TypeKind::kList;
                      });
}

// The node of `block` that contains the use; null for the block's own outputs.
Node* node_in(const Block* block, const GraphValue::Use& use) {
  if (use.block == block) return nullptr;
  Node* node = use.node;
  while (node->block() != block) node = node->block()->owner();
  return node;
}

class Collector {
 public:
  Collector(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool visit(Block* block) {
    bool changed = false;
    std::vector<Node*> lists;
    for (Node* node = block->first(); node; node = node->next()) {
      for (Block* inner : node->blocks()) changed |= visit(inner);
      if (node->kind() == NodeKind::kListConstruct) lists.push_back(node);
    }
    for (Node* list : lists) changed |= collect(list);
    return changed;
  }

 private:
  // The nodes of the list's block that use it, in order.
  static std::vector<Node*> users_of(const Node& list) {
    std::unordered_map<const Node*, bool> uses;
    for (const GraphValue::Use& use : list.output()->uses()) {
      if (Node* node = node_in(list.block(), use)) uses[node] = true;
    }
    std::vector<Node*> users;
    for (Node* node = list.next(); node && users.size() < uses.size(); node = node->next()) {
      if (uses.contains(node)) users.push_back(node);
    }
    return users;
  }

  bool collect(Node* list) {
    const std::vector<Node*> users = users_of(*list);
    const auto is_appended = [&](const Node* user) { return is_append(*user, list->output()); };
    // A use that neither keeps the list nor changes it in another way.
    const auto is_followed = [&](const Node* user) {
      return is_appended(user) ? !user->output()->has_uses() : is_read(*user);
    };
    if (std::none_of(users.begin(), users.end(), is_appended) || !is_followed(users.front()) || !context_.take_change())
      return false;
    std::vector<GraphValue*> items(list->inputs().begin(), list->inputs().end());
    size_t done = 0;
    for (; done < users.size() && is_followed(users[done]); ++done) {
      if (is_appended(users[done])) {
        items.push_back(users[done]->input(1));
        users[done]->destroy();
      } else {
        replace(list, items, users[done]);
      }
    }
    if (list->output()->has_uses()) {
      Node* rest = make(list, items);
      if (done < users.size())
        rest->insert_before(users[done]);
      else
        rest->append_to(list->block());
      list->output()->replace_all_uses_with(rest->output());
    }
    list->destroy();
    return true;
  }

  Node* make(const Node* list, const std::vector<GraphValue*>& items) { return graph_.create_like(*list, items); }

  void replace(Node* list, const std::vector<GraphValue*>& items, Node* user) {
    Node* now = make(list, items);
    now->insert_before(user);
    for (size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->input(i) == list->output()) user->replace_input(i, now->output());
    }
  }

  Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool collect_lists(Graph& graph, PassContext& context) { return Collector(graph, context).visit(graph.block()); }

}  // namespace tensord::jit
