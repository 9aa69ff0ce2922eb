// The graph's side of verify_plan: which value every call must find.
#include "core/jit/runtime/plan/plan_walk.h"

#include <algorithm>

namespace tensord::jit {

using ops::Value;

namespace {

template <class Visit>
void for_each_tensor(const Value& value, Visit&& visit) {
  if (value.is_strided()) return visit(value.to_tensor());
  if (!value.is_list()) return;
  for (const Value& item : value.to_list()->items) for_each_tensor(item, visit);
}

int64_t first_byte(const Tensor& meta) { return meta.offset() * static_cast<int64_t>(size_of(meta.dtype())); }

}  // namespace

void verify_plan(const Plan& plan, const Node& node) { PlanWalk(plan, node).run(); }

void PlanWalk::run() {
  take_inputs();
  for (const Node* node = node_.blocks()[0]->first(); node; node = node->next()) visit(*node);
  place_.clear();
  require(next_call_ == plan_.calls.size(), "it has more calls than the graph");
  give_outputs();
}

void PlanWalk::set_place(const PlanCall& call, const Node& node) {
  place_ = concat("call ", next_call_, " (", call.name, ", ", node.op()->schema.full_name());
  const std::string source = node.location().str();
  place_ += source.empty() ? "): " : ", " + source + "): ";
}

void PlanWalk::take_inputs() {
  size_t count = 0;
  const auto inputs = node_.blocks()[0]->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& known = inputs[i]->known();
    int32_t item = known.is_list() ? 0 : -1;
    Operands& held = values_[inputs[i]];
    for_each_tensor(known, [&](const Tensor& meta) {
      require(count < plan_.inputs.size(), "it lacks inputs");
      const PlanInput& input = plan_.inputs[count];
      require(input.argument == i && input.item == item && input.tensor < plan_.tensors.size(), "input ", count,
              " is another one");
      const PlanTensor& tensor = plan_.tensors[input.tensor];
      require(tensor.root < plan_.roots.size() && plan_.roots[tensor.root].kind == PlanRoot::Kind::kInput &&
                  plan_.roots[tensor.root].index == count && tensor.offset_bytes == 0 &&
                  is_same_plan_layout(tensor.meta, meta),
              "input ", count, " is not as it comes");
      memory_.inputs[count].write(0, plan_extent(meta), value_count_);
      held.push_back({meta, value_count_++, 0});
      ++count;
      item += item >= 0;
    });
  }
  require(count == plan_.inputs.size(), "it has more inputs than the graph");
}

PlanWalk::Operands PlanWalk::operands_of(const GraphValue* value) const {
  Operands out;
  if (const Value* constant = value->constant()) {
    for_each_tensor(*constant, [&](const Tensor& tensor) { out.push_back({tensor}); });
    return out;
  }
  const auto found = values_.find(value);
  require(found != values_.end(), "a value comes from outside");
  return found->second;
}

PlanWalk::Operands PlanWalk::inputs_of(const Node& node) const {
  Operands all;
  for (const GraphValue* input : node.inputs()) {
    const Operands operands = operands_of(input);
    all.insert(all.end(), operands.begin(), operands.end());
  }
  return all;
}

void PlanWalk::visit(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kConstant: return;
    case NodeKind::kListConstruct: values_[node.output()] = inputs_of(node); return;
    case NodeKind::kListUnpack: return unpack(node);
    case NodeKind::kOp: return visit_call(node);
    default: refuse("a node is not a call: ", node.kind_name());
  }
}

void PlanWalk::unpack(const Node& node) {
  const Operands items = operands_of(node.input());
  require(items.size() == node.outputs().size(), "a list of another length is unpacked");
  for (size_t i = 0; i < items.size(); ++i) values_[node.output(i)] = {items[i]};
}

std::vector<Tensor> PlanWalk::results_of(const Node& node) const {
  std::vector<Tensor> results;
  for (const GraphValue* output : node.outputs())
    for_each_tensor(output->known(), [&](const Tensor& meta) { results.push_back(meta); });
  return results;
}

