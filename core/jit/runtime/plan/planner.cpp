#include "core/jit/runtime/plan/planner.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/runtime/plan/batch_tiling.h"
#include "core/jit/runtime/plan/plan_placement.h"
#include "core/jit/runtime/plan/plan_verifier.h"
#include "core/ops/attributes/packed.h"

namespace tensord::jit {

using ops::Value;

namespace {

// Calls visit(tensor) for the meta tensors in a value, in order.
template <class Visit>
void for_each_meta(const Value& value, Visit&& visit) {
  if (value.is_strided() && value.to_tensor().is_meta()) visit(value.to_tensor());
  if (!value.is_list()) return;
  for (const Value& item : value.to_list()->items) for_each_meta(item, visit);
}

// Bytes from the first element to the end of the last.
size_t extent_bytes(const Tensor& meta) {
  if (meta.numel() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < meta.sizes().size(); ++i) last += (meta.sizes()[i] - 1) * meta.strides()[i];
  return static_cast<size_t>(last + 1) * size_of(meta.dtype());
}

}  // namespace

namespace {

std::unique_ptr<const Plan> make_verified(const Node& node, const PlanSettings& settings) {
  static std::atomic<uint64_t> last_id{0};
  auto plan = std::make_unique<Plan>();
  plan->id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  Planner(node, settings, *plan).build();
  if (settings.alter) settings.alter(*plan);
  verify_plan(*plan, node);
  return plan;
}

// The planning step without which the plan passes verification; it can be disabled by this name.
std::string faulty_pass(const Node& node, const PlanSettings& settings) {
  const std::pair<const char*, bool PlanSettings::*> steps[] = {{"split_samples", &PlanSettings::splits_samples},
                                                                {"in_place", &PlanSettings::reuses_in_place},
                                                                {"memory_plan", &PlanSettings::shares_memory}};
  for (const auto& [name, step] : steps) {
    PlanSettings without = settings;
    without.*step = false;
    try {
      make_verified(node, without);
      return name;
    } catch (const PlanRefused&) {
      // The cause is another step.
    }
  }
  return "plan";
}

}  // namespace

std::unique_ptr<const Plan> Plan::build(const Node& node, const PlanSettings& settings) {
  try {
    return make_verified(node, settings);
  } catch (const PlanRefused& refused) {
    throw PlanRefused(concat(refused.what(), "; by the pass ", faulty_pass(node, settings)));
  }
}

namespace {

// Finds the device of the first known tensor among the values, including items of lists.
bool find_device(std::span<const GraphValue* const> values, Device& device) {
  for (const GraphValue* value : values) {
    bool is_found = false;
    for_each_meta(value->known(), [&](const Tensor& meta) {
      if (!std::exchange(is_found, true)) device = meta.device();
    });
    if (is_found) return true;
  }
  return false;
}

// All calls of a segment are on one device.
Device device_of(const Node& node) {
  Device device;
  for (const Node* call = node.blocks()[0]->first(); call; call = call->next()) {
    if (call->op() && find_device(call->outputs(), device)) break;
  }
  return device;
}

}  // namespace

void Planner::build() {
  plan_.device = device_of(node_);
  add_inputs();
  for (const Node* node = node_.blocks()[0]->first(); node; node = node->next()) add_node(*node);
  add_outputs();
  if (settings_.splits_samples && plan_.device.is_host()) split_samples(plan_, escapes_, settings_);
  place_memory(plan_, escapes_, settings_);
}

uint32_t Planner::add_tensor(const Tensor& meta) {
  plan_.roots.push_back({.bytes = extent_bytes(meta)});
  escapes_.push_back(false);
  plan_.tensors.push_back({meta, static_cast<uint32_t>(plan_.roots.size() - 1), 0});
  return static_cast<uint32_t>(plan_.tensors.size() - 1);
}

uint32_t Planner::add_view(const Tensor& meta, uint32_t of) {
  const PlanTensor& base = plan_.tensors[of];
  const auto bytes = [](const Tensor& t) { return t.offset() * static_cast<int64_t>(size_of(t.dtype())); };
  plan_.tensors.push_back({meta, base.root, base.offset_bytes + bytes(meta) - bytes(base.meta)});
  return static_cast<uint32_t>(plan_.tensors.size() - 1);
}

void Planner::define(const GraphValue* value, const Value& known, std::vector<uint32_t> tensors) {
  operands_[value] = {known, std::move(tensors)};
}

void Planner::add_inputs() {
  uint32_t count = 0;
  const auto inputs = node_.blocks()[0]->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<uint32_t> tensors;
    int32_t item = inputs[i]->known().is_list() ? 0 : -1;
    for_each_meta(inputs[i]->known(), [&](const Tensor& meta) {
      tensors.push_back(add_tensor(meta));
      PlanRoot& root = plan_.roots.back();
      root.kind = PlanRoot::Kind::kInput;
      root.index = count++;
      plan_.inputs.push_back({static_cast<uint32_t>(i), item, tensors.back()});
      item += item >= 0;
    });
    define(inputs[i], inputs[i]->known(), std::move(tensors));
  }
}

