// The backward of softmax and log_softmax along one dimension, from their results.
#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/norm/softmax.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::KernelContext;
using ops::TensorMeta;

template <class T>
void run(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, T* out) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < y.ndim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : y.sizes()[d];
  const int64_t length = y.ndim() == 0 ? 1 : y.sizes()[dim];
  const T *from = y.data<T>(), *incoming = g.data<T>();
  const double lane_ns = (is_log ? 0.5 : 0.2) * static_cast<double>(length);
  if (inner == 1) {
    return parallel_for_cost(outer, lane_ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        softmax_backward_lane(incoming + i * length, from + i * length, out + i * length, length, is_log);
    });
  }
  // Blocks of columns, so that a call of many rows and one of many columns are both cut.
  constexpr int64_t kColumns = 256;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for_cost(outer * blocks, lane_ns * static_cast<double>(std::min(kColumns, inner)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t column = i % blocks * kColumns, offset = i / blocks * length * inner + column;
                        softmax_backward_columns(incoming + offset, from + offset, out + offset, length, inner,
                                                 std::min(kColumns, inner - column), is_log);
                      }
                    });
}

template <class T>
void run_as(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, const Tensor& out) {
  const Tensor incoming = g.to(dtype_of<T>).contiguous(), from = y.to(dtype_of<T>).contiguous();
  if (out.dtype() == dtype_of<T>) return run<T>(incoming, from, dim, is_log, out.data<T>());
  const Tensor wide = Tensor::empty(out.sizes(), dtype_of<T>);
  run<T>(incoming, from, dim, is_log, wide.data<T>());
  out.copy_from(wide);
}

void backward(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, y.ndim());
  if (y.dtype() == DType::kFloat64)
    run_as<double>(g, y, dim, is_log, out);
  else
    run_as<float>(g, y, dim, is_log, out);
}

Expr sum(const Expr& value, int64_t dim) {
  return Expr(ops::call("aten::sum.dim_IntList", value.tensor(), Dims{dim}, true));
}

// Of softmax's backward y (g - sum(g y)), with a the gradient that comes in:
//   dg = y (a - sum(a y)),  dy = a (g - sum(g y)) - g sum(a y);
// of log_softmax's g - exp(y) sum(g): dg = a - sum(a exp(y)), dy = - a exp(y) sum(g).
std::vector<ops::Value> gradient_of_backward(const ops::GradArgs& args, bool is_log) {
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

void add(const char* name, bool is_log) {
  ops::OpBuilder(concat(name, "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor").c_str(),
                 __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& y, int64_t dim, DType dtype) {
        check(g.sizes() == y.sizes(), "the gradient is of size ", g.sizes(), ", the result of ", y.sizes());
        if (!is_floating(y.dtype())) fail_dtype("softmax_backward", y.dtype());
        wrap_dim(dim, y.ndim());
        // What was computed in float of a half becomes one again.
        const bool narrows = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
        return TensorMeta{y.sizes(), narrows ? dtype : y.dtype(), {}, y.device()};
      })
      .gradient([is_log](const ops::GradArgs& args) { return gradient_of_backward(args, is_log); })
      .saves("grad_output, output")
      .reduction();
  ops::KernelBuilder(name, DeviceKind::kCPU,
                     [is_log](const KernelContext&, const Tensor& g, const Tensor& y, int64_t dim, DType, Tensor& out) {
                       backward(g, y, dim, is_log, out);
                     });
}

[[maybe_unused]] const bool registered = [] {
  add("aten::_softmax_backward_data", false);
  add("aten::_log_softmax_backward_data", true);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
