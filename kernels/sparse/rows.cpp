// Products, solutions and softmax over the rows of a sparse matrix, as operators on its values: these have gradients.
// Indices are checked by the loops themselves, since scripts can call the operators.
#include "kernels/sparse/rows.h"

#include "kernels/common/compose.h"
#include "kernels/complex/parts.h"
#include "kernels/sparse/sparse.h"

namespace tensord::kernels {
namespace {

using compose::call;
using ops::GradArgs;
using ops::TensorMeta;

// The transposed matrix: its rows, and which value each element of it had.
struct Transposed {
  Tensor starts, columns, order;
};
Transposed transposed(const Tensor& given_starts, const Tensor& given_columns, int64_t column_count) {
  const Tensor starts = given_starts.contiguous(), columns = given_columns.contiguous();
  const int64_t rows = starts.numel() - 1, count = columns.numel();
  const std::span<const int64_t> column(columns.data<int64_t>(), static_cast<size_t>(count));
  Transposed out{starts_of(column, column_count), Tensor::empty(Dims{count}, DType::kInt64),
                 Tensor::empty(Dims{count}, DType::kInt64)};
  const auto* start = out.starts.data<int64_t>();
  std::vector<int64_t> next(start, start + column_count);
  const auto* first = starts.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = first[row]; i < first[row + 1]; ++i) {
      const int64_t to = next[static_cast<size_t>(column[static_cast<size_t>(i)])]++;
      out.columns.data<int64_t>()[to] = row;
      out.order.data<int64_t>()[to] = i;
    }
  }
  return out;
}

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
  if (args.needs(2)) out[2] = call("tensord::csr_sampled", starts, columns, g, dense);
  if (args.needs(3)) {
    const Transposed t = transposed(starts, columns, dense.sizes()[0]);
    out[3] = call("tensord::csr_product", t.starts, t.columns, gather_rows(t.order, in[2].to_tensor()), g);
  }
  return out;
}

std::vector<Tensor> gradient_of_sampled(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &starts = in[0].to_tensor(), &columns = in[1].to_tensor();
  std::vector<Tensor> out(4);
  if (args.needs(2)) out[2] = call("tensord::csr_product", starts, columns, g, in[3].to_tensor());
  if (args.needs(3)) {
    const Transposed t = transposed(starts, columns, in[3].to_tensor().sizes()[0]);
    out[3] = call("tensord::csr_product", t.starts, t.columns, gather_rows(t.order, g), in[2].to_tensor());
  }
  return out;
}

OP("tensord::scatter_rows(Tensor index, Tensor values, int count) -> Tensor")
    .infer(scatter_meta)
    .gradient([](const GradArgs& args) {
      return std::vector<Tensor>{Tensor(), gather_rows(args.inputs[0].to_tensor(), args.grad_outputs[0]), Tensor()};
    })
    .saves("index");
OP("tensord::gather_rows(Tensor index, Tensor x) -> Tensor")
    .infer(gather_meta)
    .gradient([](const GradArgs& args) {
      return std::vector<Tensor>{Tensor(), scatter_rows(args.inputs[0].to_tensor(), args.grad_outputs[0],
                                                        args.inputs[1].to_tensor().sizes()[0])};
    })
    .saves("index");
OP("tensord::csr_product(Tensor starts, Tensor columns, Tensor values, Tensor dense) -> Tensor")
    .infer(product_meta)
    .gradient(gradient_of_product)
    .saves("starts, columns, values, dense");
OP("tensord::csr_sampled(Tensor starts, Tensor columns, Tensor a, Tensor b) -> Tensor")
    .infer(sampled_meta)
    .gradient(gradient_of_sampled)
    .saves("starts, columns, a, b");
KERNEL("tensord::scatter_rows", DeviceKind::kCPU, &scatter_kernel);
KERNEL("tensord::gather_rows", DeviceKind::kCPU, &gather_kernel);
KERNEL("tensord::csr_product", DeviceKind::kCPU, &product_kernel);
KERNEL("tensord::csr_sampled", DeviceKind::kCPU, &sampled_kernel);

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