Planner::Operand Planner::operand_of(const GraphValue* value) const {
  if (const Value* constant = value->constant()) return {*constant, {}};
  const auto found = operands_.find(value);
  check_internal(found != operands_.end(), "a plan reads a value from outside of it");
  return found->second;
}

void Planner::add_node(const Node& node) {
  check_work_cancelled();
  switch (node.kind()) {
    case NodeKind::kConstant: return;
    case NodeKind::kListConstruct: return add_list(node);
    case NodeKind::kListUnpack: return add_unpacked(node);
    default: return add_call(node);
  }
}

void Planner::add_list(const Node& node) {
  Operand list;
  std::vector<Value> items;
  for (const GraphValue* input : node.inputs()) {
    Operand item = operand_of(input);
    items.push_back(std::move(item.value));
    list.tensors.insert(list.tensors.end(), item.tensors.begin(), item.tensors.end());
  }
  list.value = ops::make_list(node.output()->type()->element(), std::move(items));
  operands_[node.output()] = std::move(list);
}

void Planner::add_unpacked(const Node& node) {
  const Operand list = operand_of(node.input());
  const auto& items = list.value.to_list()->items;
  check_internal(items.size() == node.outputs().size(), "a list of another length is unpacked");
  size_t next = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<uint32_t> tensors;
    for_each_meta(items[i], [&](const Tensor&) { tensors.push_back(list.tensors[next++]); });
    define(node.output(i), items[i], std::move(tensors));
  }
}

bool Planner::add_views(const Node& node, std::span<const uint32_t> inputs) {
  if (!node.op()->is_view) return false;
  for (const GraphValue* output : node.outputs()) {
    std::vector<uint32_t> views;
    bool all_found = true;
    for_each_meta(output->known(), [&](const Tensor& meta) {
      const auto base = std::find_if(inputs.begin(), inputs.end(), [&](uint32_t input) {
        return plan_.tensors[input].meta.alias_id() == meta.alias_id();
      });
      all_found &= base != inputs.end();
      if (all_found) views.push_back(add_view(meta, *base));
    });
    if (!all_found) return false;
    define(output, output->known(), std::move(views));
  }
  return true;
}

void Planner::add_call(const Node& node) {
  PlanCall call;
  call.op = node.op();
  call.location = node.location();
  for (const GraphValue* input : node.inputs()) {
    Operand operand = operand_of(input);
    call.arguments.push_back(std::move(operand.value));
    call.inputs.insert(call.inputs.end(), operand.tensors.begin(), operand.tensors.end());
  }
  if (add_views(node, call.inputs)) return;
  std::vector<Tensor> metas;
  for (const GraphValue* output : node.outputs()) {
    std::vector<uint32_t> tensors;
    for_each_meta(output->known(), [&](const Tensor& meta) {
      tensors.push_back(add_tensor(meta));
      metas.push_back(meta);
    });
    call.outputs.insert(call.outputs.end(), tensors.begin(), tensors.end());
    define(output, output->known(), std::move(tensors));
  }
  call.prepared = prepare_call(call, metas, plan_.device, settings_);
  // An operator with an alias annotation that cannot be a view here is a copy in the same order of elements.
  call.is_copy = !call.prepared && node.op()->is_view && metas.size() == 1 && call.inputs.size() == 1 &&
                 (metas[0].sizes() == plan_.tensors[call.inputs[0]].meta.sizes() || metas[0].is_contiguous());
  describe_call(call, node);
  plan_.calls.push_back(std::move(call));
}

void Planner::describe_call(PlanCall& call, const Node& node) const {
  if (call.prepared) {
    call.scratch_bytes = call.prepared->scratch_bytes;
    call.cost = call.prepared->cost;
    call.name = call.prepared->label;
  }
  if (call.name.empty()) {
    const std::string& name = node.op()->schema.name;
    call.name = name.substr(name.find("::") + 2);
  }
  const auto list = [&](const std::vector<uint32_t>& tensors) {
    std::string text;
    for (const uint32_t tensor : tensors) text += (text.empty() ? "" : ", ") + describe(plan_.tensors[tensor].meta);
    return text;
  };
  call.detail = list(call.inputs) + " -> " + list(call.outputs);
  if (call.prepared && !call.prepared->variant.empty()) call.detail += ", " + call.prepared->variant;
  if (call.cost.bytes > 0) return;
  for (const auto* tensors : {&call.inputs, &call.outputs}) {
    for (const uint32_t tensor : *tensors)
      call.cost.bytes += static_cast<double>(plan_.tensors[tensor].meta.size_bytes());
  }
}

void Planner::add_outputs() {
  for (const GraphValue* value : node_.blocks()[0]->outputs()) {
    const Operand operand = operand_of(value);
    for (const uint32_t tensor : operand.tensors) escapes_[plan_.tensors[tensor].root] = true;
    plan_.outputs.push_back({operand.value.is_list(), operand.tensors});
  }
}

}  // namespace tensord::jit
