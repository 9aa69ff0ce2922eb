// Loops over samples in verify_plan: each part's body is walked for one tile, with separate memory. Outer values are
// looked up in the plan's memory; what is written to an operand of the loop is stored there at the loop's end.
#include <algorithm>

#include "core/jit/runtime/plan/plan_walk.h"
#include "core/ops/attributes/batch_independence.h"

namespace tensord::jit {

using ops::Value;

namespace {

Tensor tile_of(const Tensor& whole, int64_t samples) {
  Dims sizes = whole.sizes();
  sizes[0] = samples;
  return whole.as_view(std::move(sizes), whole.strides(), whole.offset());
}

int64_t sample_stride(const Tensor& whole) { return whole.strides()[0] * static_cast<int64_t>(size_of(whole.dtype())); }

}  // namespace

void PlanWalk::begin_loop(const PlanCall& call) {
  const SampleLoop& loop = *call.loop;
  require(loop.input_strides.size() == call.inputs.size() && loop.output_strides.size() == call.outputs.size(),
          "its loop has other operands");
  for (const auto* tensors : {&call.inputs, &call.outputs}) {
    for (const uint32_t tensor : *tensors) {
      const Range range = range_of(plan_, tensor);
      check_within(plan_, range, plan_.tensors[tensor]);
      require(tensors == &call.inputs || range.kind != PlanRoot::Kind::kInput, "its loop writes an input");
    }
  }
  check_hazards(call, plan_);
  check_parts(loop, call);
  loop_.emplace(Loop{});
  loop_->call = &call;
  for (const SampleLoop::Part& part : loop.parts) loop_->parts.emplace_back(*part.body);
}

// The parts cover every sample exactly once, each team in its own memory.
void PlanWalk::check_parts(const SampleLoop& loop, const PlanCall& call) const {
  require(!loop.parts.empty() && loop.samples > 0 && loop.scratch_bytes <= call.scratch_bytes,
          "its loop has too little scratch memory");
  int64_t done = 0;
  for (const SampleLoop::Part& part : loop.parts) {
    const Plan& body = *part.body;
    require(part.first == done && part.end > done && part.tile > 0 && part.teams > 0 &&
                (part.end - part.first) % part.tile == 0,
            "its loop leaves samples out, or does them twice");
    done = part.end;
    size_t pointers = 0;
    for (const PlanCall& inner : body.calls) {
      require(inner.prepared && !inner.loop && !inner.is_copy, "a call of its loop is not prepared");
      pointers += inner.inputs.size() + inner.outputs.size();
    }
    constexpr size_t kAlignment = 64;
    const size_t table = (pointers + body.calls.size()) * sizeof(void*);
    require(!body.calls.empty() && body.calls.size() == loop.call_count() && pointers == part.pointer_count &&
                part.costs.size() == body.calls.size() && body.inputs.empty() && body.outputs.empty() &&
                body.output_bytes.size() == call.outputs.size(),
            "its loop's parts differ");
    require(part.team_bytes % kAlignment == 0 && body.arena_bytes % kAlignment == 0 &&
                part.team_bytes >= table + body.arena_bytes &&
                part.team_bytes * static_cast<size_t>(part.teams) <= loop.scratch_bytes,
            "teams of its loop share memory");
  }
  require(done == loop.samples, "its loop leaves samples out");
}

void PlanWalk::loop_call(const Node& node, const Operands& inputs, std::span<const Tensor> results) {
  std::vector<Value> arguments;
  for (const GraphValue* input : node.inputs())
    arguments.push_back(input->constant() ? *input->constant() : input->known());
  require(ops::is_batch_independent(*node.op(), arguments), "it does not keep samples apart");
  for (const Tensor& result : results) {
    require(result.ndim() > 0 && result.sizes()[0] == loop_->call->loop->samples && result.numel() > 0,
            "a result has not the samples along its first dimension");
  }
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < results.size(); ++i) numbers.push_back(value_count_++);
  for (size_t part = 0; part < loop_->parts.size(); ++part) body_call(part, node, inputs, results, numbers);
  for (size_t i = 0; i < results.size(); ++i) loop_->made.emplace(numbers[i], results[i]);
  define_results(node, results, numbers);
  ++loop_->next;
}

