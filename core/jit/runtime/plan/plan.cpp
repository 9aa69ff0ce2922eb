#include "core/jit/runtime/plan/plan.h"

#include <algorithm>
#include <sstream>

#include "core/jit/runtime/plan/batch_tile_loop.h"

namespace tensord::jit {

namespace {

std::string place(const Plan& plan, uint32_t tensor) {
  const PlanTensor& at = plan.tensors[tensor];
  const PlanRoot& root = plan.roots[at.root];
  const auto offset = static_cast<int64_t>(root.offset) + at.offset_bytes;
  switch (root.kind) {
    case PlanRoot::Kind::kArena: return "@" + std::to_string(offset);
    case PlanRoot::Kind::kInput:
      return "in" + std::to_string(root.index) + (offset ? "+" + std::to_string(offset) : "");
    case PlanRoot::Kind::kOutput:
      return "out" + std::to_string(root.index) + (offset ? "+" + std::to_string(offset) : "");
  }
  return {};
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::ostringstream out;
  out << "plan of " << call_count(plan) << " calls, arena " << plan.arena_bytes << " bytes\n";
  out << describe_calls(plan, "  ");
  return out.str();
}

std::string describe_calls(const Plan& plan, const std::string& indent) {
  std::ostringstream out;
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    out << indent << i << ": ";
    for (size_t k = 0; k < call.outputs.size(); ++k) out << (k ? ", " : "") << place(plan, call.outputs[k]);
    out << " = " << call.name << "(";
    for (size_t k = 0; k < call.inputs.size(); ++k) out << (k ? ", " : "") << place(plan, call.inputs[k]);
    out << ")  # " << call.detail;
    if (call.scratch_bytes > 0) out << ", scratch " << call.scratch_bytes;
    if (!call.prepared && !call.loop) out << ", not prepared";
    out << "\n";
    if (call.loop) out << to_string(*call.loop, indent + "  ");
  }
  return out.str();
}

size_t call_count(const Plan& plan) {
  size_t count = 0;
  for (const PlanCall& call : plan.calls) count += call.loop ? call.loop->call_count() : 1;
  return count;
}

ops::Value with_tensors(const ops::Value& value, const std::vector<Tensor>& tensors, size_t& next) {
  if (value.is_strided() && value.to_tensor().is_meta()) return tensors[next++];
  if (!value.is_list()) return value;
  const auto& items = value.to_list()->items;
  if (std::none_of(items.begin(), items.end(), [](const ops::Value& item) { return item.is_strided(); })) return value;
  std::vector<ops::Value> copy;
  for (const ops::Value& item : items) copy.push_back(with_tensors(item, tensors, next));
  return ops::make_list(value.to_list()->element, std::move(copy));
}

}  // namespace tensord::jit
