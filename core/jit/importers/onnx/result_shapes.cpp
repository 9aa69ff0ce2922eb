#include "core/jit/importers/onnx/result_shapes.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {

namespace {

enum class From {
  kNumber,      // always this
  kRank,        // the input's rank, and so many more
  kLength,      // the input's length, and so many more
  kAddLength,   // the first input's rank and the second one's length
  kTakeLength,  // the first input's rank without the second one's length
  kReduction,   // the same, where the dimensions are not kept
  kGather,      // the first two inputs' ranks, less the dimension that is indexed
  kAxis,        // the first input's rank along an axis, else 1
  kLargest,     // of all inputs, which are broadcast
  kExpanded,    // of the first input, or the second one's length where that is larger
};

struct Rule {
  std::string_view op_type;
  From from;
  int64_t number = 0;
  size_t input = 0;     // input that determines the rank
  size_t dtype_of = 0;  // input that has the type of the first output
};

constexpr Rule kRules[] = {
    {"NonZero", From::kNumber, 2},
    {"NonMaxSuppression", From::kNumber, 2},
    {"Range", From::kNumber, 1},
    {"ConstantOfShape", From::kLength},
    {"Reshape", From::kLength, 0, 1},
    {"AffineGrid", From::kLength, 0, 1},
    {"Col2Im", From::kLength, 2, 1},
    {"Expand", From::kExpanded},
    {"Unsqueeze", From::kAddLength},
    {"Squeeze", From::kTakeLength},
    {"Gather", From::kGather},
    {"Compress", From::kAxis},
    {"Unique", From::kAxis},
    {"OneHot", From::kRank, 1, 0, 2},
    {"Where", From::kLargest, 0, 0, 1},
    {"ReduceL1", From::kReduction},
    {"ReduceL2", From::kReduction},
    {"ReduceLogSum", From::kReduction},
    {"ReduceLogSumExp", From::kReduction},
    {"ReduceMax", From::kReduction},
    {"ReduceMean", From::kReduction},
    {"ReduceMin", From::kReduction},
    {"ReduceProd", From::kReduction},
    {"ReduceSum", From::kReduction},
    {"ReduceSumSquare", From::kReduction},
};

constexpr std::string_view kSameRank[] = {
    "CenterCropPad", "Concat", "CumSum", "DFT",  "MaxUnpool", "Pad",   "Resize",   "ReverseSequence", "ScatterElements",
    "ScatterND",     "Slice",  "Split",  "Tile", "TopK",      "Trilu", "Upsample", "GatherElements"};
constexpr std::string_view kBroadcast[] = {"Add", "Div",   "Max", "Mean", "Min", "Mod", "Mul",
                                           "Pow", "PRelu", "Sub", "Sum",  "And", "Or",  "Xor"};
constexpr std::string_view kComparisons[] = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

std::optional<Rule> find_rule(std::string_view op) {
  for (const Rule& rule : kRules) {
    if (rule.op_type == op) return rule;
  }
  const auto is_in = [&](const auto& names) { return std::ranges::find(names, op) != std::end(names); };
  if (is_in(kSameRank)) return Rule{op, From::kRank};
  if (is_in(kBroadcast) || is_in(kComparisons)) return Rule{op, From::kLargest};
  return std::nullopt;
}

std::optional<int64_t> plus(std::optional<int64_t> a, std::optional<int64_t> b, int64_t sign = 1) {
  return a && b ? std::optional(*a + sign * *b) : std::nullopt;
}

std::optional<int64_t> reduced(const NodeProto& node, const InputFacts& inputs) {
  const AttributeProto* keeps = node.find_attribute("keepdims");
  if (!keeps || keeps->i != 0) return inputs.rank(0);
  // No axes means all of them, or none.
  const std::optional<int64_t> count = inputs.length(1);
  return count.value_or(0) > 0 ? plus(inputs.rank(0), count, -1) : std::nullopt;
}

std::optional<int64_t> rank_by(const Rule& rule, const NodeProto& node, size_t output, const InputFacts& inputs) {
  switch (rule.from) {
    case From::kNumber: return rule.number;
    case From::kRank: return plus(inputs.rank(rule.input), rule.number);
    case From::kLength: return plus(inputs.length(rule.input), rule.number);
    case From::kAddLength: return plus(inputs.rank(0), inputs.length(1));
    case From::kTakeLength: return plus(inputs.rank(0), inputs.length(1), -1);
    case From::kGather: return plus(plus(inputs.rank(0), inputs.rank(1)), 1, -1);
    case From::kReduction: return reduced(node, inputs);
    case From::kAxis: return node.find_attribute("axis") && output == 0 ? inputs.rank(0) : std::optional<int64_t>(1);
    case From::kExpanded:
      if (!inputs.rank(0) || !inputs.length(1)) return std::nullopt;
      return std::max(*inputs.rank(0), *inputs.length(1));
    case From::kLargest: {
      int64_t largest = 0;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const std::optional<int64_t> rank = inputs.rank(i);
        if (!rank) return std::nullopt;
        largest = std::max(largest, *rank);
      }
      return largest;
    }
  }
  return std::nullopt;
}

