#include "core/jit/ir/graph.h"

#include <unordered_map>

#include "core/base/error.h"
#include "core/jit/ir/type_match.h"

namespace tensord::jit {

std::string SourceLocation::str() const {
  if (!file_name || line == 0) return {};
  // Absolute folders are private to the model's author, so only the file name remains.
  const bool is_absolute = file_name->starts_with('/');
  const size_t begin = is_absolute ? file_name->rfind('/') + 1 : 0;
  return file_name->substr(begin) + ":" + std::to_string(line);
}

const char* to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::kOp: return "";
    case NodeKind::kConstant: return "prim::Constant";
    case NodeKind::kIf: return "prim::If";
    case NodeKind::kLoop: return "prim::Loop";
    case NodeKind::kGetAttr: return "prim::GetAttr";
    case NodeKind::kSetAttr: return "prim::SetAttr";
    case NodeKind::kCallMethod: return "prim::CallMethod";
    case NodeKind::kCallFunction: return "prim::CallFunction";
    case NodeKind::kCallValue: return "prim::CallValue";
    case NodeKind::kCreateObject: return "prim::CreateObject";
    case NodeKind::kListConstruct: return "prim::ListConstruct";
    case NodeKind::kTupleConstruct: return "prim::TupleConstruct";
    case NodeKind::kDictConstruct: return "prim::DictConstruct";
    case NodeKind::kListUnpack: return "prim::ListUnpack";
    case NodeKind::kTupleUnpack: return "prim::TupleUnpack";
    case NodeKind::kTupleIndex: return "prim::TupleIndex";
    case NodeKind::kIsInstance: return "prim::isinstance";
    case NodeKind::kUncheckedCast: return "prim::unchecked_cast";
    case NodeKind::kUninitialized: return "prim::Uninitialized";
    case NodeKind::kFork: return "prim::fork";
    case NodeKind::kWait: return "prim::wait";
    case NodeKind::kPlan: return "prim::Plan";
  }
  return "";
}

// ---- uses

size_t& Graph::use_slot_of(const GraphValue::Use& use) {
  return use.block ? use.block->use_slots_[use.index] : use.node->use_slots_[use.index];
}

// REQUIRES: the user's use_slots_ already has an element for this use.
void Graph::add_use(GraphValue* value, GraphValue::Use use) {
  use_slot_of(use) = value->uses_.size();
  value->uses_.push_back(use);
}

void Graph::remove_use(GraphValue* value, size_t use_slot) {
  check_internal(use_slot < value->uses_.size(), "use list of %", value->id_, " is damaged");
  if (use_slot + 1 != value->uses_.size()) {
    value->uses_[use_slot] = value->uses_.back();
    use_slot_of(value->uses_[use_slot]) = use_slot;
  }
  value->uses_.pop_back();
}

Graph* GraphValue::graph() const { return block_ ? block_->graph_ : node_->graph_; }

void GraphValue::replace_all_uses_with(GraphValue* other) {
  if (other == this) return;
  std::vector<Use> uses = std::move(uses_);
  uses_.clear();
  for (const Use& use : uses) {
    (use.block ? use.block->outputs_ : use.node->inputs_)[use.index] = other;
    Graph::add_use(other, use);
  }
}

const ops::Value* GraphValue::constant() const {
  return node_ && node_->kind_ == NodeKind::kConstant ? &node_->constant_ : nullptr;
}

// ---- nodes

bool Node::is_pure_op() const {
  if (!op_ || op_->is_pure || op_->writes_when < 0) return op_ && op_->is_pure;
  const ops::Value* writes = input(static_cast<size_t>(op_->writes_when))->constant();
  return writes && writes->is_bool() && !writes->to_bool();
}

std::string Node::kind_name() const { return op_ ? op_->schema.full_name() : to_string(kind_); }

void Node::add_input(GraphValue* value) {
  inputs_.push_back(value);
  use_slots_.push_back(0);
  Graph::add_use(value, {this, nullptr, inputs_.size() - 1});
}

