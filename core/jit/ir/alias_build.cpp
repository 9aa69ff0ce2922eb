// AliasAnalysis, construction from a graph. The queries are in alias.cpp.
#include <algorithm>

#include "core/base/cancellation.h"
#include "core/jit/ir/alias.h"
#include "core/jit/ir/walk.h"

namespace tensord::jit {

using ops::Argument;
using ops::Type;
using ops::TypeKind;
using ops::Value;

namespace {

const Type& strip_optional(const Type& type) { return type.kind() == TypeKind::kOptional ? *type.element() : type; }

bool is_container(const Type& type) {
  TypeKind kind = strip_optional(type).kind();
  return kind == TypeKind::kList || kind == TypeKind::kDict;
}

// Whether a result without annotation may still contain values of the arguments: copies of lists and dicts, and any
// type variable.
bool may_hold_arguments(const Type& type) {
  if (type.kind() == TypeKind::kVar || type.kind() == TypeKind::kAny) return true;
  if (type.kind() == TypeKind::kTensor || !AliasAnalysis::is_mutable_type(type)) return false;
  return true;
}

}  // namespace

void AliasAnalysis::collect(const Block& block) {
  for_each_node(block, [this](const Node& node) {
    if (node.kind() == NodeKind::kSetAttr) assigned_names_.insert(node.name());
  });
}

void AliasAnalysis::analyze(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    check_work_cancelled();
    order_[static_cast<size_t>(node->id())].begin = next_order_++;
    analyze_node(*node);
    // A value without a location would count as made after the snapshot.
    for (const GraphValue* output : node->outputs()) cell_of(output);
    for (const Block* inner : node->blocks()) {
      for (const GraphValue* input : inner->inputs()) cell_of(input);
    }
    order_[static_cast<size_t>(node->id())].end = next_order_ - 1;
  }
}

void AliasAnalysis::analyze_node(const Node& node) {
  for (const Block* block : node.blocks()) {
    if (node.kind() != NodeKind::kFork && node.kind() != NodeKind::kPlan) continue;
    for (size_t i = 0; i < block->inputs().size(); ++i) unify_values(node.input(i), block->inputs()[i]);
  }
  for (const Block* block : node.blocks()) analyze(*block);
  switch (node.kind()) {
    case NodeKind::kOp: return analyze_op(node);
    case NodeKind::kConstant: {
      // A constant tuple of numbers has a cell by its value but none by its type, because it may be part of another
      // value.
      if (!is_mutable_type(*node.output()->type())) return;
      if (int cell = heap_cell(node.constant()); cell != kNoMemory) value_slot(node.output()) = cell;
      return;
    }
    case NodeKind::kIf:
      for (const Block* block : node.blocks()) {
        for (size_t i = 0; i < node.outputs().size(); ++i) unify_values(block->outputs()[i], node.output(i));
      }
      return;
    case NodeKind::kLoop: return analyze_loop(node);
    case NodeKind::kGetAttr: return analyze_get_attribute(node);
    case NodeKind::kSetAttr: return analyze_set_attribute(node);
    case NodeKind::kCallMethod:
    case NodeKind::kCallFunction:
    case NodeKind::kCallValue: return analyze_unknown_call(node);
    case NodeKind::kListConstruct:
    case NodeKind::kDictConstruct:
    case NodeKind::kTupleConstruct:
    case NodeKind::kListUnpack:
    case NodeKind::kTupleUnpack:
    case NodeKind::kTupleIndex: return analyze_container(node);
    case NodeKind::kUncheckedCast:
      if (int cell = cell_of(node.output()); cell != kNoMemory) {
        int from = cell_of(node.input());
        unify(cell, from != kNoMemory ? from : kWildcard);
        if (const Value* known = known_value(node.input())) known_[node.output()] = *known;
      }
      return;
    case NodeKind::kFork:
      for (const GraphValue* output : node.blocks()[0]->outputs()) {
        if (int cell = cell_of(output); cell != kNoMemory) unify(content(cell_of(node.output())), cell);
      }
      return;
    case NodeKind::kPlan:
      for (size_t i = 0; i < node.outputs().size(); ++i) unify_values(node.blocks()[0]->outputs()[i], node.output(i));
      return;
    case NodeKind::kWait:
      if (int cell = cell_of(node.output()); cell != kNoMemory) unify(cell, content(cell_of(node.input())));
      return;
    case NodeKind::kCreateObject:
    case NodeKind::kIsInstance:
    case NodeKind::kUninitialized:
      for (const GraphValue* output : node.outputs()) cell_of(output);
      return;
  }
}