std::optional<DType> dtype_by(const Rule& rule, const NodeProto& node, size_t output, const InputFacts& inputs) {
  const std::string_view op = rule.op_type;
  if (op == "NonZero" || op == "NonMaxSuppression") return DType::kInt64;
  if (output > 0 && (op == "TopK" || op == "Unique")) return DType::kInt64;
  if (std::ranges::find(kComparisons, op) != std::end(kComparisons)) return DType::kBool;
  if (op == "ConstantOfShape") {
    const AttributeProto* value = node.find_attribute("value");
    return value && value->t ? find_dtype(value->t->data_type) : DType::kFloat32;
  }
  return inputs.dtype(rule.dtype_of);
}

// All sizes but the one along the axis are the input's.
void keep_sizes(const NodeProto& node, const InputFacts& inputs, int64_t axis, Dims& sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  if (const AttributeProto* given = node.find_attribute("axis")) axis = given->i;
  if (axis < 0) axis += rank;
  const Dims before = inputs.sizes(0);
  if (before.size() != sizes.size() || axis < 0 || axis >= rank) return;
  sizes = before;
  sizes[static_cast<size_t>(axis)] = -1;
}

void note_sizes(const NodeProto& node, size_t output, const InputFacts& inputs, Dims& sizes) {
  const std::string_view op = node.op_type;
  if (op == "NonZero") {
    // A number is taken for a list of one.
    if (const std::optional<int64_t> rank = inputs.rank(0)) sizes[0] = std::max<int64_t>(*rank, 1);
  } else if (op == "NonMaxSuppression") {
    sizes[1] = 3;
  } else if (op == "TopK") {
    keep_sizes(node, inputs, -1, sizes);
  } else if ((op == "Compress" || op == "Unique") && output == 0 && node.find_attribute("axis")) {
    keep_sizes(node, inputs, 0, sizes);
  }
}

}  // namespace

std::optional<ShapeOfResult> shape_of_result(const NodeProto& node, size_t output, const InputFacts& inputs) {
  if (!node.domain.empty()) return std::nullopt;
  const std::optional<Rule> rule = find_rule(node.op_type);
  if (!rule) return std::nullopt;
  const std::optional<int64_t> rank = rank_by(*rule, node, output, inputs);
  const std::optional<DType> dtype = dtype_by(*rule, node, output, inputs);
  constexpr int64_t kMaxRank = 64;
  if (!rank || !dtype || *rank < 0 || *rank > kMaxRank) return std::nullopt;
  ShapeOfResult shape{Dims(static_cast<size_t>(*rank), -1), *dtype};
  note_sizes(node, output, inputs, shape.sizes);
  return shape;
}

}  // namespace tensord::jit::onnx
