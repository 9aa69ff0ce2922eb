// One call of a plan, or of a loop's body: its memory, and allowed overlaps.
#include <algorithm>

#include "core/jit/runtime/plan/plan_walk.h"
#include "core/ops/run.h"

namespace tensord::jit {

using ops::Value;

namespace {

constexpr int64_t kProvenAlignment = 64;  // required by kernels for tensors and scratch in an arena

void collect_tensors(const Value& value, std::vector<Tensor>& out) {
  if (value.is_strided()) return out.push_back(value.to_tensor());
  if (!value.is_list()) return;
  for (const Value& item : value.to_list()->items) collect_tensors(item, out);
}

bool is_other_number(const Value& a, const Value& b) {
  return a.is_number() && !(a.tag() == b.tag() && (a.equals(b) || !a.equals(a)));
}

}  // namespace

int64_t plan_extent(const Tensor& meta) {
  if (meta.numel() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < meta.sizes().size(); ++i) {
    const int64_t steps = meta.sizes()[i] - 1, stride = meta.strides()[i];
    if (steps > 0 && stride < 0) throw PlanRefused("a plan is refused: a stride is negative");
    last += steps * stride;
  }
  return (last + 1) * static_cast<int64_t>(size_of(meta.dtype()));
}

bool is_same_plan_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool PlanWalk::Range::overlaps(const Range& other) const {
  if (begin == end || other.begin == other.end || kind != other.kind) return false;
  return index == other.index && begin < other.end && other.begin < end;
}

PlanContents& PlanWalk::Memory::at(const Range& range) {
  switch (range.kind) {
    case PlanRoot::Kind::kArena: return arena;
    case PlanRoot::Kind::kInput: return inputs.at(range.index);
    case PlanRoot::Kind::kOutput: return outputs.at(range.index);
  }
  return arena;
}

PlanWalk::Range PlanWalk::range_of(const Plan& plan, uint32_t number) const {
  require(number < plan.tensors.size() && plan.tensors[number].root < plan.roots.size(), "a tensor is nowhere");
  const PlanTensor& tensor = plan.tensors[number];
  const PlanRoot& root = plan.roots[tensor.root];
  const bool is_arena = root.kind == PlanRoot::Kind::kArena;
  const int64_t begin = tensor.offset_bytes + (is_arena ? static_cast<int64_t>(root.offset) : 0);
  return {root.kind, is_arena ? 0 : root.index, begin, begin + plan_extent(tensor.meta)};
}

PlanWalk::Range PlanWalk::scratch_of(const PlanCall& call) const {
  const auto begin = static_cast<int64_t>(call.scratch_offset);
  return {PlanRoot::Kind::kArena, 0, begin, begin + static_cast<int64_t>(call.scratch_bytes)};
}

// In a loop's body, inputs and outputs are the loop's; check_landing and read_in_loop check their bounds.
void PlanWalk::check_within(const Plan& plan, const Range& range, const PlanTensor& tensor) const {
  if (range.begin == range.end) return;  // nothing of it is read or written
  const auto item = static_cast<int64_t>(size_of(tensor.meta.dtype()));
  require(range.begin >= 0 && range.begin % item == 0, "a tensor begins outside of its memory, or between elements");
  if (range.kind == PlanRoot::Kind::kArena) {
    require(range.end <= static_cast<int64_t>(plan.arena_bytes), "a tensor ends outside of the arena");
    require(plan.roots[tensor.root].offset % kProvenAlignment == 0, "a tensor is not aligned");
    return;
  }
  const bool is_input = range.kind == PlanRoot::Kind::kInput, is_body = &plan != &plan_;
  const size_t inputs = is_body ? loop_->call->inputs.size() : plan.inputs.size();
  require(range.index < (is_input ? inputs : plan.output_bytes.size()), "a tensor is nowhere");
  if (is_body) return;
  const int64_t end = is_input ? plan_extent(plan.tensors[plan.inputs[range.index].tensor].meta)
                               : static_cast<int64_t>(plan.output_bytes[range.index]);
  require(range.end <= end, "a tensor ends outside of its ", is_input ? "input" : "output");
}

// The call matches the graph: its operator, constants, and the layouts for which it was prepared.
void PlanWalk::check_operands(const PlanCall& call, const Node& node, const Plan& plan, const Operands& expected,
                              std::span<const Tensor> results) const {
  require(call.op == node.op() && call.arguments.size() == node.inputs().size(), "another operator is called");
  std::vector<Tensor> given;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    collect_tensors(call.arguments[i], given);
    const Value* constant = node.input(i)->constant();
    require(!constant || !is_other_number(*constant, call.arguments[i]), "argument ", i, " is another number");
  }
  require(given.size() == expected.size(), "it has another number of tensors");
  size_t next = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    if (expected[i].value < 0) {
      require(given[i].is_same(expected[i].tensor), "a constant is another one");
      continue;
    }
    require(next < call.inputs.size(), "it lacks an operand");
    const Range range = range_of(plan, call.inputs[next]);
    const PlanTensor& tensor = plan.tensors[call.inputs[next]];
    require(given[i].is_meta() && is_same_plan_layout(tensor.meta, expected[i].tensor) &&
                is_same_plan_layout(given[i], tensor.meta),
            "operand ", next, " has another layout");
    check_within(plan, range, tensor);
    ++next;
  }
  require(next == call.inputs.size() && call.outputs.size() == results.size(), "it has another number of operands");
  for (size_t i = 0; i < results.size(); ++i) {
    const Range range = range_of(plan, call.outputs[i]);
    require(is_same_plan_layout(plan.tensors[call.outputs[i]].meta, results[i]), "result ", i, " has another layout");
    require(range.kind != PlanRoot::Kind::kInput, "result ", i, " is written to an input");
    check_within(plan, range, plan.tensors[call.outputs[i]]);
  }
  check_copy(call, plan);
}

