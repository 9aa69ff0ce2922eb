#include "core/jit/passes/packing.h"

#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/ops/attributes/converts.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::jit {

const ops::PackedOp* packed_of(const Node& node) {
  static const ops::Op* const kOne = ops::find_op(ops::kRunPacked);
  static const ops::Op* const kTwo = ops::find_op(ops::kRunPackedWithOther);
  if (!node.op() || (node.op() != kOne && node.op() != kTwo)) return nullptr;
  const ops::Value* packed = node.input(0)->constant();
  return packed && packed->is_opaque() ? dynamic_cast<const ops::PackedOp*>(packed->to_opaque().get()) : nullptr;
}

namespace {

GraphValue* insert_packed(Node& before, const IntrusivePtr<ops::PackedOp>& packed) {
  return GraphBuilder(&before).constant(ops::Value(IntrusivePtr<ops::OpaqueObject>(packed)), ops::packed_type());
}

// A node after a packed operator that may be fused with it.
struct Candidate {
  Node* producer;
  Node* user;
  ops::BoundCall call;
  ops::Epilogue epilogue;
};

// The only use that reads elements; null if there are several or none.
const GraphValue::Use* only_reader(const GraphValue* value) {
  const GraphValue::Use* reader = nullptr;
  for (const GraphValue::Use& use : value->uses()) {
    if (!use.block && reads_only_shape(*use.node)) continue;
    if (reader || use.block) return nullptr;
    reader = &use;
  }
  return reader;
}

std::optional<Candidate> candidate_after(Node* producer) {
  const GraphValue::Use* use = only_reader(producer->output());
  if (!use || use->node->block() != producer->block()) return std::nullopt;
  Node* user = use->node;
  const ops::Op* op = functional_op(*user);
  const auto* joins = op ? op->attributes.get<ops::EpilogueMaker>() : nullptr;
  if (!joins || user->outputs().size() != 1) return std::nullopt;
  Candidate found{producer, user, {op, {}, static_cast<int>(use->index), -1}, {}};
  for (size_t i = 0; i < user->inputs().size(); ++i) {
    if (i == use->index) {
      found.call.arguments.emplace_back();
    } else if (auto value = known_value(user->input(i))) {
      found.call.arguments.push_back(*value);
    } else if (found.call.other < 0 && user->input(i)->type()->kind() == ops::TypeKind::kTensor) {
      found.call.other = static_cast<int>(i);
      found.call.arguments.emplace_back();
    } else {
      return std::nullopt;
    }
  }
  const bool is_inplace = op != user->op();
  if (found.call.input > 1 || (is_inplace && found.call.input != 0)) return std::nullopt;
  if (is_inplace) found.call.in_place = user->op();
  auto epilogue = joins->says(found.call.arguments);
  if (!epilogue) return std::nullopt;
  found.epilogue = *epilogue;
  const bool takes_two = epilogue->kind == ops::Epilogue::Kind::kAdd;
  // A sum may have another shape and comes later in the text, so no node may query the shape before it.
  if (takes_two && producer->output()->uses().size() != 1) return std::nullopt;
  if (takes_two != (found.call.other >= 0) || (!takes_two && found.call.input != 0)) return std::nullopt;
  return found;
}

// Whether the producer may run at the place of the user: no node in between writes its inputs.
bool can_move_to(const Graph& graph, const Node* producer, const Node* user) {
  bool may_write = false;
  for (const Node* node = producer->next(); node && node != user; node = node->next()) {
    const bool is_quiet = node->op()
                              ? node->is_pure_op()
                              : node->blocks().empty() && node->kind() != NodeKind::kSetAttr &&
                                    node->kind() != NodeKind::kCallMethod && node->kind() != NodeKind::kCallFunction &&
                                    node->kind() != NodeKind::kCallValue;
    may_write = may_write || !is_quiet;
  }
  if (!may_write) return true;
  const AliasAnalysis alias(graph);
  for (const GraphValue* input : producer->inputs()) {
    if (alias.may_be_written_between(input, producer, user)) return false;
  }
  return true;
}

// Returns the node that runs the fused operator, or null.
Node* join(Graph& graph, PassContext& context, const Candidate& found) {
  IntrusivePtr<ops::PackedOp> joined = packed_of(*found.producer)->with(found.call, found.epilogue);
  if (!joined) return nullptr;
  const bool takes_two = found.call.other >= 0;
  if (takes_two && !can_move_to(graph, found.producer, found.user)) return nullptr;
  if (!context.take_change()) return nullptr;
  if (!takes_two) {
    set_packed(*found.producer, joined);
    found.user->output()->replace_all_uses_with(found.producer->output());
    found.user->destroy();
    return found.producer;
  }
  GraphValue* other = found.user->input(static_cast<size_t>(found.call.other));
  GraphValue* const inputs[] = {insert_packed(*found.user, joined), found.producer->input(1), other};
  Node* node = GraphBuilder(found.user).call(ops::get_op(ops::kRunPackedWithOther), inputs);
  found.user->output()->replace_all_uses_with(node->output());
  found.user->destroy();
  found.producer->destroy();
  return node;
}

}  // namespace

