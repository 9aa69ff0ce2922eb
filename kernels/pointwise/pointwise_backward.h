#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"

// Gradients of elementwise operators that are operators themselves, each one loop.
namespace tensord::kernels {

// What a gradient formula is given: the gradient of the result, then grad_output, the second argument and the numbers.
using Given = std::span<const gradient::Expr>;

inline ops::TensorMeta infer_backward(const char* op, const Tensor& g, const Tensor& x) {
  const std::array operands{Operand(g), Operand(x)};
  return infer_pointwise(operands, compute_dtype(op, TypeClass::kFloatOnly, operands));
}
inline PointwiseCall backward_call(Formula formula, const Tensor& g, const Tensor& x, const Numbers& numbers = {}) {
  const std::array operands{Operand(g), Operand(x)};
  return {formula, promote_operands(operands), operands, numbers};
}

// Registers one of (Tensor grad_output, Tensor second, numbers), a loop of `formula`; `again` and `of_second` are the
// gradients of the two tensors.
template <class... Number>
void add_backward(const char* op, Formula formula, gradient::GradientFormula again,
                  gradient::GradientFormula of_second) {
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  const std::string saved = builder.schema().arguments[0].name + ", " + builder.schema().arguments[1].name;
  builder.infer([op](const Tensor& g, const Tensor& x, const Number&...) { return infer_backward(op, g, x); })
      .gradient([again, of_second](const ops::GradArgs& args) {
        std::vector<Tensor> gradients(args.inputs.size());
        std::vector<gradient::Expr> given{gradient::Expr(args.grad_outputs[0])};
        given.insert(given.end(), args.inputs.begin(), args.inputs.end());
        if (args.needs(0)) gradients[0] = gradient::evaluate(again, given, args.inputs[0].to_tensor());
        if (args.needs(1)) gradients[1] = gradient::evaluate(of_second, given, args.inputs[1].to_tensor());
        return gradients;
      })
      .saves(saved.c_str())
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [formula](const Tensor& g, const Tensor& x, const Number&... numbers) {
    return backward_call(formula, g, x, Numbers{numbers...});
  });
}

}  // namespace tensord::kernels