// A copy is in the order of elements. So is the operator's own copy, but not the view that it returns if possible.
void PlanWalk::check_copy(const PlanCall& call, const Plan& plan) const {
  if (!call.is_copy) return;
  require(call.inputs.size() == 1 && call.outputs.size() == 1 && !call.prepared, "it is not a copy");
  const Tensor &from = plan.tensors[call.inputs[0]].meta, &to = plan.tensors[call.outputs[0]].meta;
  const Value result = ops::infer(*call.op, call.arguments).at(0);
  require(from.numel() == to.numel() && (from.sizes() == to.sizes() || to.is_contiguous()), "a copy has another size");
  require(result.is_strided() && result.to_tensor().alias_id() != from.alias_id(), "a view is made by a copy");
}

// Whether result 0 may overlap the operand: declared, with the same elements at the same positions.
bool PlanWalk::may_lie_on(const PlanCall& call, const Plan& plan, size_t input) const {
  if (!call.prepared || input >= 32 || !(call.prepared->may_overwrite >> input & 1)) return false;
  const Range from = range_of(plan, call.inputs[input]), to = range_of(plan, call.outputs[0]);
  return from.begin == to.begin &&
         is_same_plan_layout(plan.tensors[call.inputs[input]].meta, plan.tensors[call.outputs[0]].meta);
}

void PlanWalk::check_hazards(const PlanCall& call, const Plan& plan) const {
  const Range scratch = scratch_of(call);
  require(scratch.begin % kProvenAlignment == 0 && scratch.end <= static_cast<int64_t>(plan.arena_bytes),
          "its scratch memory is not aligned, or ends outside of the arena");
  require(!call.prepared || call.prepared->scratch_bytes <= call.scratch_bytes, "it has too little scratch memory");
  for (size_t i = 0; i < call.inputs.size(); ++i)
    require(!scratch.overlaps(range_of(plan, call.inputs[i])), "its scratch memory lies on operand ", i);
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    const Range result = range_of(plan, call.outputs[o]);
    require(!scratch.overlaps(result), "its scratch memory lies on result ", o);
    for (size_t other = 0; other < o; ++other)
      require(!result.overlaps(range_of(plan, call.outputs[other])), "results ", other, " and ", o, " overlap");
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!result.overlaps(range_of(plan, call.inputs[i]))) continue;
      // Another result there would also overlap result 0, which was refused above.
      require(may_lie_on(call, plan, i), "result ", o, " lies on operand ", i, ", which is not declared");
    }
  }
}

void PlanWalk::write(Memory& memory, const PlanCall& call, std::span<const int32_t> numbers) const {
  const Range scratch = scratch_of(call);
  memory.arena.spoil(scratch.begin, scratch.end);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Range range = range_of(memory.plan, call.outputs[i]);
    memory.at(range).write(range.begin, range.end, numbers[i]);
  }
}

void PlanWalk::call(const PlanCall& call, const Node& node, const Operands& inputs, std::span<const Tensor> results) {
  check_operands(call, node, plan_, inputs, results);
  check_hazards(call, plan_);
  size_t next = 0;
  for (const Held& held : inputs) {
    if (held.value < 0) continue;
    const Range range = range_of(plan_, call.inputs[next]);
    require(range.begin == range.end ||
                memory_.at(range).holds(range.begin, range.end, held.value, range.begin - held.from_base),
            "operand ", next, " is not there, or not whole");
    ++next;
  }
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < results.size(); ++i) numbers.push_back(value_count_++);
  write(memory_, call, numbers);
  define_results(node, results, numbers);
}

}  // namespace tensord::jit
