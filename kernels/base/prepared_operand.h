#pragma once

#include <span>
#include <vector>

#include "core/ops/prepared.h"
#include "core/ops/value.h"

namespace tensord::kernels {

// The source of a prepared call's tensor argument: a constant, or an input of the run.
struct PreparedOperand {
  Tensor constant;  // undefined if each run passes it
  size_t input = 0;

  const void* at(const ops::PreparedRun& memory) const {
    return constant.defined() ? constant.raw_data() : memory.inputs[input];
  }
};
using PreparedOperands = std::vector<PreparedOperand>;

// The tensors among the arguments, in order; lists are not searched.
inline PreparedOperands operands_of(std::span<const ops::Value> arguments) {
  PreparedOperands operands;
  size_t inputs = 0;
  for (const ops::Value& argument : arguments) {
    if (!argument.is_tensor()) continue;
    const Tensor& tensor = argument.to_tensor();
    operands.push_back(tensor.is_meta() ? PreparedOperand{Tensor(), inputs++} : PreparedOperand{tensor, 0});
  }
  return operands;
}

}  // namespace tensord::kernels
