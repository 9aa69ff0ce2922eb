#include "kernels/linear/matmul_gradient.h"

#include "kernels/expr/expr.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels::gradient {
namespace {

using ops::GradArgs;

const Tensor& tensor(const GradArgs& args, size_t i) { return args.inputs[i].to_tensor(); }

Tensor transposed(const Tensor& t) { return ops::transpose(t, -2, -1); }
Tensor reshaped(const Tensor& t, const Dims& sizes) { return ops::reshape(t, sizes); }
Tensor unsqueezed(const Tensor& t, int64_t dim) { return ops::unsqueeze(t, dim); }

bool is_column_major(const Tensor& matrix) {
  return matrix.strides()[0] == 1 && matrix.strides()[1] == matrix.sizes()[0] && matrix.sizes()[1] != 1;
}

// left @ right in the memory order of `like`, so that gradients have the layout of their parameters in optimizers.
Tensor product_like(const Tensor& like, const Tensor& left, const Tensor& right) {
  if (!is_column_major(like)) return ops::mm(left, right);
  return transposed(ops::mm(transposed(right), transposed(left)));
}

Tensor scaled(const Tensor& t, double factor) { return factor == 1 ? t : ops::mul(t, ops::Scalar(factor)); }

Tensor left_of_mm(const Tensor& g, const Tensor& left, const Tensor& right) {
  return product_like(left, g, transposed(right));
}
Tensor right_of_mm(const Tensor& g, const Tensor& left, const Tensor& right) {
  return product_like(right, transposed(left), g);
}

// The first operand of the sum, and the factors of the others.
struct Sum {
  explicit Sum(const GradArgs& args)
      : g(args.grad_outputs[0]),
        beta(args.inputs[3].to_scalar().to_double()),
        alpha(args.inputs[4].to_scalar().to_double()) {
    if (args.needs(0)) self = scaled(fit_gradient(g, tensor(args, 0)), beta);
    if (args.needs(1) || args.needs(2)) g = scaled(g, alpha);
  }
  Tensor g, self;
  double beta, alpha;
};

// All rows of a tensor of any rank as one matrix.
Tensor as_rows(const Tensor& t) {
  if (t.ndim() == 2) return t;
  return reshaped(t, Dims{checked_numel(t.sizes().span().first(t.sizes().size() - 1)), t.sizes().back()});
}

}  // namespace

std::vector<Tensor> of_mm(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &a = tensor(args, 0), &b = tensor(args, 1);
  return {args.needs(0) ? left_of_mm(g, a, b) : Tensor(), args.needs(1) ? right_of_mm(g, a, b) : Tensor()};
}

std::vector<Tensor> of_bmm(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &a = tensor(args, 0), &b = tensor(args, 1);
  return {args.needs(0) ? ops::bmm(g, transposed(b)) : Tensor(), args.needs(1) ? ops::bmm(transposed(a), g) : Tensor()};
}

std::vector<Tensor> of_mv(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &matrix = tensor(args, 0), &vector = tensor(args, 1);
  return {args.needs(0) ? ops::outer(g, vector) : Tensor(), args.needs(1) ? ops::mv(transposed(matrix), g) : Tensor()};
}

std::vector<Tensor> of_dot(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &a = tensor(args, 0), &b = tensor(args, 1);
  return {args.needs(0) ? (Expr(b) * Expr(g)).tensor() : Tensor(),
          args.needs(1) ? (Expr(a) * Expr(g)).tensor() : Tensor()};
}

std::vector<Tensor> of_outer(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &a = tensor(args, 0), &b = tensor(args, 1);
  // The result has the dtype that both operands promote to.
  const auto in = [&g](const Tensor& t) { return t.dtype() == g.dtype() ? t : ops::to(t, g.dtype()); };
  return {args.needs(0) ? fit_gradient(ops::mv(g, in(b)), a) : Tensor(),
          args.needs(1) ? fit_gradient(ops::mv(transposed(g), in(a)), b) : Tensor()};
}

