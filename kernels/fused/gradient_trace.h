#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/prepared.h"
#include "kernels/expr/expr.h"
#include "kernels/fused/tile_program.h"

// Gradient formulas as tile programs. A formula is run once on meta tensors while a trace notes the
// operators it calls; see gradient_fused_cpu.cpp for when.
namespace tensord::kernels::gradient {

// Records the operators that a formula calls. During its lifetime, operators of Expr on this thread are recorded, not
// run.
class Trace final : public Recorder {
 public:
  // Tensors among the operands become inputs in their order; meta ones and None must not be used.
  explicit Trace(std::span<const Expr> operands);
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // The operands to call the formula with.
  std::span<const Expr> operands() const { return operands_; }
  // Records a call and returns its result. `arguments` are bound.
  ops::Value add(const ops::Op& op, std::vector<ops::Value> arguments) override;

  // The index of the input that `result` is, if the formula returned it unchanged.
  std::optional<size_t> input_of(const Expr& result) const;
  // One pass that computes `result`; null if tile programs do not cover it.
  std::unique_ptr<ops::PreparedCall> compile(const Expr& result, int threads);

 private:
  struct Call {
    const ops::Op* op;
    std::vector<ops::Value> arguments;
    Tensor result;
  };
  std::ptrdiff_t find(const Tensor& value) const;

  std::vector<Expr> operands_;
  size_t inputs_ = 0;
  std::vector<Tensor> values_;  // inputs, then results of calls; meta
  std::vector<int> numbers_;    // of the values in the builder; -1: not covered
  std::vector<Call> calls_;
  TileBuilder builder_;
};

}  // namespace tensord::kernels::gradient
