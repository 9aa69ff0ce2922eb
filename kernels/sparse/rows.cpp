// Products, triangular solutions and softmax over the rows of a sparse matrix, as differentiable operators on its
// values. The loops themselves check the indices (rows_cpu.cpp), since scripts can call the operators.
#include "kernels/sparse/rows.h"

#include "kernels/complex/parts.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/pointwise.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::TensorMeta;

void check_vector(const Tensor& x, const char* name) {
  check(x.ndim() == 1 && x.dtype() == DType::kInt64, "expected a vector of int64 as ", name, ", but got ", describe(x));
}

TensorMeta scatter_meta(const Tensor& places, const Tensor& values, int64_t count) {
  check_vector(places, "places");
  check(values.ndim() > 0 && values.sizes()[0] == places.numel() && count >= 0, "expected values for ", places.numel(),
        " places, but got ", describe(values));
  Dims sizes = values.sizes();
  sizes[0] = count;
  return {sizes, values.dtype(), {}, {}};
}

TensorMeta gather_meta(const Tensor& places, const Tensor& x) {
  check_vector(places, "places");
  check(x.ndim() > 0, "expected rows, but got ", describe(x));
  Dims sizes = x.sizes();
  sizes[0] = places.numel();
  return {sizes, x.dtype(), {}, {}};
}

void check_sparse(const Tensor& starts, const Tensor& columns, const Tensor& values) {
  check_vector(starts, "starts");
  check_vector(columns, "columns");
  check(starts.numel() > 0 && values.ndim() == 1 && values.numel() == columns.numel(), "expected ", columns.numel(),
        " values, but got ", describe(values));
}

TensorMeta product_meta(const Tensor& starts, const Tensor& columns, const Tensor& values, const Tensor& dense) {
  check_sparse(starts, columns, values);
  check(dense.ndim() == 2, "expected a matrix, but got ", describe(dense));
  check(values.dtype() == dense.dtype(), "expected both matrices to have the same dtype, but got ",
        name_of(values.dtype()), " and ", name_of(dense.dtype()));
  return {{starts.numel() - 1, dense.sizes()[1]}, dense.dtype(), {}, {}};
}

TensorMeta sampled_meta(const Tensor& starts, const Tensor& columns, const Tensor& a, const Tensor& b) {
  check_vector(starts, "starts");
  check_vector(columns, "columns");
  check(a.ndim() == 2 && b.ndim() == 2 && starts.numel() > 0 && a.sizes()[0] == starts.numel() - 1 &&
            a.sizes()[1] == b.sizes()[1] && a.dtype() == b.dtype(),
        "expected two matrices of one width and dtype, but got ", describe(a), " and ", describe(b));
  return {{columns.numel()}, a.dtype(), {}, {}};
}

std::vector<Tensor> gradient_of_product(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &starts = in[0].to_tensor(), &columns = in[1].to_tensor(),
               &dense = in[3].to_tensor();
  std::vector<Tensor> out(4);
  if (args.needs(2)) out[2] = ops::tensord_csr_sampled(starts, columns, g, dense);
  if (args.needs(3)) {
    const TransposedRows t = transposed_rows(starts, columns, dense.sizes()[0]);
    out[3] = ops::tensord_csr_product(t.starts, t.columns, gather_rows(t.order, in[2].to_tensor()), g);
  }
  return out;
}

std::vector<Tensor> gradient_of_sampled(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &starts = in[0].to_tensor(), &columns = in[1].to_tensor();
  std::vector<Tensor> out(4);
  if (args.needs(2)) out[2] = ops::tensord_csr_product(starts, columns, g, in[3].to_tensor());
  if (args.needs(3)) {
    const TransposedRows t = transposed_rows(starts, columns, in[3].to_tensor().sizes()[0]);
    out[3] = ops::tensord_csr_product(t.starts, t.columns, gather_rows(t.order, g), in[2].to_tensor());
  }
  return out;
}

OP("tensord::scatter_rows")
    .infer(scatter_meta)
    .gradient([](const GradArgs& args) {
      return std::vector<Tensor>{Tensor(), gather_rows(args.inputs[0].to_tensor(), args.grad_outputs[0]), Tensor()};
    })
    .saves("index");