void AliasAnalysis::analyze_container(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kListConstruct:
    case NodeKind::kDictConstruct: {
      bool transient = is_transient(node);
      for (const GraphValue* input : node.inputs()) {
        int cell = cell_of(input);
        if (cell == kNoMemory) continue;
        if (transient)
          cells_[static_cast<size_t>(cell_of(node.output()))].members.push_back(cell);
        else
          unify(content(cell_of(node.output())), cell);
      }
      return;
    }
    case NodeKind::kTupleConstruct:
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        if (int cell = cell_of(node.input(i)); cell != kNoMemory)
          unify(field(cell_of(node.output()), std::to_string(i)), cell);
      }
      return;
    case NodeKind::kListUnpack:
      for (const GraphValue* output : node.outputs()) {
        int cell = cell_of(output);
        if (cell != kNoMemory) unify(cell, content(cell_of(node.input())));
      }
      return;
    case NodeKind::kTupleUnpack:
    case NodeKind::kTupleIndex:
      for (const GraphValue* output : node.outputs()) {
        size_t index = node.kind() == NodeKind::kTupleIndex ? static_cast<size_t>(node.index()) : output->index();
        int cell = cell_of(output), tuple = cell_of(node.input());
        if (cell != kNoMemory && tuple != kNoMemory) unify(cell, field(tuple, std::to_string(index)));
      }
      return;
    default: return;
  }
}

void AliasAnalysis::analyze_loop(const Node& node) {
  const Block& body = *node.blocks()[0];
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    unify_values(node.input(i + 2), body.inputs()[i + 1]);
    unify_values(body.outputs()[i + 1], body.inputs()[i + 1]);
    unify_values(body.outputs()[i + 1], node.output(i));
    unify_values(node.input(i + 2), node.output(i));
  }
}

// ---- operators

// The single set of values that a '*' in this schema can stand for.
int AliasAnalysis::wildcard_group(const Node& node) {
  const auto& arguments = node.op()->schema.arguments;
  int group = -1;
  const auto join = [&](int cell) {
    if (group < 0)
      group = cell;
    else
      unify(group, cell);
  };
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    int cell = cell_of(node.input(i));
    if (cell == kNoMemory) continue;
    const Type& type = *node.input(i)->type();
    if (is_container(type)) {
      join(content(cell));
    } else if (type.kind() != TypeKind::kTensor) {
      join(cell);
    }
    bool is_marked =
        i >= arguments.size() || arguments[i].alias.set == '*' || arguments[i].type->kind() == TypeKind::kVar;
    if (is_marked) join(cell);
  }
  if (group < 0) return kWildcard;
  collapse(group);
  return find(group);
}

void AliasAnalysis::analyze_marked_return(const Node& node, size_t i) {
  const ops::Schema& schema = node.op()->schema;
  const GraphValue* output = node.output(i);
  for (size_t k = 0; k < schema.arguments.size(); ++k) {
    const Argument& argument = schema.arguments[k];
    if (argument.alias.set != schema.returns[i].alias.set) continue;
    int from = cell_of(node.input(k)), to = cell_of(output);
    if (from == kNoMemory || to == kNoMemory) continue;
    bool from_list = is_container(*argument.type), to_list = is_container(*schema.returns[i].type);
    if (from_list == to_list) {
      unify(from, to);
    } else if (to_list) {
      unify(from, content(to));
    } else {
      unify(content(from), to);
    }
  }
}

void AliasAnalysis::analyze_op(const Node& node) {
  const ops::Schema& schema = node.op()->schema;
  bool has_wildcard = schema.is_vararg && schema.is_vararg_return;
  int written_list = -1;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    // "extend" stores the contents of other arguments without an annotation for them.
    bool stores = argument.alias.is_write && is_container(*argument.type);
    has_wildcard |= argument.alias.set == '*' || stores;
    if (stores) written_list = cell_of(node.input(i));
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const GraphValue* output = node.output(i);
    if (!is_mutable_type(*output->type())) continue;
    cell_of(output);
    if (i >= schema.returns.size()) {
      has_wildcard = true;
    } else if (char set = schema.returns[i].alias.set; set && set != '*') {
      analyze_marked_return(node, i);
      continue;
    } else if (!set && !may_hold_arguments(*schema.returns[i].type)) {
      continue;
    }
    // A new list of new tensors contains no old memory if no argument is a container.
    bool is_marked = i >= schema.returns.size() || schema.returns[i].alias.set;
    bool takes_holders = std::any_of(node.inputs().begin(), node.inputs().end(), [&](const GraphValue* input) {
      return is_mutable_type(*input->type()) && input->type()->kind() != TypeKind::kTensor;
    });
    // "list += other" returns the list itself.
    if (!is_marked && written_list != kNoMemory && is_container(*output->type())) unify(cell_of(output), written_list);
    if (!is_marked && !takes_holders && schema.returns[i].type->kind() != TypeKind::kVar) continue;
    int group = wildcard_group(node);
    if (is_container(*output->type())) unify(content(cell_of(output)), group);
    if (is_marked || !is_container(*output->type())) unify(cell_of(output), group);
  }
  if (has_wildcard) wildcard_group(node);
}

