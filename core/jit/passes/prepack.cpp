// prepack: operators whose weights are constants become packed operators (core/ops/attributes/packed.h),
// which reorder the weights for the machine once. An operator says how in its record (`pack`), by device;
// all its arguments but one must be known: the first, or the second (addmm).
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/ops/registry.h"

namespace tensord::jit {

namespace {

// The one device that all weights are on; empty without any, or with several.
std::optional<DeviceKind> device_of(std::span<const ops::Value> arguments) {
  std::optional<Device> device;
  for (const ops::Value& argument : arguments) {
    if (!argument.is_tensor() || !argument.to_tensor().defined()) continue;
    if (device && !(*device == argument.to_tensor().device())) return std::nullopt;
    device = argument.to_tensor().device();
  }
  if (!device) return std::nullopt;
  return device->kind;
}

IntrusivePtr<ops::PackedOp> try_pack(const Node& node, PassContext& context) {
  if (!node.op()) return nullptr;
  std::vector<ops::Value> arguments(node.inputs().size());
  int unknown = 0;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (auto value = known_value(node.input(i)))
      arguments[i] = std::move(*value);
    else if (i == 1)
      unknown = 1;
    else
      return nullptr;
  }
  if (unknown == 1) {
    auto value = known_value(node.input(0));
    if (!value) return nullptr;
    arguments[0] = std::move(*value);
  }
  const std::optional<DeviceKind> device = device_of(arguments);
  const ops::PackFn* pack = device ? &node.op()->pack[static_cast<size_t>(*device)] : nullptr;
  if (!pack || !*pack) return nullptr;
  if (!context.packs) context.packs = std::make_shared<ops::PackStore>();
  try {
    auto packed = (*pack)({*node.op(), arguments, context.precision, context.packs});
    return packed && packed->calls().front().input == unknown ? packed : nullptr;
  } catch (const Error&) {
    return nullptr;  // arguments that can never work: the run says so, if it ever comes there
  }
}

}  // namespace

bool prepack_weights(Graph& graph, PassContext& context) {
  const ops::Op* run = ops::find_op(ops::kRunPacked);
  if (!run) return false;
  bool changed = false;
  for_each_node(graph.block(), [&](Node* node) {
    IntrusivePtr<ops::PackedOp> packed = try_pack(*node, context);
    if (!packed || !context.take_change()) return;
    GraphBuilder builder(node);
    GraphValue* constant = builder.constant(ops::Value(IntrusivePtr<ops::OpaqueObject>(packed)), ops::packed_type());
    const auto input = static_cast<size_t>(packed->calls().front().input);
    GraphValue* const inputs[] = {constant, node->input(input)};
    GraphBuilder::take_place(builder.call(*run, inputs)->output(), node);
    node->destroy();
    changed = true;
  });
  return changed;
}

}  // namespace tensord::jit