std::vector<Tensor> of_addmm(const GradArgs& args) {
  const Sum sum(args);
  const Tensor &a = tensor(args, 1), &b = tensor(args, 2);
  return {sum.self, args.needs(1) ? left_of_mm(sum.g, a, b) : Tensor(),
          args.needs(2) ? right_of_mm(sum.g, a, b) : Tensor(), Tensor(), Tensor()};
}

std::vector<Tensor> of_baddbmm(const GradArgs& args) {
  const Sum sum(args);
  const Tensor &a = tensor(args, 1), &b = tensor(args, 2);
  return {sum.self, args.needs(1) ? ops::bmm(sum.g, transposed(b)) : Tensor(),
          args.needs(2) ? ops::bmm(transposed(a), sum.g) : Tensor(), Tensor(), Tensor()};
}

std::vector<Tensor> of_addbmm(const GradArgs& args) {
  const Sum sum(args);
  const Tensor &a = tensor(args, 1), &b = tensor(args, 2);
  const Tensor g = ops::expand(sum.g, Dims{a.sizes()[0], a.sizes()[1], b.sizes()[2]});
  return {sum.self, args.needs(1) ? ops::bmm(g, transposed(b)) : Tensor(),
          args.needs(2) ? ops::bmm(transposed(a), g) : Tensor(), Tensor(), Tensor()};
}

std::vector<Tensor> of_addmv(const GradArgs& args) {
  const Sum sum(args);
  const Tensor &matrix = tensor(args, 1), &vector = tensor(args, 2);
  return {sum.self, args.needs(1) ? ops::outer(sum.g, vector) : Tensor(),
          args.needs(2) ? ops::mv(transposed(matrix), sum.g) : Tensor(), Tensor(), Tensor()};
}

std::vector<Tensor> of_matmul(const GradArgs& args) {
  const Tensor &a = tensor(args, 0), &b = tensor(args, 1);
  if (a.ndim() == 1 && b.ndim() == 1) return of_dot(args);
  // Vectors become matrices of one row or column.
  const Tensor left = a.ndim() == 1 ? unsqueezed(a, 0) : a, right = b.ndim() == 1 ? unsqueezed(b, 1) : b;
  Tensor g = args.grad_outputs[0];
  if (a.ndim() == 1) g = unsqueezed(g, -2);
  if (b.ndim() == 1) g = unsqueezed(g, -1);
  Tensor of_left, of_right;
  if (args.needs(0)) of_left = fit_gradient(ops::matmul(g, transposed(right)), left);
  if (args.needs(1)) {
    // One matrix on the right is multiplied by all rows: the sum of its gradients is one product.
    of_right = right.ndim() == 2 ? right_of_mm(as_rows(g), as_rows(left), right)
                                 : fit_gradient(ops::matmul(transposed(left), g), right);
  }
  return {of_left && a.ndim() == 1 ? reshaped(of_left, a.sizes()) : of_left,
          of_right && b.ndim() == 1 ? reshaped(of_right, b.sizes()) : of_right};
}

std::vector<Tensor> of_linear(const GradArgs& args) {
  const Tensor &g = args.grad_outputs[0], &input = tensor(args, 0), &weight = tensor(args, 1);
  const bool is_vector = weight.ndim() == 1;
  const Tensor rows = is_vector ? reshaped(g, Dims{g.numel(), 1}) : as_rows(g);
  std::vector<Tensor> out(3);
  if (args.needs(0)) {
    const Tensor matrix = is_vector ? unsqueezed(weight, 0) : weight;
    const Tensor product = ops::mm(rows, matrix);
    out[0] = input.ndim() == 2 ? product : reshaped(product, input.sizes());
  }
  if (args.needs(1)) {
    const Tensor product = ops::mm(transposed(rows), as_rows(input));
    out[1] = is_vector ? reshaped(product, weight.sizes()) : product;
  }
  if (args.needs(2) && args.inputs[2].is_tensor()) {
    const Tensor& bias = tensor(args, 2);
    out[2] = fit_gradient(bias.ndim() == 1 && !is_vector ? rows : g, bias);
  }
  return out;
}

}  // namespace tensord::kernels::gradient
