#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/type.h"
#include "core/ops/value.h"

namespace tensord::jit {

class Graph;
class Node;
class Block;

// The place in the script that a node was compiled from, for error messages. `text` is the whole file.
struct SourceLocation {
  std::shared_ptr<const std::string> file_name;
  std::shared_ptr<const std::string> text;
  int line = 0;    // 1-based; 0 = unknown
  int column = 0;  // 1-based
  // "code/__torch__/m.py:12", or "" if unknown.
  std::string str() const;
};

// An SSA value: defined once, by a node or as an input of a block.
class GraphValue {
 public:
  const ops::TypePtr& type() const { return type_; }
  void set_type(ops::TypePtr type) { type_ = std::move(type); }
  int id() const { return id_; }                     // unique in its graph, never used again
  const std::string& name() const { return name_; }  // name of the script's variable; may be empty
  void set_name(std::string name) { name_ = std::move(name); }
  Node* node() const { return node_; }     // null for a block input
  Block* block() const { return block_; }  // the block it is an input of, or its node's block
  size_t index() const { return index_; }  // index among the node's outputs or the block's inputs
  // The uses of the value, in no particular order. For a use as a block output, the node is the owner of the block
  // (null for the graph's own outputs).
  struct Use {
    Node* node;    // the user; for a block output, the owner of the block
    Block* block;  // set for a block output
    size_t index;  // index among the node's inputs or the block's outputs
  };
  const std::vector<Use>& uses() const { return uses_; }
  bool has_uses() const { return !uses_.empty(); }
  void replace_all_uses_with(GraphValue* other);
  // What is known about the value for one input signature, set by the pass shape_prop: for a tensor a meta tensor, for
  // a list or tuple one with such items, for anything else the value itself. None if nothing is known.
  const ops::Value& known() const { return known_; }
  void set_known(ops::Value known) { known_ = std::move(known); }
  // The graph it belongs to.
  Graph* graph() const;
  // The constant; null if no prim::Constant defines the value.
  const ops::Value* constant() const;

 private:
  friend class Graph;
  friend class Node;
  friend class Block;
  ops::TypePtr type_;
  std::string name_;
  ops::Value known_;
  int id_ = 0;
  Node* node_ = nullptr;
  Block* block_ = nullptr;
  size_t index_ = 0;
  size_t slot_ = 0;  // index in the graph's values_
  std::vector<Use> uses_;
};

// The action of a node. All kinds except kOp are not operators of the registry.
enum class NodeKind : uint8_t {
  kOp,             // op() of the registry
  kConstant,       // constant() → output
  kIf,             // (cond) → outputs; two blocks without inputs
  kLoop,           // (max_trip, initial_cond, carried…) → carried…; block (i, carried…) → (cond, carried…)
  kGetAttr,        // (object), name() → value
  kSetAttr,        // (object, value), name()
  kCallMethod,     // (object, arguments…), name() → value
  kCallFunction,   // (arguments…), name() is the qualified name → value
  kCallValue,      // (function value, arguments…) → value
  kCreateObject,   // type of the output → new object, slots None
  kListConstruct,  // (items…) → list; element type from the output's type
  kTupleConstruct,
  kDictConstruct,  // (key, value, key, value…)
  kListUnpack,     // (list) → items; raises on another length
  kTupleUnpack,    // (tuple) → items
  kTupleIndex,     // (tuple), int constant in index() → item
  kIsInstance,     // (value), types() → bool
  kUncheckedCast,  // (value) → the same value with the output's type
  kUninitialized,  // () → placeholder that is never read
  kFork,           // (captured…), one block with the captured as inputs → Future
  kWait,           // (future) → value
  kPlan,  // (captured…), one block with the captured values as inputs → the block's outputs; runs as one plan
};

// PyTorch's name of the kind: "prim::If". "" for kOp.
const char* to_string(NodeKind kind);

class Node {
 public:
  int id() const { return id_; }  // unique in its graph, never used again
  NodeKind kind() const { return kind_; }
  const ops::Op* op() const { return op_; }
  bool is_op(std::string_view full_name) const { return op_ && op_->schema.full_name() == full_name; }
  // Whether the operator only computes its results here: it is pure, or it writes only if an argument is true and that
  // argument is the constant False.
  bool is_pure_op() const;
  // "aten::add.Tensor" or "prim::If".
  std::string kind_name() const;
  Graph* graph() const { return graph_; }
  Block* block() const { return block_; }

  std::span<GraphValue* const> inputs() const { return inputs_; }
  std::span<GraphValue* const> outputs() const { return outputs_; }
  GraphValue* input(size_t i = 0) const { return inputs_[i]; }
  GraphValue* output(size_t i = 0) const { return outputs_[i]; }
  std::span<Block* const> blocks() const { return blocks_; }

  void add_input(GraphValue* value);
  void insert_input(size_t i, GraphValue* value);
  void replace_input(size_t i, GraphValue* value);
  void remove_input(size_t i);
  GraphValue* add_output(ops::TypePtr type);
  // REQUIRES: the output has no uses.
  void remove_output(size_t i);
  Block* add_block();

