// Collects the calls of a tile program; see tile_program.h.
#include <algorithm>

#include "core/ops/run.h"
#include "kernels/fused/tile_program.h"

namespace tensord::kernels {

using ops::Value;

int TileBuilder::add_input(const Tensor& tensor) {
  TileBuilder::Value value;
  value.tensor = tensor;
  if (tensor.is_meta()) value.input = inputs_++;
  values_.push_back(std::move(value));
  return static_cast<int>(values_.size()) - 1;
}

namespace {

// A divisor that is an integer input of the run has to be checked before the call; the kernel does that.
bool divides_unknown(const PointwiseCall& call) {
  if (!call.checks_divisor()) return false;
  return call.tensor(1) != nullptr || call.operands[1].number.to_int() == 0;
}

}  // namespace

bool TileBuilder::add_formula(const PointwiseMaker& make, std::span<const ops::Value> arguments,
                              std::span<const std::pair<int, int>> operands, Step& step) {
  step.call = make(arguments);
  if (step.call.count == 0 || divides_unknown(step.call)) return false;
  for (size_t k = 0; k < step.call.count; ++k) {
    const Tensor* tensor = step.call.tensor(k);
    if (tensor == nullptr) {
      step.operands[k].number = step.call.operands[k].number;
      continue;
    }
    for (const auto& [argument, value] : operands) {
      if (arguments[static_cast<size_t>(argument)].to_tensor().is_same(*tensor)) step.operands[k].value = value;
    }
    if (step.operands[k].value >= 0) continue;
    if (tensor->is_meta()) return false;
    step.operands[k].value = add_input(*tensor);  // a view of a constant, made by the operator
  }
  // The arguments that the call refers to do not outlive this function.
  step.call.operands = {};
  step.call.owned = {};
  return true;
}

bool TileBuilder::add_row_kernel(const RowKernelMaker& make, std::span<const ops::Value> arguments,
                                 std::span<const std::pair<int, int>> operands, Step& step) {
  step.is_row_kernel = true;
  step.row_kernel = make(arguments);
  if (step.row_kernel.run == nullptr) return false;
  for (const auto& [argument, value] : operands) {
    if (argument == 0) step.input = value;
    for (size_t k = 0; k < 2; ++k) {
      if (argument == step.row_kernel.extra[k]) step.extra[k] = value;
    }
  }
  if (step.input < 0) return false;
  const Tensor& in = values_[static_cast<size_t>(step.input)].tensor;
  if (step.row_kernel.exact_input && in.dtype() != step.row_kernel.compute) return false;
  if (in.ndim() == 0) return false;
  for (size_t k = 0; k < 2; ++k) {
    if (step.row_kernel.extra[k] < 0 || arguments[static_cast<size_t>(step.row_kernel.extra[k])].is_none()) continue;
    if (step.extra[k] < 0) return false;
    TileBuilder::Value& extra = values_[static_cast<size_t>(step.extra[k])];
    if (extra.step >= 0) return false;
    if (extra.tensor.dtype() == step.row_kernel.compute && extra.tensor.is_contiguous()) continue;
    if (extra.tensor.is_meta()) return false;
    step.extra[k] = add_input(extra.tensor.to(step.row_kernel.compute).contiguous());
  }
  return true;
}

int TileBuilder::add_call(const ops::Op& op, std::vector<ops::Value> arguments,
                          std::span<const std::pair<int, int>> operands) {
  for (const auto& [argument, value] : operands)
    arguments[static_cast<size_t>(argument)] = values_[static_cast<size_t>(value)].tensor;
  Step step;
  if (const PointwiseMaker* make = find_pointwise(op)) {
    if (!add_formula(*make, arguments, operands, step)) return -1;
  } else if (const RowKernelMaker* row = find_row_kernel(op)) {
    if (!add_row_kernel(*row, arguments, operands, step)) return -1;
  } else {
    return -1;
  }
  // Shapes only, for constants too.
  for (const auto& [argument, value] : operands) {
    const Tensor& tensor = values_[static_cast<size_t>(value)].tensor;
    arguments[static_cast<size_t>(argument)] = Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype());
  }
  TileBuilder::Value result;
  result.tensor = ops::infer(op, arguments).front().to_tensor();
  if (step.is_row_kernel) {
    const Tensor& in = values_[static_cast<size_t>(step.input)].tensor;
    if (step.row_kernel.length != 0 && step.row_kernel.length != in.sizes().back()) {
      // A normalization over several dimensions is one over their product.
      if (!is_alone_ || step.row_kernel.reduces || !in.is_contiguous() || step.row_kernel.length <= 0) return -1;
      const Dims flat{in.numel() / step.row_kernel.length, step.row_kernel.length};
      // A constant keeps its elements.
      Tensor& input = values_[static_cast<size_t>(step.input)].tensor;
      input = in.is_meta() ? Tensor::meta(flat, in.dtype()) : in.as_view(flat, contiguous_strides(flat), in.offset());
      result.tensor = Tensor::meta(flat, result.tensor.dtype());
    }
  }
  result.step = static_cast<int>(steps_.size());
  steps_.push_back(std::move(step));
  values_.push_back(std::move(result));
  return static_cast<int>(values_.size()) - 1;
}

}  // namespace tensord::kernels
