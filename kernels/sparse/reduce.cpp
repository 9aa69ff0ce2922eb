// Sums and softmax of sparse tensors.
#include <algorithm>

#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

Tensor total(const SparseTensor& x, const Value& dtype) {
  const Value arguments[] = {x.values(), dtype};
  return ops::run(ops::get_op("aten::sum"), arguments).front().to_tensor();
}

Tensor sum_over(const Tensor& x, const Dims& dims, const Value& dtype) {
  const Value arguments[] = {x, ops::make_int_list(dims), false, dtype};
  return ops::run(ops::get_op("aten::sum.dim_IntList"), arguments).front().to_tensor();
}

std::vector<bool> summed_dims(const Value& given, int64_t ndim) {
  std::vector<bool> out(static_cast<size_t>(ndim), given.is_none());
  if (given.is_none()) return out;
  for (const int64_t dim : ops::Unbox<Dims>::get(given)) {
    const auto at = axis_of(dim, ndim);
    check(!out[at], "dim ", dim, " appears multiple times in the list of dims");
    out[at] = true;
  }
  if (std::none_of(out.begin(), out.end(), [](bool b) { return b; })) out.assign(out.size(), true);
  return out;
}

// Dense if no sparse dimension is left, else COO. Elements that coincide are summed.
Value sum_dims(const SparseTensor& x, const std::vector<bool>& is_summed, const Value& dtype) {
  const int64_t sparse = x.sparse_dim();
  Dims dense_dims, sizes, left;
  int64_t kept_sparse = 0;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const bool summed = is_summed[static_cast<size_t>(d)];
    if (summed && d >= sparse) dense_dims.push_back(d - sparse + 1);
    if (summed) continue;
    sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
    if (d < sparse) left.push_back(d), ++kept_sparse;
  }
  Tensor values = x.values();
  if (dense_dims.empty()) {
    if (!dtype.is_none()) values = compose::to(values, dtype.to_dtype());
    if (dtype.is_none() && is_integral(values.dtype(), true)) values = compose::to(values, DType::kInt64);
  } else {
    values = sum_over(values, dense_dims, dtype);
  }
  if (kept_sparse == 0) return sum_over(values, Dims{0}, Value());
  std::vector<Tensor> rows;
  for (const int64_t d : left) rows.push_back(ops::narrow(x.indices(), 0, d, 1));
  const bool is_whole = kept_sparse == sparse;
  return box(
      SparseTensor::coo(sizes, is_whole ? x.indices() : ops::cat(rows, 0), values, is_whole && x.is_coalesced()));
}

Value sum_coo(const Value& self, const Value& dims, const Value& dtype) {
  const SparseTensor& x = coo_of(self);
  const std::vector<bool> is_summed = summed_dims(dims, x.ndim());
  if (std::all_of(is_summed.begin(), is_summed.end(), [](bool b) { return b; })) return total(x, dtype);
  const Value out = sum_dims(x, is_summed, dtype);
  const SparseTensor* sparse = ops::as_sparse(out);
  return sparse ? box(coalesced(*sparse)) : out;
}

IMPL("aten::sum", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.emplace_back(total(sparse_of(v[0]), v[1])); });
SPARSE_CPU_OP("aten::_sparse_sum",
              [](Arguments v, Results& returns) { returns.emplace_back(total(coo_of(v[0]), Value())); });
SPARSE_CPU_OP("aten::_sparse_sum.dtype",
              [](Arguments v, Results& returns) { returns.emplace_back(total(coo_of(v[0]), v[1])); });
SPARSE_CPU_OP("aten::_sparse_sum.dim",
              [](Arguments v, Results& returns) { returns.push_back(sum_coo(v[0], v[1], Value())); });
SPARSE_CPU_OP("aten::_sparse_sum.dim_dtype",
              [](Arguments v, Results& returns) { returns.push_back(sum_coo(v[0], v[1], v[2])); });

