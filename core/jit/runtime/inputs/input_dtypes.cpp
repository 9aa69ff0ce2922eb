#include <algorithm>

#include "core/base/error.h"
#include "core/jit/runtime/inputs/traced.h"
#include "core/ops/run.h"

namespace tensord::jit {
namespace {

using ops::Value;

// Without the device: the examples of arguments have none, and types do not depend on it.
Tensor shape_of(const Tensor& tensor) { return Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype()); }

// Whether ranks affect type promotion: tensors without dimensions have lower priority.
bool ranks_matter(const ops::Op& op, std::span<const TracedOperand> operands) {
  const auto is_tensor = [](const TracedOperand& o) { return o.is_tensor_constant() || o.traced.is_traced; };
  const auto has_unknown_rank = [](const TracedOperand& o) { return o.traced.is_traced && !o.traced.shape; };
  return op.is_pointwise && std::ranges::count_if(operands, is_tensor) > 1 &&
         std::ranges::any_of(operands, has_unknown_rank);
}

// Arguments for which the input has dtype number `i`, as tensors with the example's shape; nullopt if one is unknown,
// or if no run gets here.
std::optional<std::vector<Value>> example_arguments(std::span<const TracedOperand> operands, size_t i,
                                                    const Dims& example) {
  std::vector<Value> arguments;
  for (const TracedOperand& operand : operands) {
    if (operand.constant) {
      arguments.push_back(operand.is_tensor_constant() ? Value(shape_of(operand.tensor())) : *operand.constant);
    } else if (operand.traced.dtypes && (*operand.traced.dtypes)[i]) {
      const bool is_single = operand.traced.shape && operand.traced.shape->empty();
      arguments.emplace_back(Tensor::meta(is_single ? Dims{} : example, *(*operand.traced.dtypes)[i]));
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

std::optional<DType> result_dtype(const ops::Op& op, const std::vector<Value>& arguments) {
  try {
    const std::vector<Value> results = ops::infer(op, arguments);
    if (results.empty() || !results[0].is_strided()) return std::nullopt;
    return results[0].to_tensor().dtype();
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_reachable(std::span<const TracedOperand> operands, size_t i) {
  return std::ranges::all_of(operands, [&](const TracedOperand& operand) {
    return operand.constant || (operand.traced.dtypes && (*operand.traced.dtypes)[i]);
  });
}

}  // namespace

std::optional<TracedDtypes> trace_dtypes(const ops::Op& op, std::span<const TracedOperand> operands,
                                         std::span<const Dims> examples, Facts& facts) {
  const bool is_known = std::ranges::all_of(
      operands, [](const TracedOperand& operand) { return operand.constant || operand.traced.dtypes.has_value(); });
  if (!is_known || ranks_matter(op, operands)) return std::nullopt;
  for (const Dims& example : examples) {
    TracedDtypes out;
    bool fits = false;
    for (size_t i = 0; i < kRequestDtypeCount; ++i) {
      const auto arguments = example_arguments(operands, i, example);
      if (arguments) out[i] = result_dtype(op, *arguments);
      fits = fits || out[i].has_value();
    }
    // If every dtype fails, the sizes may be the cause.
    if (!fits) continue;
    for (size_t i = 0; i < kRequestDtypeCount; ++i) {
      if (is_reachable(operands, i) && !out[i]) facts.failing.insert(kRequestDtypes[i]);
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace tensord::jit