void Node::insert_input(size_t i, GraphValue* value) {
  check_internal(i <= inputs_.size(), kind_name(), ": input ", i, " of ", inputs_.size());
  for (size_t k = i; k < inputs_.size(); ++k) ++inputs_[k]->uses_[use_slots_[k]].index;
  inputs_.insert(inputs_.begin() + static_cast<std::ptrdiff_t>(i), value);
  use_slots_.insert(use_slots_.begin() + static_cast<std::ptrdiff_t>(i), 0);
  Graph::add_use(value, {this, nullptr, i});
}

void Node::replace_input(size_t i, GraphValue* value) {
  check_internal(i < inputs_.size(), kind_name(), ": input ", i, " of ", inputs_.size());
  if (inputs_[i] == value) return;
  Graph::remove_use(inputs_[i], use_slots_[i]);
  inputs_[i] = value;
  Graph::add_use(value, {this, nullptr, i});
}

void Node::remove_input(size_t i) {
  check_internal(i < inputs_.size(), kind_name(), ": input ", i, " of ", inputs_.size());
  Graph::remove_use(inputs_[i], use_slots_[i]);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  use_slots_.erase(use_slots_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t k = i; k < inputs_.size(); ++k) --inputs_[k]->uses_[use_slots_[k]].index;
}

GraphValue* Node::add_output(ops::TypePtr type) {
  GraphValue* value = graph_->new_value(std::move(type));
  value->node_ = this;
  value->block_ = block_;
  value->index_ = outputs_.size();
  outputs_.push_back(value);
  return value;
}

void Node::remove_output(size_t i) {
  check_internal(i < outputs_.size() && !outputs_[i]->has_uses(), kind_name(), ": output ", i, " cannot be removed");
  graph_->free_value(outputs_[i]);
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t k = i; k < outputs_.size(); ++k) outputs_[k]->index_ = k;
}

Block* Node::add_block() {
  blocks_.push_back(graph_->new_block(this));
  return blocks_.back();
}

void Node::append_to(Block* block) {
  check_internal(block_ == nullptr, kind_name(), " is in a block already");
  block_ = block;
  previous_ = block->last_;
  next_ = nullptr;
  (previous_ ? previous_->next_ : block->first_) = this;
  block->last_ = this;
  for (GraphValue* output : outputs_) output->block_ = block;
}

void Node::insert_before(Node* other) {
  check_internal(block_ == nullptr && other->block_, kind_name(), " is in a block already");
  block_ = other->block_;
  next_ = other;
  previous_ = other->previous_;
  (previous_ ? previous_->next_ : block_->first_) = this;
  other->previous_ = this;
  for (GraphValue* output : outputs_) output->block_ = block_;
}

void Node::insert_after(Node* other) {
  if (other->next_) {
    insert_before(other->next_);
  } else {
    append_to(other->block_);
  }
}

void Node::move_before(Node* other) {
  if (other == this) return;
  unlink();
  insert_before(other);
}

void Node::move_to_end(Block* block) {
  unlink();
  append_to(block);
}

void Node::unlink() {
  if (!block_) return;
  (previous_ ? previous_->next_ : block_->first_) = next_;
  (next_ ? next_->previous_ : block_->last_) = previous_;
  block_ = nullptr;
  next_ = previous_ = nullptr;
}

bool Node::has_output_uses() const {
  for (const GraphValue* output : outputs_) {
    if (output->has_uses()) return true;
  }
  return false;
}

// Removes the node and its blocks from the use lists, so that nodes can be freed in any order.
void Node::drop_uses() {
  for (size_t i = 0; i < inputs_.size(); ++i) Graph::remove_use(inputs_[i], use_slots_[i]);
  inputs_.clear();
  use_slots_.clear();
  for (Block* block : blocks_) {
    for (size_t i = 0; i < block->outputs_.size(); ++i) Graph::remove_use(block->outputs_[i], block->use_slots_[i]);
    block->outputs_.clear();
    block->use_slots_.clear();
    for (Node* node = block->first_; node; node = node->next_) node->drop_uses();
  }
}

