// Backward operators of PyTorch, which traces of backward passes contain, composed of other operators. Backward
// operators with a kernel of their own stand beside their forward.
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;

// `buffer` is used by PyTorch's kernel only.
OP("aten::log_sigmoid_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor&) {
      return (Expr(grad) * gradient::sigmoid(-Expr(x))).tensor();
    })
    .composite();

// Returns both gradients, for the backward of PyTorch's own.
OP("aten::log_sigmoid_forward")
    .impl([](const Tensor& x) {
      return std::tuple(ops::log_sigmoid(x), gradient::exp(-gradient::abs(Expr(ops::detach(x)))).tensor());
    })
    .composite();

OP("aten::mish_backward")
    .impl([](const Tensor& grad, const Tensor& x) {
      const Expr in = x, curve = gradient::tanh(gradient::softplus(in));
      const Expr out = Expr(grad) * (curve + in * gradient::sigmoid(in) * (-gradient::square(curve) + 1));
      return out.tensor().dtype() == x.dtype() ? out.tensor() : ops::to(out.tensor(), x.dtype());
    })
    .composite();

// The gradient of the value is the gate's sigmoid; that of the gate is the value times the sigmoid's slope.
OP("aten::glu_backward")
    .impl([](const Tensor& grad, const Tensor& x, int64_t dim) {
      check(x.ndim() > 0, "glu does not support 0-dimensional tensors");
      const int64_t wrapped = wrap_dim(dim, x.ndim()), size = x.size(wrapped);
      check(size % 2 == 0, "Halving dimension must be even, but dimension ", wrapped, " is size ", size);
      const Expr value = ops::slice(x, wrapped, int64_t{0}, size / 2, int64_t{1});
      const Expr gate = ops::slice(x, wrapped, size / 2, size, int64_t{1});
      const Expr open = gradient::sigmoid(gate), g = grad;
      const std::vector<Tensor> parts{(g * open).tensor(), (g * value * open * (-open + 1)).tensor()};
      return ops::cat(parts, wrapped);
    })
    .composite();

OP("aten::trace_backward")
    .impl([](const Tensor& grad, const Dims& sizes) {
      check(sizes.size() == 2, "expected matrix input");
      const Tensor ones = ops::expand(grad, Dims{std::min(sizes[0], sizes[1])});
      return ops::diagonal_backward(ones, sizes, int64_t{0}, int64_t{0}, int64_t{1});
    })
    .composite();

OP("aten::index_select_backward")
    .impl([](const Tensor& grad, const Dims& sizes, int64_t dim, const Tensor& index) {
      return ops::index_add(ops::new_zeros(grad, sizes), dim, index, grad);
    })
    .composite();

// The backward of max, min, median … along a dimension: the gradient goes to the chosen elements.
OP("aten::value_selecting_reduction_backward")
    .impl([](const Tensor& grad, int64_t dim, const Tensor& indices, const Dims& sizes, bool keepdim) {
      const bool is_gone = !keepdim && !sizes.empty();
      const Tensor g = is_gone ? ops::unsqueeze(grad, dim) : grad;
      const Tensor at = is_gone ? ops::unsqueeze(indices, dim) : indices;
      return ops::scatter(ops::new_zeros(grad, sizes), dim, at, g);
    })
    .composite();

OP("aten::masked_select_backward")
    .impl([](const Tensor& grad, const Tensor& input, const Tensor& mask) {
      const Dims sizes = broadcast_sizes(input.sizes(), mask.sizes());
      const Tensor zeros = ops::new_zeros(grad, sizes);
      const Tensor all = ops::masked_scatter(zeros, mask, grad);
      return gradient::fit_gradient(Expr(all), input);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
