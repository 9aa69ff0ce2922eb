// Matrix products with one or two sparse operands, and triangular systems. All of them work on rows (rows.h).
#include <algorithm>

#include "core/ops/attributes/packed.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

void check_product(const Dims& a, const Dims& b, size_t dims) {
  check(a.size() == dims && b.size() == dims, "expected two ", dims, "-D tensors, but got sizes ", a, " and ", b);
  check(a[dims - 1] == b[dims - 2] && (dims == 2 || a[0] == b[0]), "shapes ", a, " and ", b, " cannot be multiplied");
}

Tensor rows_times(const Rows& rows, const Tensor& dense) {
  check(rows.values.dtype() == dense.dtype(), "expected both matrices to have the same dtype, but got ",
        name_of(rows.values.dtype()), " and ", name_of(dense.dtype()));
  return ops::tensord_csr_product(rows.starts, rows.columns, rows.values, dense);
}

// The matrix with rows and columns swapped, as COO.
SparsePtr transposed(const SparseTensor& x) {
  const SparsePtr coo = to_coo(x);
  const int64_t dims = coo->sparse_dim();
  check(dims >= 2 && coo->dense_dim() == 0, "expected a sparse matrix, but got ", x.describe());
  std::vector<Tensor> indices;
  Dims sizes = x.sizes();
  std::swap(sizes[static_cast<size_t>(dims) - 1], sizes[static_cast<size_t>(dims) - 2]);
  Dims order;
  for (int64_t d = 0; d < dims - 2; ++d) order.push_back(d);
  order.push_back(dims - 1);
  order.push_back(dims - 2);
  for (const int64_t d : order) indices.push_back(ops::narrow(coo->indices(), 0, d, 1));
  return SparseTensor::coo(sizes, ops::cat(indices, 0), coo->values(), false);
}

// [batch, rows, inner] times [batch, inner, columns], or both without batches. One operand is sparse.
Tensor with_dense(const Value& a, const Value& b) {
  if (const SparseTensor* left = ops::as_sparse(a)) {
    const Tensor& right = b.to_tensor();
    const Tensor product = rows_times(rows_of(*left), ops::reshape(right, Dims{-1, right.sizes().back()}));
    Dims sizes = left->sizes();
    sizes[sizes.size() - 1] = right.sizes().back();
    return ops::reshape(product, sizes);
  }
  // A · S = (Sᵀ · Aᵀ)ᵀ
  const Tensor left = ops::transpose(a.to_tensor(), -1, -2);
  return ops::transpose(with_dense(box(transposed(sparse_of(b))), left), -1, -2);
}

bool has_empty(const Dims& sizes) { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }

Tensor dense_product(const Value& a, const Value& b) {
  // reshape cannot infer sizes from tensors without elements.
  if (has_empty(sizes_of(a)) || has_empty(sizes_of(b))) {
    const Tensor left = a.is_strided() ? a.to_tensor() : to_dense(sparse_of(a));
    const Tensor right = b.is_strided() ? b.to_tensor() : to_dense(sparse_of(b));
    return ops::matmul(left, right);
  }
  return with_dense(a, b);
}

// In the layout of the first operand.
Value sparse_product(const SparseTensor& a, const SparseTensor& b) {
  check(a.ndim() == 2 && b.ndim() == 2, "products of two sparse tensors are implemented for matrices, but got ",
        a.describe(), " and ", b.describe());
  check(a.dtype() == b.dtype(), "expected both matrices to have the same dtype, but got ", a.describe(), " and ",
        b.describe());
  const Rows left = rows_of(a), right = rows_of(b);
  const Pairs pairs = pairs_of(left, right);
  const Tensor terms =
      ops::mul(gather_rows(vector_of(pairs.left), left.values), gather_rows(vector_of(pairs.right), right.values));
  const auto count = static_cast<int64_t>(pairs.rows.size());
  const Tensor indices = Tensor::empty(Dims{2, count}, DType::kInt64);
  set_row(indices, 0, pairs.rows);
  set_row(indices, 1, pairs.columns);
  const SparsePtr out = SparseTensor::coo(Dims{a.sizes()[0], b.sizes()[1]}, indices,
                                          scatter_rows(vector_of(pairs.element), terms, count), true);
  if (a.is_coo()) return box(out);
  // The blocks need not fit the product's sizes.
  const Dims block = ops::is_blocked(a.sparse_layout()) ? Dims{a.block()[0], b.block()[1]} : Dims{1, 1};
  return box(to_compressed(*out, a.sparse_layout(), block, a.indices().dtype()));
}

