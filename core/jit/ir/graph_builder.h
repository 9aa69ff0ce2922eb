#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/op.h"

namespace tensord::jit {

// Adds nodes, each with the place in the model's source that was set last.
class GraphBuilder {
 public:
  using Values = std::vector<GraphValue*>;

  // At the end of the graph's block.
  explicit GraphBuilder(Graph& graph) : graph_(graph), block_(graph.block()) {}
  // In front of a node, with its place in the source.
  explicit GraphBuilder(Node* before)
      : graph_(*before->graph()), block_(before->block()), before_(before), location_(before->location()) {}

  Graph& graph() const { return graph_; }
  Block* block() const { return block_; }
  void set_location(SourceLocation location) { location_ = std::move(location); }

  // While it lives, nodes go to the end of another block.
  class Inside {
   public:
    Inside(GraphBuilder& builder, Block* block)
        : builder_(builder), outer_(builder.block_), before_(std::exchange(builder.before_, nullptr)) {
      builder.block_ = block;
    }
    ~Inside() {
      builder_.block_ = outer_;
      builder_.before_ = before_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    GraphBuilder& builder_;
    Block* outer_;
    Node* before_;
  };

  Node* add(Node* node);
  Node* add(NodeKind kind, std::span<GraphValue* const> inputs);
  GraphValue* constant(ops::Value value, ops::TypePtr type = nullptr);
  GraphValue* none() { return constant(ops::Value()); }
  // An operator; arguments that are not given are the schema's defaults. Throws Error{kUnimplemented} when there is no
  // such operator.
  Node* call(const ops::Op& op, std::span<GraphValue* const> arguments);
  GraphValue* op(std::string_view full_name, std::initializer_list<GraphValue*> arguments);
  GraphValue* op(std::string_view full_name, std::span<GraphValue* const> arguments);
  // The overload that takes just these types, of an operator on numbers ("aten::mul" of int and float).
  GraphValue* scalar_op(std::string_view name, std::initializer_list<GraphValue*> arguments);
  GraphValue* list(ops::TypePtr element, std::span<GraphValue* const> items);
  // A NamedTuple when there are names.
  GraphValue* tuple(std::span<GraphValue* const> items, std::vector<std::string> names = {});
  // Puts `value`, which has been added, in the place of a node's only result: with its name and for its uses. The node
  // is left without uses.
  static void take_place(GraphValue* value, Node* node);
  // Raises what `raise` adds, when the condition is false.
  template <class Fn>
  void require(GraphValue* condition, Fn raise) {
    Node* branch = add(NodeKind::kIf, std::span<GraphValue* const>(&condition, 1));
    branch->add_block();
    const Inside inside(*this, branch->add_block());
    raise();
  }

 private:
  Graph& graph_;
  Block* block_;
  Node* before_ = nullptr;  // null: at the end of the block
  SourceLocation location_;
};

}  // namespace tensord::jit
