#include "core/jit/runtime/plan.h"

#include <sstream>

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
  out << "plan of " << plan.calls.size() << " calls, arena " << plan.arena_bytes << " bytes\n";
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    out << "  " << i << ": ";
    for (size_t k = 0; k < call.outputs.size(); ++k) out << (k ? ", " : "") << place(plan, call.outputs[k]);
    out << " = " << call.name << "(";
    for (size_t k = 0; k < call.inputs.size(); ++k) out << (k ? ", " : "") << place(plan, call.inputs[k]);
    out << ")  # " << call.detail;
    if (call.prepared && call.prepared->scratch_bytes > 0) out << ", scratch " << call.prepared->scratch_bytes;
    if (!call.prepared) out << ", not prepared";
    out << "\n";
  }
  return out.str();
}

}  // namespace tensord::jit