void Node::free_blocks() {
  for (Block* block : blocks_) {
    for (Node* node = block->first_; node;) {
      Node* next = node->next_;
      node->free_blocks();
      for (GraphValue* output : node->outputs_) graph_->free_value(output);
      graph_->free_node(node);
      node = next;
    }
    for (GraphValue* input : block->inputs_) graph_->free_value(input);
    graph_->free_block(block);
  }
  blocks_.clear();
}

void Node::destroy() {
  check_internal(!has_output_uses(), kind_name(), " is destroyed while it is used");
  drop_uses();
  free_blocks();
  unlink();
  for (GraphValue* output : outputs_) graph_->free_value(output);
  graph_->free_node(this);
}

// ---- blocks

GraphValue* Block::add_input(ops::TypePtr type, std::string name) {
  GraphValue* value = graph_->new_value(std::move(type));
  value->name_ = std::move(name);
  value->block_ = this;
  value->index_ = inputs_.size();
  inputs_.push_back(value);
  return value;
}

void Block::remove_input(size_t i) {
  check_internal(i < inputs_.size() && !inputs_[i]->has_uses(), "block input ", i, " cannot be removed");
  graph_->free_value(inputs_[i]);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t k = i; k < inputs_.size(); ++k) inputs_[k]->index_ = k;
}

void Block::add_output(GraphValue* value) {
  outputs_.push_back(value);
  use_slots_.push_back(0);
  Graph::add_use(value, {owner_, this, outputs_.size() - 1});
}

void Block::replace_output(size_t i, GraphValue* value) {
  check_internal(i < outputs_.size(), "block output ", i, " of ", outputs_.size());
  if (outputs_[i] == value) return;
  Graph::remove_use(outputs_[i], use_slots_[i]);
  outputs_[i] = value;
  Graph::add_use(value, {owner_, this, i});
}

void Block::remove_output(size_t i) {
  check_internal(i < outputs_.size(), "block output ", i, " of ", outputs_.size());
  Graph::remove_use(outputs_[i], use_slots_[i]);
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  use_slots_.erase(use_slots_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t k = i; k < outputs_.size(); ++k) --outputs_[k]->uses_[use_slots_[k]].index;
}

// ---- graphs

Graph::Graph() { body_ = new_block(nullptr); }

Graph::~Graph() = default;

Block* Graph::new_block(Node* owner) {
  Block* block = blocks_.emplace_back(std::make_unique<Block>()).get();
  block->slot_ = blocks_.size() - 1;
  block->graph_ = this;
  block->owner_ = owner;
  return block;
}

GraphValue* Graph::new_value(ops::TypePtr type) {
  GraphValue* value = values_.emplace_back(std::make_unique<GraphValue>()).get();
  value->slot_ = values_.size() - 1;
  value->id_ = next_id_++;
  value->type_ = std::move(type);
  return value;
}

template <class T>
void Graph::free_slot(std::vector<std::unique_ptr<T>>& all, size_t slot) {
  if (slot + 1 != all.size()) {
    std::swap(all[slot], all.back());
    all[slot]->slot_ = slot;
  }
  all.pop_back();
}

void Graph::free_value(GraphValue* value) { free_slot(values_, value->slot_); }
void Graph::free_node(Node* node) { free_slot(nodes_, node->slot_); }
void Graph::free_block(Block* block) { free_slot(blocks_, block->slot_); }

Node* Graph::create(NodeKind kind, std::span<GraphValue* const> inputs) {
  Node* node = nodes_.emplace_back(std::make_unique<Node>()).get();
  node->slot_ = nodes_.size() - 1;
  node->graph_ = this;
  node->id_ = next_node_id_++;
  node->kind_ = kind;
  node->inputs_.reserve(inputs.size());
  node->use_slots_.reserve(inputs.size());
  for (GraphValue* input : inputs) node->add_input(input);
  return node;
}

