#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// One call of a group. Tensor operands have indices: 0 … inputs-1 are the group's inputs, inputs + i is the result of
// step i.
struct FusedStep {
  const Op* op = nullptr;
  std::vector<Value> arguments;                 // None in place of an operand
  std::vector<std::pair<int, int>> operands{};  // (argument, operand)
};

// A few pure calls, each with one tensor result, that are fused: a chain of elementwise operators around at most one
// reduction along the last dimension. Made by the fuser pass; constant. It means the calls one by one, which is what
// `run` does; a kernel that computes them in one pass over memory comes from `prepare` of the operator that runs it.
class FusedCalls final : public OpaqueObject {
 public:
  FusedCalls(size_t input_count, std::vector<FusedStep> steps, std::vector<int> outputs)
      : input_count_(input_count), steps_(std::move(steps)), outputs_(std::move(outputs)) {}

  size_t input_count() const { return input_count_; }
  const std::vector<FusedStep>& steps() const { return steps_; }
  const std::vector<int>& outputs() const { return outputs_; }  // operand numbers
  // "tensord.Fused<add mul gelu>"
  std::string class_name() const override;

  // The results; for meta tensors their shapes.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

 private:
  size_t input_count_;
  std::vector<FusedStep> steps_;
  std::vector<int> outputs_;
};

// The operator that runs a group: (group, Tensor[] inputs) -> Tensor[].
inline constexpr const char* kRunFused = "tensord::fused";
TypePtr fused_type();

}  // namespace tensord::ops
