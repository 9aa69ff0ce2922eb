// Operators that move elements, by changing the indices or the dense dimensions of values.
#include <algorithm>

#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

Tensor rows_in_order(const Tensor& indices, std::span<const int64_t> order) {
  std::vector<Tensor> rows;
  for (const int64_t d : order) rows.push_back(ops::narrow(indices, 0, d, 1));
  return rows.empty() ? indices : ops::cat(rows, 0);
}

// --- order of dimensions

Value permuted(const SparseTensor& x, const Dims& given) {
  check(static_cast<int64_t>(given.size()) == x.ndim(),
        "permute(sparse_coo): number of dimensions in the tensor input ",
        "does not match the length of the desired ordering of dimensions");
  Dims order, sizes, values_order{0};
  std::vector<bool> seen(given.size());
  for (const int64_t dim : given) {
    const auto at = axis_of(dim, x.ndim());
    check(!seen[at], "permute(sparse_coo): duplicate dims are not allowed.");
    seen[at] = true;
    order.push_back(static_cast<int64_t>(at));
    sizes.push_back(x.sizes()[at]);
  }
  const int64_t sparse = x.sparse_dim();
  const std::span whole(order.data(), order.size());
  const auto head = whole.first(static_cast<size_t>(sparse)), tail = whole.subspan(static_cast<size_t>(sparse));
  check(std::all_of(head.begin(), head.end(), [&](int64_t d) { return d < sparse; }),
        "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.");
  for (const int64_t d : tail) values_order.push_back(d - sparse + 1);
  const bool is_same = std::is_sorted(head.begin(), head.end());
  const Tensor values = tail.empty() ? x.values() : ops::permute(x.values(), values_order);
  return box(
      SparseTensor::coo(sizes, rows_in_order(x.indices(), head), values, x.is_coalesced() && (is_same || x.nnz() < 2)));
}

SparseLayout turned(SparseLayout layout) {
  switch (layout) {
    case SparseLayout::kCsr: return SparseLayout::kCsc;
    case SparseLayout::kCsc: return SparseLayout::kCsr;
    case SparseLayout::kBsr: return SparseLayout::kBsc;
    case SparseLayout::kBsc: return SparseLayout::kBsr;
    default: return layout;
  }
}

// Rows of a matrix become columns: in the other layout the same indices mean that.
Value transposed_view(const SparseTensor& x, int64_t first, int64_t second) {
  const auto a = static_cast<size_t>(axis_of(first, x.ndim())), b = static_cast<size_t>(axis_of(second, x.ndim()));
  if (a == b) return with_values(x, x.values());
  Dims sizes = x.sizes();
  std::swap(sizes[a], sizes[b]);
  if (x.is_coo()) {
    Dims order;
    for (int64_t d = 0; d < x.ndim(); ++d) order.push_back(d);
    std::swap(order[a], order[b]);
    return permuted(x, order);
  }
  const auto batch = static_cast<size_t>(x.batch_dim());
  if (std::min(a, b) != batch || std::max(a, b) != batch + 1)
    fail(ErrorCode::kUnimplemented, "transposes only rows and columns of ", x.describe());
  const Tensor values = ops::is_blocked(x.sparse_layout())
                            ? ops::transpose(x.values(), x.batch_dim() + 1, x.batch_dim() + 2)
                            : x.values();
  return box(SparseTensor::compressed(turned(x.sparse_layout()), sizes, x.compressed_indices(), x.indices(), values));
}

IMPL("aten::permute", ops::kSparseCPU,
     [](Arguments v, Results& returns) { returns.push_back(permuted(coo_of(v[0]), ops::Unbox<Dims>::get(v[1]))); });
IMPL("aten::transpose.int", ops::kSparseCPU, [](Arguments v, Results& returns) {
  returns.push_back(transposed_view(sparse_of(v[0]), v[1].to_int(), v[2].to_int()));
});
IMPL("aten::t", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  check(x.ndim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", x.ndim(), "D");
  returns.push_back(x.ndim() < 2 ? v[0] : transposed_view(x, 0, 1));
});
IMPL("aten::unsqueeze", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = coo_of(v[0]);
  const auto at = static_cast<int64_t>(axis_of(v[1].to_int(), x.ndim() + 1));
  Dims sizes;
  for (int64_t d = 0; d <= x.ndim(); ++d) {
    if (d == at) sizes.push_back(1);
    if (d < x.ndim()) sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
  }
  if (at > x.sparse_dim()) {
    const Tensor values = ops::unsqueeze(x.values(), at - x.sparse_dim() + 1);
    return returns.push_back(box(SparseTensor::coo(sizes, x.indices(), values, x.is_coalesced())));
  }
  const Tensor zeros = Tensor::empty(Dims{1, x.nnz()}, DType::kInt64);
  zero_row(zeros, 0);
  const Tensor before = ops::narrow(x.indices(), 0, 0, at),
               after = ops::narrow(x.indices(), 0, at, x.sparse_dim() - at);
  returns.push_back(box(SparseTensor::coo(sizes, ops::cat({before, zeros, after}, 0), x.values(), x.is_coalesced())));
});

// --- parts

Tensor columns_of(const Tensor& indices, const std::vector<int64_t>& which) {
  return ops::index_select(indices, 1, vector_of(which));
}

