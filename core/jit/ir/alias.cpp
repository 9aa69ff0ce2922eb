#include "core/jit/ir/alias.h"

#include <algorithm>
#include <utility>

namespace tensord::jit {

using ops::Type;
using ops::TypeKind;
using ops::Value;

bool AliasAnalysis::is_mutable_type(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kComplex:
    case TypeKind::kBool:
    case TypeKind::kString:
    case TypeKind::kNone:
    case TypeKind::kNumber:
    case TypeKind::kDevice:
    case TypeKind::kGenerator:
    case TypeKind::kStream:
    case TypeKind::kEnum:
    case TypeKind::kOpaque: return false;
    case TypeKind::kOptional:
    case TypeKind::kUnion:
    case TypeKind::kTuple:
      // Some NamedTuple types have only a name and no fields.
      if (type.contained().empty()) return !type.name().empty();
      return std::any_of(type.contained().begin(), type.contained().end(),
                         [](const ops::TypePtr& member) { return is_mutable_type(*member); });
    default: return true;
  }
}

AliasAnalysis::~AliasAnalysis() = default;

AliasAnalysis::AliasAnalysis(const Graph& graph, ops::ObjectPtr self)
    : values_(static_cast<size_t>(graph.value_id_bound()), kNotSeen),
      order_(static_cast<size_t>(graph.node_id_bound())),
      self_(std::move(self)) {
  new_cell(true);
  cells_[kWildcard].is_collapsed = true;
  collect(*graph.block());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphValue* input = graph.inputs()[i];
    if (i == 0 && self_) {
      known_[input] = self_;
      value_slot(input) = heap_cell(self_);
    } else if (is_mutable_type(*input->type())) {
      value_slot(input) = kWildcard;
    }
  }
  analyze(*graph.block());
  finish(graph);
}

// ---- cells

int AliasAnalysis::find(int cell) const {
  while (cells_[static_cast<size_t>(cell)].parent != cell) {
    int& parent = cells_[static_cast<size_t>(cell)].parent;
    parent = cells_[static_cast<size_t>(parent)].parent;
    cell = parent;
  }
  return cell;
}

int AliasAnalysis::new_cell(bool is_external) {
  int id = static_cast<int>(cells_.size());
  cells_.push_back({});
  cells_.back().parent = id;
  cells_.back().is_external = is_external;
  return id;
}

// Unifying two cells also unifies their contents. A worklist replaces recursion, because chains of containment may be
// long and even cyclic.
void AliasAnalysis::unify(int first, int second) {
  if (find(first) == find(second)) return;
  std::vector<std::pair<int, int>> work{{first, second}};
  while (!work.empty()) {
    int a = find(work.back().first), b = find(work.back().second);
    work.pop_back();
    if (a == b) continue;
    if (cells_[static_cast<size_t>(a)].fields.size() < cells_[static_cast<size_t>(b)].fields.size()) std::swap(a, b);
    Cell& into = cells_[static_cast<size_t>(a)];
    Cell& from = cells_[static_cast<size_t>(b)];
    from.parent = a;
    into.is_external |= from.is_external;
    bool is_collapsed = into.is_collapsed || from.is_collapsed;
    if (from.content != kNoMemory) {
      if (into.content != kNoMemory)
        work.emplace_back(into.content, from.content);
      else
        into.content = from.content;
    }
    for (auto& [name, cell] : from.fields) {
      const auto [known, is_new] = into.fields.try_emplace(name, cell);
      if (!is_new) work.emplace_back(known->second, cell);
    }
    into.members.insert(into.members.end(), from.members.begin(), from.members.end());
    from.fields.clear();
    from.members.clear();
    if (!is_collapsed) continue;
    into.is_collapsed = true;
    if (into.content != kNoMemory) work.emplace_back(a, into.content);
    for (auto& [name, cell] : into.fields) work.emplace_back(a, cell);
    for (int member : into.members) work.emplace_back(a, member);
    into.content = kNoMemory;
    into.fields.clear();
    into.members.clear();
  }
}

void AliasAnalysis::unify_values(const GraphValue* a, const GraphValue* b) {
  int cell_a = cell_of(a), cell_b = cell_of(b);
  if (cell_a != kNoMemory && cell_b != kNoMemory) unify(cell_a, cell_b);
}

void AliasAnalysis::collapse(int cell) {
  int collapsed = new_cell();
  cells_[static_cast<size_t>(collapsed)].is_collapsed = true;
  unify(cell, collapsed);
}

int AliasAnalysis::content(int cell) {
  cell = find(cell);
  if (cells_[static_cast<size_t>(cell)].is_collapsed) return cell;
  if (cells_[static_cast<size_t>(cell)].content == kNoMemory) {
    int made = new_cell(cells_[static_cast<size_t>(cell)].is_external);
    cells_[static_cast<size_t>(cell)].content = made;
  }
  return find(cells_[static_cast<size_t>(cell)].content);
}