  // The name of an attribute, method or function, depending on the kind.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  const ops::Value& constant() const { return constant_; }
  void set_constant(ops::Value value) { constant_ = std::move(value); }
  int64_t index() const { return index_; }
  void set_index(int64_t index) { index_ = index; }
  const std::vector<ops::TypePtr>& types() const { return types_; }
  void set_types(std::vector<ops::TypePtr> types) { types_ = std::move(types); }
  const SourceLocation& location() const { return location_; }
  void set_location(SourceLocation location) { location_ = std::move(location); }

  // The neighbors in the block's doubly linked list; null at the ends.
  Node* next() const { return next_; }
  Node* previous() const { return previous_; }
  void insert_before(Node* other);  // REQUIRES: not in a block
  void insert_after(Node* other);
  void move_before(Node* other);
  void append_to(Block* block);  // REQUIRES: not in a block
  void move_to_end(Block* block);
  // Removes the node and its blocks. REQUIRES: no output has uses.
  void destroy();
  bool has_output_uses() const;

 private:
  friend class Graph;
  friend class Block;
  friend class GraphValue;
  void unlink();
  void drop_uses();
  void free_blocks();
  Graph* graph_ = nullptr;
  int id_ = 0;
  size_t slot_ = 0;  // index in the graph's nodes_
  Block* block_ = nullptr;
  Node *next_ = nullptr, *previous_ = nullptr;
  NodeKind kind_ = NodeKind::kOp;
  const ops::Op* op_ = nullptr;
  std::vector<GraphValue*> inputs_, outputs_;
  std::vector<size_t> use_slots_;  // by input: its index in the value's uses_
  std::vector<Block*> blocks_;
  std::string name_;
  ops::Value constant_;
  int64_t index_ = 0;
  std::vector<ops::TypePtr> types_;
  SourceLocation location_;
};

// A list of nodes with inputs and outputs: the body of the graph, a branch, or the body of a loop.
class Block {
 public:
  Graph* graph() const { return graph_; }
  Node* owner() const { return owner_; }  // null for the graph's own block
  std::span<GraphValue* const> inputs() const { return inputs_; }
  std::span<GraphValue* const> outputs() const { return outputs_; }
  GraphValue* add_input(ops::TypePtr type, std::string name = {});
  void remove_input(size_t i);  // REQUIRES: no uses
  void add_output(GraphValue* value);
  void replace_output(size_t i, GraphValue* value);
  void remove_output(size_t i);
  Node* first() const { return first_; }
  Node* last() const { return last_; }

 private:
  friend class Graph;
  friend class Node;
  friend class GraphValue;
  Graph* graph_ = nullptr;
  Node* owner_ = nullptr;
  size_t slot_ = 0;  // index in the graph's blocks_
  Node *first_ = nullptr, *last_ = nullptr;
  std::vector<GraphValue*> inputs_, outputs_;
  std::vector<size_t> use_slots_;  // by output: its index in the value's uses_
};

// A function body in SSA form. It owns its nodes, blocks and values; pointers to them are valid until they or the graph
// are destroyed. Not thread-safe; share it only as const.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Block* block() const { return body_; }
  std::span<GraphValue* const> inputs() const { return body_->inputs(); }
  std::span<GraphValue* const> outputs() const { return body_->outputs(); }

  // Creates a node that is not in a block yet.
  Node* create(NodeKind kind, std::span<GraphValue* const> inputs = {});
  // Creates an operator with outputs of the schema's return types; the inputs determine the type variables.
  Node* create(const ops::Op& op, std::span<GraphValue* const> inputs);
  // Creates a constant whose output has type_of(value), or `type` if given.
  Node* create_constant(ops::Value value, ops::TypePtr type = nullptr);

  // Creates a node of the same kind with the same name, constant, output types and location, but with these inputs and
  // without blocks.
  Node* create_like(const Node& node, std::span<GraphValue* const> inputs);

  // Copies the nodes of `source` before `position` (to the end of `target` if null), with `arguments` for its inputs.
  // Returns the values that correspond to its outputs. A source in this graph may use outer values; these stay the
  // same.
  std::vector<GraphValue*> inline_block(const Block& source, std::span<GraphValue* const> arguments, Block* target,
                                        Node* position);
  std::unique_ptr<Graph> clone() const;
  size_t node_count() const { return nodes_.size(); }
  // An upper bound of the ids of values and nodes, for tables by id.
  int value_id_bound() const { return next_id_; }
  int node_id_bound() const { return next_node_id_; }

 private:
  friend class GraphValue;
  friend class Node;
  friend class Block;
  static void add_use(GraphValue* value, GraphValue::Use use);
  static void remove_use(GraphValue* value, size_t use_slot);
  static size_t& use_slot_of(const GraphValue::Use& use);
  template <class T>
  static void free_slot(std::vector<std::unique_ptr<T>>& all, size_t slot);
  void free_value(GraphValue* value);
  void free_node(Node* node);
  void free_block(Block* block);
  Block* new_block(Node* owner);
  GraphValue* new_value(ops::TypePtr type);
  // An item is freed by moving the last one into its place, which takes constant time.
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<GraphValue>> values_;
  Block* body_ = nullptr;
  int next_id_ = 0, next_node_id_ = 0;
};

}  // namespace tensord::jit
