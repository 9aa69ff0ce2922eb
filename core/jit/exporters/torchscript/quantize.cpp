#include "core/jit/exporters/torchscript/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/ops/run.h"

namespace tensord::jit {
namespace {

using ops::Value;

// The names of attributes that the graph sets: their values are not known.
std::set<std::string> set_attributes(const Graph& graph) {
  std::set<std::string> names;
  for_each_node(*graph.block(), [&](const Node& node) {
    if (node.kind() == NodeKind::kSetAttr) names.insert(node.name());
  });
  return names;
}

// Finds the values of attributes.
class AttributeReader {
 public:
  AttributeReader(const Graph& graph, const ops::ObjectPtr& self)
      : self_(self), self_input_(graph.inputs().front()), changing_(set_attributes(graph)) {}

  std::optional<Value> find(const GraphValue* value) const {
    if (value == self_input_) return Value(self_);
    if (const Value* constant = value->constant()) return *constant;
    const Node* const node = value->node();
    if (!node || node->kind() != NodeKind::kGetAttr || changing_.contains(node->name())) return std::nullopt;
    const std::optional<Value> object = find(node->input());
    if (!object || !object->is_object()) return std::nullopt;
    const int slot = object->to_object()->type->find_attribute(node->name());
    if (slot < 0) return std::nullopt;
    return object->to_object()->slots[static_cast<size_t>(slot)];
  }