int AliasAnalysis::field(int cell, const std::string& name) {
  cell = find(cell);
  Cell& holder = cells_[static_cast<size_t>(cell)];
  if (holder.is_collapsed) return cell;
  if (const auto known = holder.fields.find(name); known != holder.fields.end()) return find(known->second);
  int made = new_cell(holder.is_external);
  cells_[static_cast<size_t>(cell)].fields.emplace(name, made);
  return made;
}

int AliasAnalysis::cell_of(const GraphValue* value) {
  int& slot = value_slot(value);
  if (slot == kNotSeen) slot = is_mutable_type(*value->type()) ? new_cell() : kNoMemory;
  return slot < 0 ? kNoMemory : find(slot);
}

// ---- memory that exists before the run

const void* AliasAnalysis::heap_key(const Value& value) const {
  switch (value.tag()) {
    // Tensors without storage cannot be written; one key for all does no harm.
    case Value::Tag::kTensor:
      if (!value.is_strided()) return value.to_tensor().impl();
      return value.to_tensor().storage().get();
    case Value::Tag::kList: return value.to_list().get();
    case Value::Tag::kDict: return value.to_dict().get();
    case Value::Tag::kTuple: return value.to_tuple().get();
    case Value::Tag::kObject: return value.to_object().get();
    case Value::Tag::kOpaque: return nullptr;  // what is packed is never written
    default: return nullptr;
  }
}

int AliasAnalysis::heap_cell(const Value& value, int depth) {
  constexpr int kMaxDepth = 64;
  if (value.is_none() || value.is_number() || value.is_string() || value.is_device() || value.is_enum())
    return kNoMemory;
  const void* key = heap_key(value);
  if (value.is_opaque()) return kNoMemory;
  if (depth > kMaxDepth || (!key && !value.is_strided())) return kWildcard;
  auto [it, is_new] = heap_.try_emplace(key, -1);
  if (!is_new) return find(it->second);
  int cell = it->second = new_cell(true);
  const auto hold = [&](int holder, const Value& item) {
    if (int inner = heap_cell(item, depth + 1); inner != kNoMemory) unify(holder, inner);
  };
  if (value.is_list() && is_mutable_type(*value.to_list()->element)) {
    for (const Value& item : value.to_list()->items) hold(content(cell), item);
  } else if (value.is_dict()) {
    for (const auto& entry : value.to_dict()->items()) {
      hold(content(cell), entry.first);
      hold(content(cell), entry.second);
    }
  } else if (value.is_tuple()) {
    const auto& items = value.to_tuple()->items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (int inner = heap_cell(items[i], depth + 1); inner != kNoMemory) unify(field(cell, std::to_string(i)), inner);
    }
  }
  return find(cell);
}

int AliasAnalysis::location_of_memory(const Value& value) const {
  if (heap_is_wild_) return wildcard();
  auto it = heap_.find(heap_key(value));
  return it == heap_.end() ? -1 : find(it->second);
}

const Value* AliasAnalysis::known_value(const GraphValue* value) const {
  auto it = known_.find(value);
  return it == known_.end() ? value->constant() : &it->second;
}

// ---- queries

int AliasAnalysis::location(const GraphValue* value) const {
  size_t id = static_cast<size_t>(value->id());
  if (id < values_.size() && values_[id] != kNotSeen) return values_[id] < 0 ? kNoMemory : find(values_[id]);
  return is_mutable_type(*value->type()) ? wildcard() : -1;
}

bool AliasAnalysis::is_external(int location) const { return cells_[static_cast<size_t>(find(location))].is_external; }

bool AliasAnalysis::is_given_back(int location) const { return cells_[static_cast<size_t>(find(location))].escapes; }

const std::vector<const Node*>& AliasAnalysis::writers(int location) const {
  return cells_[static_cast<size_t>(find(location))].writers;
}

std::vector<int> AliasAnalysis::reachable(const GraphValue* value) const { return reachable(location(value)); }

template <class Visit>
bool AliasAnalysis::any_reachable(int location, Visit&& visit) const {
  if (location == kNoMemory) return false;
  int start = find(location);
  const Cell& first = cells_[static_cast<size_t>(start)];
  // Most locations are tensors and contain nothing.
  if (first.content == kNoMemory && first.fields.empty() && first.members.empty()) return visit(start);
  visit_marks_.resize(cells_.size(), 0);
  ++walk_;
  std::vector<int> work{start};
  visit_marks_[static_cast<size_t>(start)] = walk_;
  const auto add = [&](int cell) {
    cell = find(cell);
    if (std::exchange(visit_marks_[static_cast<size_t>(cell)], walk_) != walk_) work.push_back(cell);
  };
  while (!work.empty()) {
    int next = work.back();
    work.pop_back();
    if (visit(next)) return true;
    const Cell& cell = cells_[static_cast<size_t>(next)];
    if (cell.content != kNoMemory) add(cell.content);
    for (const auto& entry : cell.fields) add(entry.second);
    for (int member : cell.members) add(member);
  }
  return false;
}

