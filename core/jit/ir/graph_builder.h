#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/op.h"

namespace tensord::jit {

// Adds nodes with the source location that was set last.
class GraphBuilder {
 public:
  using Values = std::vector<GraphValue*>;

  // Adds at the end of the graph's block.
  explicit GraphBuilder(Graph& graph) : graph_(graph), block_(graph.block()) {}
  // Adds before a node, with its source location.
  explicit GraphBuilder(Node* before)
      : graph_(*before->graph()), block_(before->block()), before_(before), location_(before->location()) {}

  Graph& graph() const { return graph_; }
  Block* block() const { return block_; }
  void set_location(SourceLocation location) { location_ = std::move(location); }

  // Adds nodes at the end of another block during its lifetime.
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
  // Adds an operator. Missing arguments get the defaults of the schema. Throws Error{kUnimplemented} if there is no
  // such operator.
  Node* call(const ops::Op& op, std::span<GraphValue* const> arguments);
  GraphValue* op(std::string_view full_name, std::initializer_list<GraphValue*> arguments);
  GraphValue* op(std::string_view full_name, std::span<GraphValue* const> arguments);
  // The overload with exactly these types of an operator on numbers ("aten::mul" of int and float).
  GraphValue* scalar_op(std::string_view name, std::initializer_list<GraphValue*> arguments);
  GraphValue* list(ops::TypePtr element, std::span<GraphValue* const> items);
  // A NamedTuple if names are given.
  GraphValue* tuple(std::span<GraphValue* const> items, std::vector<std::string> names = {});
  // Replaces a node's only result by `value`, which is already in the graph: it gets the name and the uses. The node
  // has no uses afterwards.
  static void replace_value(GraphValue* value, Node* node);
  // Adds a branch that runs the code of `raise` if the condition is false.
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