// Along rows or columns of a CSR matrix; the result is CSR too.
Value sum_csr(const SparseTensor& x, const Value& dims, bool keepdim, const Value& dtype) {
  check(x.sparse_layout() == SparseLayout::kCsr && x.ndim() == 2, "expected a matrix of layout sparse_csr, but got ",
        x.describe());
  check(keepdim, "reduction operations on CSR tensors with keepdim=False are unsupported");
  const std::vector<bool> is_summed = summed_dims(dims, 2);
  const SparsePtr coo = to_coo(x);
  Dims sizes = x.sizes();
  const Tensor indices = coo->indices().clone();
  for (size_t d = 0; d < 2; ++d) {
    if (!is_summed[d]) continue;
    sizes[d] = 1;
    zero_row(indices, static_cast<int64_t>(d));
  }
  Tensor values = coo->values();
  if (!dtype.is_none()) values = compose::to(values, dtype.to_dtype());
  if (dtype.is_none() && is_integral(values.dtype(), true)) values = compose::to(values, DType::kInt64);
  return box(to_layout_of(*SparseTensor::coo(sizes, indices, values, false), x));
}
SPARSE_CPU_OP("aten::_sparse_csr_sum.dim_dtype", [](Arguments v, Results& returns) {
  returns.push_back(sum_csr(sparse_of(v[0]), v[1], v[2].to_bool(), v[3]));
});

IMPL("aten::sum.dim_IntList", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  if (!x.is_coo()) return returns.push_back(sum_csr(x, v[1], v[2].to_bool(), v[3]));
  Value out = sum_coo(v[0], v[1], v[3]);
  if (!v[2].to_bool()) return returns.push_back(out);
  const std::vector<bool> is_summed = summed_dims(v[1], x.ndim());
  for (size_t d = 0; d < is_summed.size(); ++d) {
    if (!is_summed[d]) continue;
    const Value arguments[] = {out, static_cast<int64_t>(d)};
    out = ops::run(ops::get_op("aten::unsqueeze"), arguments).front();
  }
  returns.push_back(out);
});

// Elements that are not stored count as -inf. Along a sparse dimension, the softmax is over the elements whose other
// indices agree.
Value softmax(const Value& self, int64_t dim, bool is_log, const Value& dtype) {
  const SparseTensor& given = coo_of(self);
  const SparsePtr x = coalesced(given);
  const auto at = static_cast<int64_t>(axis_of(dim, x->ndim()));
  const Tensor values = dtype.is_none() ? x->values() : compose::to(x->values(), dtype.to_dtype());
  if (at >= x->sparse_dim()) {
    const int64_t along = at - x->sparse_dim() + 1;
    return with_values(*x, is_log ? ops::log_softmax(values, along) : ops::softmax(values, along));
  }
  Dims others = x->sizes();
  others[static_cast<size_t>(at)] = 1;
  const Tensor indices = x->indices().clone();
  zero_row(indices, at);
  const Groups groups = group_places(places_of(indices, {others.data(), static_cast<size_t>(x->sparse_dim())}));
  return with_values(
      *x, ops::tensord_group_softmax(groups.group, values, static_cast<int64_t>(groups.distinct.size()), is_log));
}

SPARSE_CPU_OP("aten::_sparse_softmax.int",
              [](Arguments v, Results& returns) { returns.push_back(softmax(v[0], v[1].to_int(), false, v[2])); });
SPARSE_CPU_OP("aten::_sparse_softmax", [](Arguments v, Results& returns) {
  check(!v[2].to_bool(), "half_to_float is not supported");
  returns.push_back(softmax(v[0], v[1].to_int(), false, Value()));
});
SPARSE_CPU_OP("aten::_sparse_log_softmax.int",
              [](Arguments v, Results& returns) { returns.push_back(softmax(v[0], v[1].to_int(), true, v[2])); });
SPARSE_CPU_OP("aten::_sparse_log_softmax", [](Arguments v, Results& returns) {
  check(!v[2].to_bool(), "half_to_float is not supported");
  returns.push_back(softmax(v[0], v[1].to_int(), true, Value()));
});
IMPL("aten::softmax.int", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.push_back(softmax(v[0], v[1].to_int(), false, v[2])); });
IMPL("aten::log_softmax.int", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.push_back(softmax(v[0], v[1].to_int(), true, v[2])); });

// Over all elements; those that are not stored are 0.
IMPL("aten::norm.Scalar", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  const ops::Scalar p = v[1].to_scalar();
  check(p.to_double() > 0, "norm of a sparse tensor is implemented for positive p");
  const SparsePtr coo = x.is_coo() ? coalesced(x) : nullptr;
  returns.emplace_back(ops::norm(coo ? coo->values() : x.values(), v[1].to_scalar()));
});
IMPL("aten::any", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  const SparsePtr coo = x.is_coo() ? coalesced(x) : nullptr;
  returns.emplace_back(ops::any(coo ? coo->values() : x.values()));
});

}  // namespace
}  // namespace tensord::kernels