std::vector<int> AliasAnalysis::reachable(int location) const {
  std::vector<int> found;
  any_reachable(location, [&](int cell) {
    found.push_back(cell);
    return false;
  });
  return found;
}

bool AliasAnalysis::may_alias(const GraphValue* a, const GraphValue* b) const {
  int location_a = location(a);
  return location_a != kNoMemory && location_a == location(b);
}

bool AliasAnalysis::has_writers(const GraphValue* value) const {
  return any_reachable(location(value), [&](int cell) { return !write_order(cell).empty(); });
}

const AliasAnalysis::Span* AliasAnalysis::span_of(const Node* node) const {
  size_t id = static_cast<size_t>(node->id());
  return id < order_.size() && order_[id].begin >= 0 ? &order_[id] : nullptr;
}

bool AliasAnalysis::writes_to(const Node* node, const GraphValue* value) const {
  const Span* span = span_of(node);
  if (!span) return true;
  return any_reachable(location(value), [&](int cell) {
    const std::vector<int>& all = write_order(cell);
    auto it = std::lower_bound(all.begin(), all.end(), span->begin);
    return it != all.end() && *it <= span->end;
  });
}

bool AliasAnalysis::may_be_written_between(const GraphValue* value, const Node* from, const Node* to) const {
  const Span *start = span_of(from), *stop = span_of(to);
  if (!start || !stop) return has_writers(value);
  int end = stop->begin;
  // If a loop contains `to` but not `from`, control returns to `to` after the whole body.
  for (const Node* loop = to->block()->owner(); loop; loop = loop->block()->owner()) {
    const Span* span = span_of(loop);
    if (!span) return has_writers(value);
    bool holds_from = start->begin >= span->begin && start->begin <= span->end;
    if (loop->kind() == NodeKind::kLoop && !holds_from) end = span->end + 1;
  }
  return any_reachable(location(value), [&](int cell) {
    const std::vector<int>& all = write_order(cell);
    auto it = std::upper_bound(all.begin(), all.end(), start->begin);
    return it != all.end() && *it < end;
  });
}

bool AliasAnalysis::may_be_written_after(const GraphValue* value, const Node* from) const {
  const Span* start = span_of(from);
  if (!start) return has_writers(value);
  int begin = start->begin;
  for (const Node* loop = from->block()->owner(); loop; loop = loop->block()->owner()) {
    const Span* span = span_of(loop);
    if (!span) return has_writers(value);
    if (loop->kind() == NodeKind::kLoop) begin = span->begin;
  }
  return any_reachable(location(value),
                       [&](int cell) { return !write_order(cell).empty() && write_order(cell).back() > begin; });
}

bool AliasAnalysis::escapes(const GraphValue* value) const {
  return any_reachable(location(value), [&](int cell) { return is_given_back(cell) || is_external(cell); });
}

bool AliasAnalysis::has_side_effects(const Node* node) const {
  switch (node->kind()) {
    case NodeKind::kOp: {
      if (node->is_pure_op()) break;
      if (node->op()->is_random || !node->op()->schema.is_mutating()) return true;
      for (int cell : written_by(node)) {
        if (is_external(cell)) return true;
      }
      break;
    }
    case NodeKind::kCallMethod:
    case NodeKind::kCallFunction:
    case NodeKind::kCallValue: return true;
    case NodeKind::kListUnpack: return false;
    case NodeKind::kSetAttr: {
      int cell = location(node->input());
      return cell == kNoMemory || is_external(cell);
    }
    default: break;
  }
  for (const Block* block : node->blocks()) {
    for (const Node* inner = block->first(); inner; inner = inner->next()) {
      if (has_side_effects(inner)) return true;
    }
  }
  return false;
}

std::vector<int> AliasAnalysis::written_by(const Node* node) const {
  std::vector<int> out;
  switch (node->kind()) {
    case NodeKind::kOp: {
      if (node->is_pure_op()) break;
      const auto& arguments = node->op()->schema.arguments;
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].alias.is_write) continue;
        int cell = location(node->input(i));
        if (cell == kNoMemory) continue;
        out.push_back(cell);
        // "Tensor[](a!)" and "Tensor(a!)[]" look the same here, so the elements count as written too.
        const Type& type = *arguments[i].type;
        if (type.kind() == TypeKind::kList && type.element()->kind() == TypeKind::kTensor) {
          for (int held : reachable(cell)) out.push_back(held);
        }
      }
      break;
    }
    case NodeKind::kSetAttr:
      if (int cell = location(node->input()); cell != kNoMemory) out.push_back(cell);
      break;
    case NodeKind::kCallMethod:
    case NodeKind::kCallFunction:
    case NodeKind::kCallValue: out.push_back(wildcard()); break;
    default: break;
  }
  return out;
}

}  // namespace tensord::jit