// x = T⁻¹ b gives the gradients T⁻ᵀ g of b and -(T⁻ᵀ g) xᵀ of T, where T has elements that are read.
std::vector<Tensor> gradient_of_solve(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor starts = in[0].to_tensor().contiguous(), columns = in[1].to_tensor().contiguous();
  const Tensor& x = args.outputs[0].to_tensor();
  const bool upper = in[4].to_bool(), transpose = in[5].to_bool(), unit = in[6].to_bool();
  std::vector<Tensor> out(7);
  const Tensor right =
      call("tensord::csr_solve", starts, columns, in[2].to_tensor(), args.grad_outputs[0], upper, !transpose, unit);
  if (args.needs(3)) out[3] = right;
  if (!args.needs(2)) return out;
  const Tensor all = transpose ? call("tensord::csr_sampled", starts, columns, x, right)
                               : call("tensord::csr_sampled", starts, columns, right, x);
  const Tensor is_read = Tensor::empty(Dims{columns.numel()}, DType::kBool);
  for (int64_t row = 0; row + 1 < starts.numel(); ++row) {
    for (int64_t i = starts.data<int64_t>()[row]; i < starts.data<int64_t>()[row + 1]; ++i) {
      const int64_t column = columns.data<int64_t>()[i];
      is_read.data<bool>()[i] = column == row ? !unit : (column > row) == upper;
    }
  }
  out[2] = call("aten::mul.Tensor", call("aten::neg", all), call("aten::to.dtype", is_read, all.dtype()));
  return out;
}

OP("tensord::csr_solve(Tensor starts, Tensor columns, Tensor values, Tensor right, bool upper, bool transpose, bool "
   "unitriangular) -> Tensor")
    .infer(solve_meta)
    .gradient(gradient_of_solve)
    .saves("starts, columns, values, result");
KERNEL("tensord::csr_solve", DeviceKind::kCPU, &solve_kernel);

// --- softmax: over each group of elements

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
    out[1] = call("aten::sub.Tensor", g, call("aten::mul.Tensor", call("aten::exp", y), summed(g)));
  } else {
    const Tensor mean = summed(call("aten::mul.Tensor", g, y));
    out[1] = call("aten::mul.Tensor", call("aten::sub.Tensor", g, mean), y);
  }
  return out;
}

OP("tensord::group_softmax(Tensor index, Tensor values, int count, bool log) -> Tensor")
    .infer(softmax_meta)
    .gradient(gradient_of_softmax)
    .saves("index, result");
KERNEL("tensord::group_softmax", DeviceKind::kCPU, &softmax_kernel);

}  // namespace

Tensor scatter_rows(const Tensor& places, const Tensor& values, int64_t count) {
  return call("tensord::scatter_rows", places, values, count);
}

Tensor gather_rows(const Tensor& places, const Tensor& x) { return call("tensord::gather_rows", places, x); }

Rows rows_of(const SparseTensor& x) {
  check(x.dense_dim() == 0, "expected a sparse matrix without dense dimensions, but got ", x.describe());
  if (x.layout() != SparseLayout::kCsr) {
    const SparsePtr coo = coalesced(*to_coo(x));
    check(coo->sparse_dim() >= 2, "expected a sparse matrix, but got ", x.describe());
    const int64_t dims = coo->sparse_dim(), count = coo->nnz();
    const int64_t height = x.sizes()[static_cast<size_t>(dims) - 2], width = x.sizes()[static_cast<size_t>(dims) - 1];
    int64_t batches = 1;
    for (int64_t d = 0; d < dims - 2; ++d) batches *= x.sizes()[static_cast<size_t>(d)];
    const Tensor row = places_of(coo->indices(), std::span(x.sizes().data(), static_cast<size_t>(dims) - 1));
    const Tensor column = Tensor::empty(Dims{count}, DType::kInt64);
    const int64_t* last = coo->indices().data<int64_t>() + (dims - 1) * count;
    for (int64_t i = 0; i < count; ++i)
      column.data<int64_t>()[i] = last[i] + (height > 0 ? row.data<int64_t>()[i] / height : 0) * width;
    return {starts_of({row.data<int64_t>(), static_cast<size_t>(count)}, batches * height), column, coo->values(),
            batches * height, batches * width};
  }
  const auto batch = static_cast<size_t>(x.batch_dim());
  const int64_t height = x.sizes()[batch], width = x.sizes()[batch + 1], nnz = x.nnz();
  int64_t batches = 1;
  for (size_t d = 0; d < batch; ++d) batches *= x.sizes()[d];
  const Tensor from = x.compressed_indices().to(DType::kInt64), plain = x.indices().to(DType::kInt64);
  if (batch == 0) return {from, plain, x.values(), height, width};
  const Tensor starts = Tensor::empty(Dims{batches * height + 1}, DType::kInt64);
  const Tensor columns = Tensor::empty(Dims{batches * nnz}, DType::kInt64);
  starts.data<int64_t>()[0] = 0;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 1; i <= height; ++i)
      starts.data<int64_t>()[b * height + i] = from.data<int64_t>()[b * (height + 1) + i] + b * nnz;
    for (int64_t i = 0; i < nnz; ++i)
      columns.data<int64_t>()[b * nnz + i] = plain.data<int64_t>()[b * nnz + i] + b * width;
  }
  return {starts, columns, compose::reshape(x.values(), Dims{batches * nnz}), batches * height, batches * width};
}

}  // namespace tensord::kernels