void PlanWalk::body_call(size_t part, const Node& node, const Operands& inputs, std::span<const Tensor> results,
                         std::span<const int32_t> numbers) {
  Memory& memory = loop_->parts[part];
  const int64_t samples = loop_->call->loop->samples, tile = loop_->call->loop->parts[part].tile;
  const PlanCall& call = memory.plan.calls.at(loop_->next);
  // Operands with fewer dimensions, or with one sample, are shared by all samples
  // (core/ops/attributes/batch_independence.h).
  int64_t max_dims = 0;
  for (const Held& held : inputs) max_dims = std::max(max_dims, held.value < 0 ? 0 : held.tensor.ndim());
  Operands tiles = inputs;
  std::vector<bool> are_shared;
  for (Held& held : tiles) {
    if (held.value < 0) continue;
    const bool is_shared = held.tensor.ndim() < max_dims || max_dims == 0 || held.tensor.sizes()[0] == 1;
    are_shared.push_back(is_shared);
    require(is_shared || held.tensor.sizes()[0] == samples, "an operand has another number of samples");
    if (!is_shared) held.tensor = tile_of(held.tensor, tile);
  }
  std::vector<Tensor> tile_results;
  for (const Tensor& result : results) tile_results.push_back(tile_of(result, tile));
  check_operands(call, node, memory.plan, tiles, tile_results);
  check_hazards(call, memory.plan);
  size_t next = 0;
  for (const Held& held : inputs) {
    if (held.value < 0) continue;
    read_in_loop(part, call.inputs[next], held, are_shared[next]);
    ++next;
  }
  for (size_t i = 0; i < results.size(); ++i) check_landing(part, call.outputs[i], results[i]);
  write(memory, call, numbers);
}

void PlanWalk::read_in_loop(size_t part, uint32_t tensor, const Held& held, bool is_shared) {
  Memory& memory = loop_->parts[part];
  const Range range = range_of(memory.plan, tensor);
  if (const auto made = loop_->made.find(held.value); made != loop_->made.end()) {
    const int64_t stride = sample_stride(made->second);
    require(!is_shared && range.kind != PlanRoot::Kind::kInput && sample_stride(held.tensor) == stride &&
                held.from_base >= 0 && held.from_base + plan_extent(tile_of(held.tensor, 1)) <= stride,
            "an operand of its loop reads other samples");
    require(memory.at(range).holds(range.begin, range.end, held.value, range.begin - held.from_base),
            "an operand of its loop is not there, or not whole");
    return;
  }
  require(range.kind == PlanRoot::Kind::kInput, "an operand of its loop is not there");
  const PlanCall& call = *loop_->call;
  const Range outer = range_of(plan_, call.inputs[range.index]);
  const int64_t begin = outer.begin + range.begin, end = begin + plan_extent(held.tensor);
  const int64_t stride = is_shared ? 0 : sample_stride(held.tensor);
  require(call.loop->input_strides[range.index] == stride, "an operand of its loop has other samples");
  require(begin == end || (end <= outer.end && memory_.at(outer).holds(begin, end, held.value, begin - held.from_base)),
          "an operand of its loop is not there, or not whole, when it begins");
}

// A result written to an operand of the loop: each sample stays within its own bytes.
void PlanWalk::check_landing(size_t part, uint32_t tensor, const Tensor& whole) const {
  const Range range = range_of(loop_->parts[part].plan, tensor);
  if (range.kind != PlanRoot::Kind::kOutput) return;
  const PlanCall& call = *loop_->call;
  const Range outer = range_of(plan_, call.outputs[range.index]);
  const int64_t stride = call.loop->output_strides[range.index];
  require(stride == sample_stride(whole) && range.begin + plan_extent(tile_of(whole, 1)) <= stride &&
              outer.begin + range.begin + plan_extent(whole) <= outer.end,
          "a result of its loop lies outside of its sample");
}

// A value that every part left complete in an operand exists for all samples.
void PlanWalk::end_loop() {
  const PlanCall& call = *loop_->call;
  const Range scratch = scratch_of(call);
  memory_.arena.spoil(scratch.begin, scratch.end);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Range outer = range_of(plan_, call.outputs[k]);
    PlanContents& contents = memory_.at(outer);
    contents.spoil(outer.begin, outer.end);
    for (const auto& [begin, piece] : loop_->parts[0].outputs[k].pieces()) {
      const Tensor& whole = loop_->made.at(piece.value);
      bool is_whole = true;
      for (size_t part = 0; part < loop_->parts.size(); ++part) {
        const int64_t extent = plan_extent(tile_of(whole, call.loop->parts[part].tile));
        is_whole &= loop_->parts[part].outputs[k].holds(begin, begin + extent, piece.value, begin);
      }
      if (is_whole) contents.write(outer.begin + begin, outer.begin + begin + plan_extent(whole), piece.value);
    }
  }
  loop_.reset();
}

}  // namespace tensord::jit
