// The backward of softmax and log_softmax along one dimension, from their results.
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::TensorMeta;

Expr sum(const Expr& value, int64_t dim) { return Expr(ops::sum(value.tensor(), Dims{dim}, true)); }

// With a as the incoming gradient. softmax's backward y (g - sum(g y)) has dg = y (a - sum(a y)), dy = a (g - sum(g y))
// - g sum(a y). log_softmax's backward g - exp(y) sum(g) has dg = a - sum(a exp(y)), dy = - a exp(y) sum(g).
std::vector<ops::Value> gradient_of_softmax_backward(const ops::GradArgs& args, bool is_log) {
  std::vector<ops::Value> out(args.inputs.size());
  const Expr a = args.grad_outputs[0], g = args.inputs[0], y = args.inputs[1];
  const int64_t dim = args.inputs[2].to_int();
  if (is_log) {
    const Expr e = gradient::exp(y);
    if (args.needs(0)) out[0] = gradient::fit_gradient(a - sum(a * e, dim), g.tensor());
    if (args.needs(1)) out[1] = gradient::fit_gradient(-(a * e * sum(g, dim)), y.tensor());
  } else {
    if (args.needs(0)) out[0] = gradient::fit_gradient(y * (a - sum(a * y, dim)), g.tensor());
    if (args.needs(1)) {
      out[1] = gradient::fit_gradient(a * (g - sum(g * y, dim)) - g * sum(a * y, dim), y.tensor());
    }
  }
  return out;
}

void add_backward(const char* name, bool is_log) {
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& y, int64_t dim, DType dtype) {
        check(g.sizes() == y.sizes(), "the gradient is of size ", g.sizes(), ", the result of ", y.sizes());
        if (!is_floating(y.dtype())) fail_dtype("softmax_backward", y.dtype());
        wrap_dim(dim, y.ndim());
        // The result is rounded to half again when a half was computed in float.
        const bool narrows = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
        return TensorMeta{y.sizes(), narrows ? dtype : y.dtype(), {}, y.device()};
      })
      .gradient([is_log](const ops::GradArgs& args) { return gradient_of_softmax_backward(args, is_log); })
      .saves("grad_output, output")
      .reduction();
}

[[maybe_unused]] const bool softmax_backward_registered = [] {
  add_backward("aten::_softmax_backward_data", false);
  add_backward("aten::_log_softmax_backward_data", true);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