// Views of an operand are not made by a call; their memory is the operand's.
bool PlanWalk::make_views(const Node& node, const Operands& inputs) {
  if (!node.op()->is_view) return false;
  std::unordered_map<const GraphValue*, Operands> views;
  for (const GraphValue* output : node.outputs()) {
    bool are_views = true;
    Operands& held = views[output];
    for_each_tensor(output->known(), [&](const Tensor& meta) {
      const auto base = std::find_if(inputs.begin(), inputs.end(), [&](const Held& input) {
        return input.value >= 0 && input.tensor.alias_id() == meta.alias_id();
      });
      are_views &= base != inputs.end();
      if (are_views) held.push_back({meta, base->value, base->from_base + first_byte(meta) - first_byte(base->tensor)});
    });
    if (!are_views) return false;
  }
  values_.merge(views);
  return true;
}

void PlanWalk::define_results(const Node& node, std::span<const Tensor> results, std::span<const int32_t> numbers) {
  size_t next = 0;
  for (const GraphValue* output : node.outputs()) {
    Operands& held = values_[output];
    for_each_tensor(output->known(), [&](const Tensor&) {
      held.push_back({results[next], numbers[next], 0});
      ++next;
    });
  }
}

void PlanWalk::visit_call(const Node& node) {
  const Operands inputs = inputs_of(node);
  if (make_views(node, inputs)) return;
  require(next_call_ < plan_.calls.size(), "no call does ", node.op()->schema.full_name());
  const PlanCall& call = plan_.calls[next_call_];
  set_place(call, node);
  const std::vector<Tensor> results = results_of(node);
  if (!call.loop) {
    this->call(call, node, inputs, results);
    ++next_call_;
    return;
  }
  if (!loop_) begin_loop(call);
  loop_call(node, inputs, results);
  if (loop_->next < call.loop->call_count()) return;
  end_loop();
  ++next_call_;
}

// Returned values must be complete at the end, in memory that is returned with them.
void PlanWalk::give_outputs() {
  const auto values = node_.blocks()[0]->outputs();
  require(values.size() == plan_.outputs.size(), "it gives another number of results");
  for (size_t i = 0; i < values.size(); ++i) {
    const PlanOutput& output = plan_.outputs[i];
    const Operands held = operands_of(values[i]);
    require(
        output.is_list == (values[i]->type()->kind() == ops::TypeKind::kList) && output.tensors.size() == held.size(),
        "result ", i, " is of another kind");
    for (size_t k = 0; k < held.size(); ++k) {
      require(held[k].value >= 0 && output.tensors[k] < plan_.tensors.size(), "result ", i, " is a constant");
      const PlanTensor& tensor = plan_.tensors[output.tensors[k]];
      const Range range = range_of(plan_, output.tensors[k]);
      require(range.kind != PlanRoot::Kind::kArena, "result ", i, " lies in the arena");
      require(is_same_plan_layout(tensor.meta, held[k].tensor), "result ", i, " has another layout");
      require(range.begin == range.end ||
                  memory_.at(range).holds(range.begin, range.end, held[k].value, range.begin - held[k].from_base),
              "result ", i, " is not there, or not whole, at the end");
    }
    check_movable(output);
  }
}

// The caller's memory, to which others may write: the result must fill it alone, and no index may be read back from it.
void PlanWalk::check_movable(const PlanOutput& output) const {
  if (output.movable_root < 0) return;
  const auto index = static_cast<uint32_t>(output.movable_root);
  require(!output.is_list && index < plan_.output_bytes.size(), "no single result can be moved");
  const Tensor& meta = plan_.tensors[output.tensors[0]].meta;
  const Range range = range_of(plan_, output.tensors[0]);
  require(range.kind == PlanRoot::Kind::kOutput && range.index == index && range.begin == 0 && meta.is_contiguous() &&
              range.end == static_cast<int64_t>(plan_.output_bytes[index]),
          "a result that can be moved does not fill its memory");
  size_t sharers = 0;
  for (const PlanOutput& other : plan_.outputs) {
    for (const uint32_t tensor : other.tensors) {
      const Range its = range_of(plan_, tensor);
      sharers += its.kind == range.kind && its.index == index;
    }
  }
  require(sharers == 1, "a result that can be moved is not alone in its memory");
  require(is_floating(meta.dtype()) || !is_read_back(range), "a result that can be moved is read as an index");
}

bool PlanWalk::is_read_back(const Range& whole) const {
  for (const PlanCall& call : plan_.calls) {
    if (call.loop) return true;  // it may read back what it wrote itself
    for (const uint32_t tensor : call.inputs) {
      const Range range = range_of(plan_, tensor);
      if (range.kind == whole.kind && range.index == whole.index) return true;
    }
  }
  return false;
}

}  // namespace tensord::jit