// A list that only operators read that do not keep its items ("cat([a, b])") does not make its items aliases of each
// other.
bool AliasAnalysis::is_transient(const Node& list) const {
  if (list.kind() != NodeKind::kListConstruct) return false;
  for (const GraphValue::Use& use : list.output()->uses()) {
    if (use.block || use.node->kind() != NodeKind::kOp) return false;
    const ops::Schema& schema = use.node->op()->schema;
    if (use.index >= schema.arguments.size() || schema.is_vararg_return) return false;
    for (const Argument& argument : schema.arguments) {
      if (argument.alias.set == '*') return false;
    }
    if (schema.arguments[use.index].alias.set) return false;
    for (const Argument& returned : schema.returns) {
      if (returned.alias.set == '*' || may_hold_arguments(*returned.type)) return false;
    }
  }
  return true;
}

// ---- attributes and calls

void AliasAnalysis::analyze_get_attribute(const Node& node) {
  const GraphValue* output = node.output();
  bool is_mutable = is_mutable_type(*output->type());
  const Value* known = known_value(node.input());
  if (known && known->is_object()) {
    const ops::Object& object = *known->to_object();
    int slot = object.type->find_attribute(node.name());
    if (slot >= 0 && static_cast<size_t>(slot) < object.slots.size()) {
      const Value& value = object.slots[static_cast<size_t>(slot)];
      int cell = heap_cell(value);
      if (!assigned_names_.contains(node.name())) {
        known_[output] = value;
        if (is_mutable) value_slot(output) = cell;
        return;
      }
      if (cell != kNoMemory) unify(cell, kWildcard);
    }
    if (is_mutable) value_slot(output) = kWildcard;
    return;
  }
  if (!is_mutable) return;
  int holder = cell_of(node.input());
  if (holder == kNoMemory || cells_[static_cast<size_t>(holder)].is_external) {
    // The value is an external object, but it is unknown which one.
    if (self_ || holder != find(kWildcard)) heap_is_wild_ = true;
    value_slot(output) = kWildcard;
    return;
  }
  local_objects_.push_back(holder);
  unify(cell_of(output), field(holder, node.name()));
}

void AliasAnalysis::analyze_set_attribute(const Node& node) {
  int holder = cell_of(node.input(0)), value = cell_of(node.input(1));
  if (holder != kNoMemory && !cells_[static_cast<size_t>(holder)].is_external) {
    local_objects_.push_back(holder);
    if (value != kNoMemory) unify(field(holder, node.name()), value);
    return;
  }
  if (value != kNoMemory) unify(value, kWildcard);
}

void AliasAnalysis::analyze_unknown_call(const Node& node) {
  heap_is_wild_ = true;
  for (const GraphValue* input : node.inputs()) {
    if (int cell = cell_of(input); cell != kNoMemory) unify(cell, kWildcard);
  }
  for (const GraphValue* output : node.outputs()) {
    if (int cell = cell_of(output); cell != kNoMemory) unify(cell, kWildcard);
  }
}

// ---- writes

void AliasAnalysis::finish(const Graph& graph) {
  // Objects that the graph makes but that were merged with external ones.
  for (int cell : local_objects_) {
    if (!cells_[static_cast<size_t>(find(cell))].is_external) continue;
    heap_is_wild_ = true;
    unify(cell, kWildcard);
  }
  if (heap_is_wild_) {
    for (const auto& entry : heap_) {
      if (entry.second != kNoMemory) unify(entry.second, kWildcard);
    }
  }
  record_writes(*graph.block());
  for (const GraphValue* output : graph.outputs()) {
    for (int cell : reachable(output)) cells_[static_cast<size_t>(cell)].escapes = true;
  }
}

void AliasAnalysis::record_writes(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    for (int cell : written_by(node)) {
      Cell& written = cells_[static_cast<size_t>(find(cell))];
      if (!written.writers.empty() && written.writers.back() == node) continue;
      written.writers.push_back(node);
      written.write_order.push_back(order_[static_cast<size_t>(node->id())].begin);
    }
    for (const Block* inner : node->blocks()) record_writes(*inner);
  }
}

}  // namespace tensord::jit
