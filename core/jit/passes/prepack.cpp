// prepack: replaces operators with constant weights by packed operators (core/ops/attributes/packed.h), which reorder
// the weights for the machine once. The operator's record has a packing function (`pack`) by device. All arguments
// except one must be known: the first, or the second (addmm). Half-precision weights that the graph converts to float32
// are packed without a copy.
#include <algorithm>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/ops/registry.h"

namespace tensord::jit {

namespace {

// The device of all weights; empty if there are none or if they are on several devices.
std::optional<DeviceKind> common_device(std::span<const ops::Value> arguments) {
  std::optional<Device> device;
  for (const ops::Value& argument : arguments) {
    if (!argument.is_strided() || !argument.to_tensor().defined()) continue;
    if (device && !(*device == argument.to_tensor().device())) return std::nullopt;
    device = argument.to_tensor().device();
  }
  if (!device) return std::nullopt;
  return device->kind;
}

// The known arguments of a call: all except one.
struct KnownArguments {
  std::vector<ops::Value> values;
  uint32_t widened = 0;  // half-precision weights that the call takes as float32
  size_t unknown = 0;

  bool add(size_t i, const GraphValue* value, const Graph& graph) {
    if (auto known = known_value(value)) {
      values[i] = std::move(*known);
      return true;
    }
    const Tensor halves = halves_of(value);
    if (!halves.defined() || i >= 32) return false;
    const AliasAnalysis alias(graph);
    if (alias.has_writers(value) || alias.has_writers(value->node()->input(0))) return false;
    values[i] = halves;
    widened |= 1u << i;
    return true;
  }
};

std::optional<KnownArguments> known_arguments(const Node& node, const Graph& graph) {
  KnownArguments known{std::vector<ops::Value>(node.inputs().size())};
  for (size_t i = 1; i < node.inputs().size(); ++i) {
    if (known.add(i, node.input(i), graph)) continue;
    if (i != 1) return std::nullopt;
    known.unknown = 1;
  }
  if (known.unknown == 1 && !known.add(0, node.input(0), graph)) return std::nullopt;
  return known;
}

IntrusivePtr<ops::PackedOp> try_pack(const Node& node, const Graph& graph, PassContext& context) {
  const auto is_packed = [](const ops::PackFn& pack) { return static_cast<bool>(pack); };
  if (!node.op() || std::ranges::none_of(node.op()->pack, is_packed)) return nullptr;
  const std::optional<KnownArguments> known = known_arguments(node, graph);
  if (!known) return nullptr;
  const std::optional<DeviceKind> device = common_device(known->values);
  const ops::PackFn* pack = device ? &node.op()->pack[static_cast<size_t>(*device)] : nullptr;
  if (!pack || !*pack) return nullptr;
  if (!context.packs) context.packs = std::make_shared<ops::PackStore>();
  try {
    auto packed = (*pack)({*node.op(), known->values, context.precision, context.packs, known->widened});
    return packed && packed->calls().front().input == static_cast<int>(known->unknown) ? packed : nullptr;
  } catch (const Error&) {
    return nullptr;  // invalid arguments: the run reports them if it reaches the call
  }
}

}  // namespace

bool prepack_weights(Graph& graph, PassContext& context) {
  const ops::Op* run = ops::find_op(ops::kRunPacked);
  if (!run) return false;
  bool changed = false;
  for_each_node(graph.block(), [&](Node* node) {
    IntrusivePtr<ops::PackedOp> packed = try_pack(*node, graph, context);
    if (!packed || !context.take_change()) return;
    GraphBuilder builder(node);
    GraphValue* constant = builder.constant(ops::Value(IntrusivePtr<ops::OpaqueObject>(packed)), ops::packed_type());
    const auto input = static_cast<size_t>(packed->calls().front().input);
    GraphValue* const inputs[] = {constant, node->input(input)};
    GraphBuilder::replace_value(builder.call(*run, inputs)->output(), node);
    node->destroy();
    changed = true;
  });
  return changed;
}

}  // namespace tensord::jit