Value product(const Value& a, const Value& b, size_t dims) {
  check_product(sizes_of(a), sizes_of(b), dims);
  const SparseTensor *left = ops::as_sparse(a), *right = ops::as_sparse(b);
  if (left && right) return sparse_product(*left, *right);
  return dense_product(a, b);
}

IMPL("aten::mm", ops::kSparseCPU, [](Arguments v, Results& returns) { returns.push_back(product(v[0], v[1], 2)); });
SPARSE_CPU_OP("aten::_sparse_mm", [](Arguments v, Results& returns) { returns.push_back(product(v[0], v[1], 2)); });
SPARSE_CPU_OP("aten::_sparse_sparse_matmul", [](Arguments v, Results& returns) {
  returns.push_back(sparse_product(sparse_of(v[0]), sparse_of(v[1])));
});
IMPL("aten::bmm", ops::kSparseCPU, [](Arguments v, Results& returns) { returns.push_back(product(v[0], v[1], 3)); });
SPARSE_CPU_OP("aten::smm", [](Arguments v, Results& returns) {
  const Value dense = product(v[0], v[1], 2);
  returns.push_back(box(to_sparse(dense.to_tensor(), 2)));
});

Tensor times_vector(const Value& matrix, const Tensor& vector) {
  const SparseTensor& x = sparse_of(matrix);
  check(x.ndim() == 2 && vector.ndim() == 1 && x.sizes()[1] == vector.numel(),
        "expected a matrix and a vector, but got ", x.describe(), " and ", describe(vector));
  return ops::squeeze(dense_product(matrix, ops::unsqueeze(vector, 1)), 1);
}
IMPL("aten::mv", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.emplace_back(times_vector(v[0], v[1].to_tensor())); });

IMPL("aten::matmul", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const Dims &a = sizes_of(v[0]), &b = sizes_of(v[1]);
  if (b.size() == 1 && a.size() == 2 && v[1].is_strided())
    return returns.emplace_back(times_vector(v[0], v[1].to_tensor())), void();
  if (a.size() == 1 && b.size() == 2 && v[0].is_strided())
    return returns.emplace_back(times_vector(box(transposed(sparse_of(v[1]))), v[0].to_tensor())), void();
  check(a.size() == b.size() && (a.size() == 2 || a.size() == 3),
        "matmul of sparse tensors is implemented for matrices, batches of them and vectors, but got sizes ", a, " and ",
        b);
  returns.push_back(product(v[0], v[1], a.size()));
});

// beta · self + alpha · product. With beta 0, self is not read.
Value with_addend(const Value& self, const Value& product, const Value& beta, const Value& alpha) {
  const auto times = [](const Value& x, const Value& factor) -> Value {
    if (const SparseTensor* sparse = ops::as_sparse(x))
      return with_values(*sparse, ops::mul(sparse->values(), factor.to_scalar()));
    return ops::mul(x.to_tensor(), factor.to_scalar());
  };
  Value right = times(product, alpha);
  const ops::Scalar factor = beta.to_scalar();
  if (!factor.is_complex() && factor.to_double() == 0) return right;
  const Value sum[] = {times(self, beta), right, 1};
  return ops::run(ops::get_op("aten::add.Tensor"), sum).front();
}

