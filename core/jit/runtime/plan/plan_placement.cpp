#include "core/jit/runtime/plan/plan_placement.h"

#include "core/jit/runtime/plan/memory_plan.h"

namespace tensord::jit {

namespace {

bool is_same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool may_take(const Plan& plan, const std::vector<bool>& escapes, const PlanCall& call, size_t input,
              const std::vector<int>& last_uses) {
  const PlanTensor& from = plan.tensors[call.inputs[input]];
  const PlanTensor& to = plan.tensors[call.outputs[0]];
  const PlanRoot& root = plan.roots[from.root];
  if (root.kind != PlanRoot::Kind::kArena || escapes[from.root] || from.offset_bytes != 0) return false;
  if (!is_same_layout(from.meta, to.meta) || root.bytes != plan.roots[to.root].bytes) return false;
  if (&plan.calls[static_cast<size_t>(last_uses[from.root])] != &call) return false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool is_same_read = call.inputs[i] == call.inputs[input] && (call.prepared->may_overwrite >> i & 1);
    if (i != input && !is_same_read && plan.tensors[call.inputs[i]].root == from.root) return false;
  }
  return true;
}

// Results take the memory of operands that die with the call, if the call supports it.
void reuse_in_place(Plan& plan, std::vector<bool>& escapes) {
  std::vector<int> last = last_uses(plan);
  for (const PlanCall& call : plan.calls) {
    if (!call.prepared || call.prepared->may_overwrite == 0 || call.outputs.size() != 1) continue;
    for (size_t i = 0; i < call.inputs.size() && i < 32; ++i) {
      if (!(call.prepared->may_overwrite >> i & 1) || !may_take(plan, escapes, call, i, last)) continue;
      // Merges the result's root into the operand's.
      const uint32_t from = plan.tensors[call.inputs[i]].root, to = plan.tensors[call.outputs[0]].root;
      for (PlanTensor& tensor : plan.tensors) {
        if (tensor.root == to) tensor.root = from;
      }
      escapes[from] = escapes[to];
      last[from] = last[to];
      break;
    }
  }
}

// Results that can be written to the caller's memory: each fills its memory alone, from the first to the last byte.
// Because others may write there, calls read it back only if the values cannot do harm: floating-point numbers, never
// indices.
void find_movable_roots(Plan& plan) {
  std::vector<int> results(plan.roots.size(), 0);
  std::vector<bool> is_read(plan.roots.size(), false);
  bool has_loops = false;
  for (const PlanOutput& output : plan.outputs) {
    for (const uint32_t tensor : output.tensors) ++results[plan.tensors[tensor].root];
  }
  for (const PlanCall& call : plan.calls) {
    for (const uint32_t tensor : call.inputs) is_read[plan.tensors[tensor].root] = true;
    has_loops = has_loops || call.loop;
  }
  for (PlanOutput& output : plan.outputs) {
    if (output.is_list) continue;
    const PlanTensor& tensor = plan.tensors[output.tensors[0]];
    const PlanRoot& root = plan.roots[tensor.root];
    const bool is_alone = root.kind == PlanRoot::Kind::kOutput && results[tensor.root] == 1 &&
                          tensor.offset_bytes == 0 && tensor.meta.is_contiguous() &&
                          root.bytes == tensor.meta.size_bytes() && root.bytes > 0;
    const bool is_harmless = is_floating(tensor.meta.dtype()) || (!is_read[tensor.root] && !has_loops);
    if (is_alone && is_harmless) output.movable_root = static_cast<int32_t>(root.index);
  }
}

}  // namespace

std::vector<int> last_uses(const Plan& plan) {
  std::vector<int> last(plan.roots.size(), -1);
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    for (const auto* tensors : {&plan.calls[i].inputs, &plan.calls[i].outputs}) {
      for (const uint32_t tensor : *tensors) last[plan.tensors[tensor].root] = static_cast<int>(i);
    }
  }
  return last;
}

void place_memory(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings) {
  if (settings.reuses_in_place) reuse_in_place(plan, escapes);
  std::vector<int> first(plan.roots.size(), -1);
  for (size_t i = plan.calls.size(); i-- > 0;) {
    for (const uint32_t tensor : plan.calls[i].outputs) first[plan.tensors[tensor].root] = static_cast<int>(i);
  }
  const std::vector<int> last = last_uses(plan);
  std::vector<Lifetime> pieces;
  std::vector<size_t*> targets;
  for (size_t i = 0; i < plan.roots.size(); ++i) {
    PlanRoot& root = plan.roots[i];
    if (root.kind == PlanRoot::Kind::kInput || first[i] < 0) continue;
    if (escapes[i]) {
      root.kind = PlanRoot::Kind::kOutput;
      root.index = static_cast<uint32_t>(plan.output_bytes.size());
      plan.output_bytes.push_back(root.bytes);
    } else {
      pieces.push_back({root.bytes, first[i], last[i]});
      targets.push_back(&root.offset);
    }
  }
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    PlanCall& call = plan.calls[i];
    if (call.scratch_bytes == 0) continue;
    pieces.push_back({call.scratch_bytes, static_cast<int>(i), static_cast<int>(i)});
    targets.push_back(&call.scratch_offset);
  }
  find_movable_roots(plan);
  const MemoryPlan memory = plan_memory(pieces, settings.shares_memory);
  for (size_t i = 0; i < pieces.size(); ++i) *targets[i] = memory.offsets[i];
  plan.arena_bytes = memory.arena_bytes;
}

}  // namespace tensord::jit