void set_packed(Node& node, const IntrusivePtr<ops::PackedOp>& packed) {
  node.replace_input(0, insert_packed(node, packed));
}

std::optional<ops::Value> known_value(const GraphValue* value) {
  if (const ops::Value* constant = value->constant()) return *constant;
  const Node* node = value->node();
  if (!node || node->kind() != NodeKind::kListConstruct || value->uses().size() != 1) return std::nullopt;
  std::vector<ops::Value> items;
  for (const GraphValue* input : node->inputs()) {
    const ops::Value* item = input->constant();
    if (!item) return std::nullopt;
    items.push_back(*item);
  }
  return ops::Value(ops::make_list(value->type()->element(), std::move(items)));
}

Tensor halves_of(const GraphValue* value) {
  const Node* node = value->node();
  if (!node || !node->op() || !node->op()->attributes.get<ops::Converts>()) return {};
  std::vector<ops::Value> arguments;
  for (const GraphValue* input : node->inputs()) {
    const ops::Value* constant = input->constant();
    if (!constant) return {};
    arguments.push_back(*constant);
  }
  if (!arguments[0].is_strided()) return {};
  const Tensor halves = arguments[0].to_tensor();
  const bool is_half = halves.dtype() == DType::kFloat16 || halves.dtype() == DType::kBFloat16;
  if (!is_half || halves.is_meta() || halves.device().kind != DeviceKind::kCPU) return {};
  arguments[0] = Tensor::meta_strided(halves.sizes(), halves.strides(), halves.dtype(), halves.device());
  try {
    const Tensor result = ops::run(*node->op(), arguments).front().to_tensor();
    const bool is_plain = result.dtype() == DType::kFloat32 && result.device() == halves.device() && result.is_meta();
    return is_plain && result.strides() == halves.strides() ? halves : Tensor();
  } catch (const Error&) {
    return {};  // the run reports the error
  }
}

bool reads_only_shape(const Node& node) { return node.op() && node.op()->reads_only_shape; }

const ops::Op* functional_op(const Node& node) {
  const ops::Op* op = node.op();
  if (!op || !op->base) return op;
  return op->base->schema.name != op->schema.name ? op->base : nullptr;
}

bool join_epilogues(Graph& graph, PassContext& context, bool (*accepts)(ops::Epilogue::Kind)) {
  bool changed = false;
  // Producers are collected first, because fusing destroys nodes ahead of the walk.
  std::vector<Node*> producers;
  for_each_node(graph.block(), [&](Node* node) {
    if (packed_of(*node)) producers.push_back(node);
  });
  for (Node* producer : producers) {
    while (producer) {
      const auto found = candidate_after(producer);
      producer = found && accepts(found->epilogue.kind) ? join(graph, context, *found) : nullptr;
      changed = changed || producer;
    }
  }
  return changed;
}

}  // namespace tensord::jit