// Selects one index of a dimension, which disappears.
Value selected(const SparseTensor& x, int64_t dim, int64_t index) {
  const auto at = static_cast<int64_t>(axis_of(dim, x.ndim()));
  const int64_t size = x.sizes()[static_cast<size_t>(at)];
  check(index >= -size && index < size, "select(): index ", index, " out of range for tensor of size ", x.sizes(),
        " at dimension ", at);
  if (index < 0) index += size;
  Dims sizes;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d != at) sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
  }
  if (at >= x.sparse_dim())
    return box(SparseTensor::coo(sizes, x.indices(), ops::select(x.values(), at - x.sparse_dim() + 1, index),
                                 x.is_coalesced()));
  const std::vector<int64_t> which = elements_between(x.indices(), at, index, index + 1);
  const Tensor values = gather_rows(vector_of(which), x.values());
  // No sparse dimension is left: the result is dense.
  if (x.sparse_dim() == 1) return ops::sum(values, Dims{0});
  Dims others;
  for (int64_t d = 0; d < x.sparse_dim(); ++d) {
    if (d != at) others.push_back(d);
  }
  const Tensor indices = rows_in_order(columns_of(x.indices(), which), {others.data(), others.size()});
  return box(SparseTensor::coo(sizes, indices, values, x.is_coalesced()));
}

IMPL("aten::select.int", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  if (x.is_coo()) return returns.push_back(selected(x, v[1].to_int(), v[2].to_int()));
  const Value coo = selected(*to_coo(x), v[1].to_int(), v[2].to_int());
  const SparseTensor* part = ops::as_sparse(coo);
  // A matrix selected from a batch keeps its layout. A row or column is a vector, which has no such layout.
  const bool is_matrix = part && static_cast<int64_t>(axis_of(v[1].to_int(), x.ndim())) < x.batch_dim();
  returns.push_back(is_matrix ? box(to_layout_of(*part, x)) : part ? Value(to_dense(*part)) : coo);
});

// [start, start + length) of a dimension.
IMPL("aten::narrow", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = coo_of(v[0]);
  const auto at = static_cast<int64_t>(axis_of(v[1].to_int(), x.ndim()));
  const int64_t size = x.sizes()[static_cast<size_t>(at)], given = v[2].to_int(), length = v[3].to_int();
  const int64_t start = given < 0 ? given + size : given;
  check(start >= 0 && length >= 0 && start <= size && length <= size - start, "start (", given, ") + length (", length,
        ") exceeds dimension size (", size, ").");
  Dims sizes = x.sizes();
  sizes[static_cast<size_t>(at)] = length;
  if (at >= x.sparse_dim()) {
    const Tensor values = ops::narrow(x.values(), at - x.sparse_dim() + 1, start, length);
    return returns.push_back(box(SparseTensor::coo(sizes, x.indices(), values, x.is_coalesced())));
  }
  const std::vector<int64_t> which = elements_between(x.indices(), at, start, start + length);
  const Tensor indices = columns_of(x.indices(), which).clone();
  shift_row(indices, at, -start);
  returns.push_back(
      box(SparseTensor::coo(sizes, indices, gather_rows(vector_of(which), x.values()), x.is_coalesced())));
});

// Elements whose index is among the given ones, repeated as often as the index occurs.
IMPL("aten::index_select", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const SparseTensor& x = coo_of(v[0]);
  const auto at = static_cast<int64_t>(axis_of(v[1].to_int(), x.ndim()));
  const Tensor index = v[2].to_tensor().to(DType::kInt64).contiguous();
  check(index.ndim() == 1, "index_select(): Index is supposed to be a vector");
  const int64_t size = x.sizes()[static_cast<size_t>(at)], count = index.numel();
  Dims sizes = x.sizes();
  sizes[static_cast<size_t>(at)] = count;
  if (at >= x.sparse_dim()) {
    const Tensor values = ops::index_select(x.values(), at - x.sparse_dim() + 1, index);
    return returns.push_back(box(SparseTensor::coo(sizes, x.indices(), values, x.is_coalesced())));
  }
  const auto [which, position] = requested_elements(x.indices(), at, size, index);
  const Tensor indices = columns_of(x.indices(), which).clone();
  set_row(indices, at, position);
  // The new indices need not be in the old order.
  returns.push_back(
      box(coalesced(*SparseTensor::coo(sizes, indices, gather_rows(vector_of(which), x.values()), false))));
});

// --- concatenation

IMPL("aten::cat", ops::kSparseCPU, [](Arguments v, Results& returns) {
  const auto& items = v[0].to_list()->items;
  const SparseTensor& first = coo_of(items[0]);
  const auto at = axis_of(v[1].to_int(), first.ndim());
  const bool is_sparse = static_cast<int64_t>(at) < first.sparse_dim();
  if (!is_sparse) fail(ErrorCode::kUnimplemented, "of sparse tensors along a dense dimension is not implemented");
  std::vector<Tensor> indices, values;
  DType dtype = first.dtype();
  for (const Value& item : items) dtype = promote_types(dtype, coo_of(item).dtype());
  Dims sizes = first.sizes();
  sizes[at] = 0;
  for (const Value& item : items) {
    const SparseTensor& x = coo_of(item);
    Dims expected = x.sizes();
    check(x.ndim() == first.ndim() && x.sparse_dim() == first.sparse_dim(), "expected tensors of one form, but got ",
          first.describe(), " and ", x.describe());
    expected[at] = sizes[at];
    check(expected == sizes, "Sizes of tensors must match except in dimension ", at);
    const Tensor moved = x.indices().clone();
    shift_row(moved, static_cast<int64_t>(at), sizes[at]);
    check(!__builtin_add_overflow(sizes[at], x.sizes()[at], &sizes[at]), "the joined size is too large");
    indices.push_back(moved);
    values.push_back(compose::to(x.values(), dtype));
  }
  const SparsePtr out = SparseTensor::coo(sizes, ops::cat(indices, 1), ops::cat(values, 0), false);
  out->check_invariants();
  returns.push_back(box(out));
});

}  // namespace
}  // namespace tensord::kernels