Node* Graph::create(const ops::Op& op, std::span<GraphValue* const> inputs) {
  Node* node = create(NodeKind::kOp, inputs);
  node->op_ = &op;
  TypeBindings bindings;
  size_t count = std::min(inputs.size(), op.schema.arguments.size());
  for (size_t i = 0; i < count; ++i) match_type(*op.schema.arguments[i].type, inputs[i]->type(), bindings);
  for (const ops::Argument& returned : op.schema.returns) node->add_output(substitute(returned.type, bindings));
  return node;
}

Node* Graph::create_constant(ops::Value value, ops::TypePtr type) {
  Node* node = create(NodeKind::kConstant);
  node->add_output(type ? std::move(type) : ops::type_of(value));
  node->constant_ = std::move(value);
  return node;
}

namespace {

// Copies blocks into a graph and maps old values to new ones.
class BlockCopier {
 public:
  BlockCopier(Graph& target, bool same_graph) : target_(target), same_graph_(same_graph) {}

  void map(const GraphValue* from, GraphValue* to) { values_[from] = to; }

  GraphValue* get(GraphValue* value) const {
    auto it = values_.find(value);
    if (it != values_.end()) return it->second;
    check_internal(same_graph_, "a copied block uses %", value->id(), " of another graph");
    return value;
  }

  void copy_nodes(const Block& source, Block* block, Node* position) {
    // The end is fixed first, because source and target may be the same block.
    Node* const last = source.last();
    for (Node* node = source.first(); node; node = node->next()) {
      Node* copy = copy_node(*node);
      if (position) {
        copy->insert_before(position);
      } else {
        copy->append_to(block);
      }
      if (node == last) break;
    }
  }

 private:
  Node* copy_node(const Node& node) {
    std::vector<GraphValue*> inputs;
    inputs.reserve(node.inputs().size());
    for (GraphValue* input : node.inputs()) inputs.push_back(get(input));
    Node* copy = target_.create_like(node, inputs);
    for (size_t i = 0; i < node.outputs().size(); ++i) map(node.output(i), copy->output(i));
    for (const Block* block : node.blocks()) {
      Block* block_copy = copy->add_block();
      for (const GraphValue* input : block->inputs()) {
        map(input, block_copy->add_input(input->type(), input->name()));
      }
      copy_nodes(*block, block_copy, nullptr);
      for (GraphValue* output : block->outputs()) block_copy->add_output(get(output));
    }
    return copy;
  }

  Graph& target_;
  bool same_graph_;
  std::unordered_map<const GraphValue*, GraphValue*> values_;
};

}  // namespace

Node* Graph::create_like(const Node& node, std::span<GraphValue* const> inputs) {
  Node* copy = create(node.kind_, inputs);
  copy->op_ = node.op_;
  copy->name_ = node.name_;
  copy->constant_ = node.constant_;
  copy->index_ = node.index_;
  copy->types_ = node.types_;
  copy->location_ = node.location_;
  for (const GraphValue* output : node.outputs_) copy->add_output(output->type_)->name_ = output->name_;
  return copy;
}

std::vector<GraphValue*> Graph::inline_block(const Block& source, std::span<GraphValue* const> arguments, Block* target,
                                             Node* position) {
  check_internal(arguments.size() == source.inputs().size(), "a block of ", source.inputs().size(),
                 " inputs is inlined with ", arguments.size());
  BlockCopier copier(*this, source.graph() == this);
  for (size_t i = 0; i < arguments.size(); ++i) copier.map(source.inputs()[i], arguments[i]);
  copier.copy_nodes(source, target, position);
  std::vector<GraphValue*> outputs;
  for (GraphValue* output : source.outputs()) outputs.push_back(copier.get(output));
  return outputs;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::vector<GraphValue*> arguments;
  for (const GraphValue* input : inputs()) arguments.push_back(copy->body_->add_input(input->type(), input->name()));
  for (GraphValue* output : copy->inline_block(*body_, arguments, copy->body_, nullptr))
    copy->body_->add_output(output);
  return copy;
}

}  // namespace tensord::jit