IMPL("aten::addmm", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.push_back(with_addend(v[0], product(v[1], v[2], 2), v[3], v[4])); });
SPARSE_CPU_OP("aten::_sparse_addmm", [](Arguments v, Results& returns) {
  returns.push_back(with_addend(v[0], product(v[1], v[2], 2), v[3], v[4]));
});
IMPL("aten::addmv", ops::kSparseCPU, [](Arguments v, Results& returns) {
  returns.push_back(with_addend(v[0], times_vector(v[1], v[2].to_tensor()), v[3], v[4]));
});
SPARSE_CPU_OP("aten::sspaddmm", [](Arguments v, Results& returns) {
  const Value product_of = product(v[1], v[2], 2);
  returns.push_back(with_addend(v[0], box(to_sparse(product_of.to_tensor(), 2)), v[3], v[4]));
});
// A hybrid tensor with the stored rows, which are dense.
SPARSE_CPU_OP("aten::hspmm", [](Arguments v, Results& returns) {
  returns.push_back(box(to_sparse(product(v[0], v[1], 2).to_tensor(), 1)));
});

// alpha · (A · B) at the indices of a CSR matrix, plus beta times that matrix.
SPARSE_CPU_OP("aten::sparse_sampled_addmm", [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  check(x.sparse_layout() == SparseLayout::kCsr, "expected a tensor of layout sparse_csr, but got ", x.describe());
  const Tensor &a = v[1].to_tensor(), &b = v[2].to_tensor();
  check_product(a.sizes(), b.sizes(), static_cast<size_t>(x.ndim()));
  check(x.ndim() == 2 || x.ndim() == 3, "is implemented for matrices and batches of them");
  const Rows rows = rows_of(x);
  check(a.sizes()[0] == x.sizes()[0] && b.sizes().back() == x.sizes().back() &&
            a.sizes()[a.sizes().size() - 2] == x.sizes()[x.sizes().size() - 2],
        "expected a product of sizes ", x.sizes());
  const int64_t inner = a.sizes().back();
  const Tensor left = ops::reshape(a, Dims{rows.rows, inner});
  const Tensor right = ops::reshape(ops::transpose(b, -1, -2), Dims{rows.column_count, inner});
  const Tensor sampled = ops::tensord_csr_sampled(rows.starts, rows.columns, left, right);
  const Value sum = with_addend(rows.values, sampled, v[3], v[4]);
  returns.push_back(with_values(x, ops::reshape(sum.to_tensor(), x.values().sizes())));
});

// A layer that was packed for dense tensors runs call by call, on the original weights.
void run_packed(Arguments v, Results& returns) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(v[0].to_opaque().get());
  check_internal(packed != nullptr, "expected a packed operator");
  Value value = v[1];
  for (const ops::BoundCall& call : packed->calls()) {
    Results arguments = call.arguments;
    arguments[static_cast<size_t>(call.input)] = value;
    if (call.other >= 0) arguments[static_cast<size_t>(call.other)] = v[2];
    value = ops::run(*call.op, arguments).front();
  }
  returns.push_back(value);
}
IMPL("tensord::packed tensord::packed.other", ops::kSparseCPU, run_packed);

IMPL("aten::triangular_solve", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& matrix = sparse_of(v[1]);
  check(
      v[0].is_strided() && matrix.sparse_layout() == SparseLayout::kCsr && matrix.ndim() == 2 &&
          matrix.sizes()[0] == matrix.sizes()[1],
      "triangular_solve of sparse tensors takes a dense right side and a square matrix of layout sparse_csr, but got ",
      matrix.describe());
  const Rows rows = rows_of(matrix);
  const Tensor& right = v[0].to_tensor();
  check(right.ndim() == 2 && right.dtype() == matrix.dtype(), "expected a right side of ", name_of(matrix.dtype()),
        " and two dimensions, but got ", describe(right));
  const Value solution = ops::run(ops::get_op("tensord::csr_solve"),
                                  std::vector<Value>{rows.starts, rows.columns, rows.values, right, v[2], v[3], v[4]})
                             .front();
  returns.push_back(solution);
  returns.push_back(v[1]);
});

}  // namespace
}  // namespace tensord::kernels