OP("tensord::gather_rows")
    .infer(gather_meta)
    .gradient([](const GradArgs& args) {
      return std::vector<Tensor>{Tensor(), scatter_rows(args.inputs[0].to_tensor(), args.grad_outputs[0],
                                                        args.inputs[1].to_tensor().sizes()[0])};
    })
    .saves("index");
OP("tensord::csr_product").infer(product_meta).gradient(gradient_of_product).saves("starts, columns, values, dense");
OP("tensord::csr_sampled").infer(sampled_meta).gradient(gradient_of_sampled).saves("starts, columns, a, b");

[[maybe_unused]] const bool has_complex = [] {
  complex_parts::add_by_parts("tensord::scatter_rows tensord::gather_rows");
  complex_parts::add_bilinear("tensord::csr_product", "values", "dense");
  complex_parts::add_bilinear("tensord::csr_sampled", "a", "b");
  return true;
}();

// --- triangular systems

TensorMeta solve_meta(const Tensor& starts, const Tensor& columns, const Tensor& values, const Tensor& right, bool,
                      bool, bool) {
  const TensorMeta out = product_meta(starts, columns, values, right);
  check(right.sizes()[0] == starts.numel() - 1, "expected a right side with ", starts.numel() - 1, " rows, but got ",
        describe(right));
  return out;
}

// x = T⁻¹ b has the gradients T⁻ᵀ g for b and -(T⁻ᵀ g) xᵀ for T, at the elements of T that are read.
std::vector<Tensor> gradient_of_solve(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor starts = in[0].to_tensor().contiguous(), columns = in[1].to_tensor().contiguous();
  const Tensor& x = args.outputs[0].to_tensor();
  const bool upper = in[4].to_bool(), transpose = in[5].to_bool(), unit = in[6].to_bool();
  std::vector<Tensor> out(7);
  const Tensor right =
      ops::tensord_csr_solve(starts, columns, in[2].to_tensor(), args.grad_outputs[0], upper, !transpose, unit);
  if (args.needs(3)) out[3] = right;
  if (!args.needs(2)) return out;
  const Tensor all = transpose ? ops::tensord_csr_sampled(starts, columns, x, right)
                               : ops::tensord_csr_sampled(starts, columns, right, x);
  const Tensor is_read = elements_of_triangle(starts, columns, upper, unit);
  out[2] = ops::mul(ops::neg(all), ops::to(is_read, all.dtype()));
  return out;
}

OP("tensord::csr_solve").infer(solve_meta).gradient(gradient_of_solve).saves("starts, columns, values, result");

// --- softmax within each group of elements

TensorMeta softmax_meta(const Tensor& groups, const Tensor& values, int64_t count, bool) {
  scatter_meta(groups, values, count);
  check(is_floating(values.dtype()), "expected floating point numbers, but got ", name_of(values.dtype()));
  return {values.sizes(), values.dtype(), {}, {}};
}

std::vector<Tensor> gradient_of_softmax(const GradArgs& args) {
  const Tensor &groups = args.inputs[0].to_tensor(), &g = args.grad_outputs[0], &y = args.outputs[0].to_tensor();
  const int64_t count = args.inputs[2].to_int();
  const bool is_log = args.inputs[3].to_bool();
  const auto summed = [&](const Tensor& x) { return gather_rows(groups, scatter_rows(groups, x, count)); };
  std::vector<Tensor> out(4);
  if (is_log) {
    out[1] = ops::sub(g, ops::mul(ops::exp(y), summed(g)));
  } else {
    const Tensor mean = summed(ops::mul(g, y));
    out[1] = ops::mul(ops::sub(g, mean), y);
  }
  return out;
}

OP("tensord::group_softmax").infer(softmax_meta).gradient(gradient_of_softmax).saves("index, result");

}  // namespace

// Places are computed on the host.
Tensor scatter_rows(const Tensor& places, const Tensor& values, int64_t count) {
  return ops::tensord_scatter_rows(places.to(values.device()), values, count);
}

Tensor gather_rows(const Tensor& places, const Tensor& x) { return ops::tensord_gather_rows(places.to(x.device()), x); }

}  // namespace tensord::kernels