 private:
  const ops::ObjectPtr self_;
  const GraphValue* const self_input_;
  const std::set<std::string> changing_;
};

bool is_finite(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const float* values = dense.data<float>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

// The weight with a scale for each row: the largest magnitude becomes 127.5, as PerChannelMinMaxObserver has it.
Value quantized_weight(const Tensor& weight) {
  const Tensor dense = weight.contiguous();
  const int64_t rows = dense.size(0), columns = dense.size(1);
  const Tensor scales = Tensor::empty(Dims{rows}, DType::kFloat64), zeros = Tensor::empty(Dims{rows}, DType::kInt64);
  for (int64_t row = 0; row < rows; ++row) {
    float largest = 0;
    for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, std::abs(dense.data<float>()[row * columns + i]));
    scales.data<double>()[row] = std::max(largest / 127.5f, std::numeric_limits<float>::epsilon());
    zeros.data<int64_t>()[row] = 0;
  }
  return ops::call_by_name<Value>("aten::quantize_per_channel", dense, scales, zeros, int64_t{0},
                                  static_cast<int64_t>(DType::kQInt8));
}

// The packed layer, or why there is none.
struct Packed {
  Value layer;
  std::string problem;
};

Packed pack(const std::optional<Value>& weight, const std::optional<Value>& bias) {
  const bool has_bias = bias && bias->is_strided();
  if (!bias || (!has_bias && !bias->is_none())) return {{}, "its bias is computed"};
  if (has_bias && bias->to_tensor().dtype() != DType::kFloat32) return {{}, "its bias is not of float32"};
  if (!is_finite(weight->to_tensor())) return {{}, "its weight is not finite"};
  try {
    const Value arguments[] = {quantized_weight(weight->to_tensor()), *bias};
    return {ops::run(ops::get_op("quantized::linear_prepack"), arguments).at(0), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

// The scale and the zero point with which `levels` + 1 whole numbers from 0 on hold a range.
struct RangeNumbers {
  RangeNumbers(const ValueRange& range, int levels)
      : scale(std::max(static_cast<double>(range.max - range.min) / levels,
                       static_cast<double>(std::numeric_limits<float>::epsilon()))),
        zero_point(std::clamp<int64_t>(std::llrint(-static_cast<double>(range.min) / scale), 0, levels)) {}
  double scale;
  int64_t zero_point;
};

// fbgemm's sums saturate in places where inputs have 8 bits; outputs are not multiplied.
constexpr int kInputLevels = 127, kOutputLevels = 255;

// The result of the layer in place of the call `node`.
GraphValue* add_quantized_call(Node* node, const Value& packed, const LinearRanges::Layer* ranges) {
  GraphBuilder builder(node);
  GraphValue* const params = builder.constant(packed, ops::type_of(packed));
  if (!ranges) return builder.op("quantized::linear_dynamic", {node->input(0), params, builder.constant(Value(true))});
  const RangeNumbers in(ranges->input, kInputLevels), out(ranges->output, kOutputLevels);
  GraphValue* const input = builder.op("aten::quantize_per_tensor",
                                       {node->input(0), builder.constant(in.scale), builder.constant(in.zero_point),
                                        builder.constant(static_cast<int64_t>(DType::kQUInt8))});
  GraphValue* const result =
      builder.op("quantized::linear", {input, params, builder.constant(out.scale), builder.constant(out.zero_point)});
  return builder.op("aten::dequantize.self", {result});
}

// Why a layer has no usable ranges; empty: it has.
std::string problem_of(const LinearRanges::Layer* layer) {
  if (!layer) return "the data does not reach it";
  for (const ValueRange* range : {&layer->input, &layer->output}) {
    if (range->has_nan || !std::isfinite(range->max - range->min)) return "its values are not finite";
  }
  return "";
}

}  // namespace

void ValueRange::add(const Tensor& values) {
  const Tensor dense = values.to(DType::kFloat32).contiguous();
  const float* data = dense.data<float>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    if (std::isnan(data[i])) has_nan = true;
    min = std::min(min, data[i]), max = std::max(max, data[i]);
  }
}

void LinearRanges::after(const ops::Op& op, std::span<const Value> arguments, std::span<Value> returns) {
  if (op.schema.name != "aten::linear" || !arguments[1].is_strided() || !returns.front().is_strided()) return;
  Layer& layer = layers_[arguments[1].to_tensor().impl()];
  layer.input.add(arguments[0].to_tensor());
  layer.output.add(returns.front().to_tensor());
}

LinearRanges::ByName LinearRanges::by_name(const std::map<const TensorImpl*, std::string>& names) const {
  ByName out;
  for (const auto& [weight, layer] : layers_) {
    if (const auto name = names.find(weight); name != names.end()) out.emplace(name->second, layer);
  }
  return out;
}

QuantizedLinears quantize_linears(Graph& graph, const ops::ObjectPtr& self,
                                  const std::map<const TensorImpl*, std::string>& names,
                                  const std::function<bool(const std::string&)>& is_skipped,
                                  const LinearRanges::ByName* ranges) {
  QuantizedLinears out;
  const AttributeReader attributes(graph, self);
  const AliasAnalysis alias(graph, self);
  std::set<const TensorImpl*> replaced;
  for_each_node(graph.block(), [&](Node* node) {
    if (!node->is_op("aten::linear")) return;
    QuantizedLayer& layer = out.layers.emplace_back();
    const std::optional<Value> weight = attributes.find(node->input(1)), bias = attributes.find(node->input(2));
    if (!weight || !weight->is_strided() || !names.contains(weight->to_tensor().impl())) {
      layer.kept_because = "its weight is computed";
      return;
    }
    const Tensor& matrix = weight->to_tensor();
    layer.weight = names.at(matrix.impl());
    if (is_skipped(layer.weight)) layer.kept_because = "it is skipped";
    if (alias.has_writers(node->input(1)) || alias.has_writers(node->input(2)))
      layer.kept_because = "forward writes its weight or its bias";
    if (matrix.dtype() != DType::kFloat32 || matrix.ndim() != 2 || matrix.numel() == 0)
      layer.kept_because = concat("its weight is ", describe(matrix));
    const LinearRanges::Layer* measured = nullptr;
    if (ranges && ranges->contains(layer.weight)) measured = &ranges->at(layer.weight);
    if (layer.kept_because.empty() && ranges) layer.kept_because = problem_of(measured);
    if (!layer.kept_because.empty()) return;
    layer.outputs = matrix.size(0), layer.inputs = matrix.size(1);
    Packed made = pack(weight, bias);
    layer.kept_because = made.problem;
    if (!made.problem.empty()) return;
    node->output()->replace_all_uses_with(add_quantized_call(node, made.layer, measured));
    node->destroy();
    replaced.insert(matrix.impl());
    if (bias->is_strided()) replaced.insert(bias->to_tensor().impl());
  });
  out.unused = replaced;
  for_each_node(graph.block(), [&](Node* node) {
    if (node->kind() != NodeKind::kGetAttr) return;
    const std::optional<Value> value = attributes.find(node->output());
    if (!value || !value->is_strided()) return;
    if (node->has_output_uses()) {
      out.unused.erase(value->to_tensor().impl());
    } else if (replaced.contains(value->to_tensor().impl())) {
      node->destroy();  // the file has no such attribute
    }
  });
  return out;
}

}  // namespace tensord::jit
