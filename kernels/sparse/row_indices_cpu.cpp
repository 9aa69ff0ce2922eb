// Indices of a matrix by rows: those of another layout, the transpose, a triangle, a product.
#include "kernels/sparse/rows.h"

#include <algorithm>
#include <vector>

#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {

TransposedRows transposed_rows(const Tensor& given_starts, const Tensor& given_columns, int64_t column_count) {
  const Tensor starts = given_starts.contiguous(), columns = given_columns.contiguous();
  const int64_t rows = starts.numel() - 1, count = columns.numel();
  const std::span<const int64_t> column(columns.data<int64_t>(), static_cast<size_t>(count));
  TransposedRows out{starts_of(column, column_count), Tensor::empty(Dims{count}, DType::kInt64),
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

Tensor elements_of_triangle(const Tensor& starts, const Tensor& columns, bool upper, bool unit) {
  const Tensor is_read = Tensor::empty(Dims{columns.numel()}, DType::kBool);
  for (int64_t row = 0; row + 1 < starts.numel(); ++row) {
    for (int64_t i = starts.data<int64_t>()[row]; i < starts.data<int64_t>()[row + 1]; ++i) {
      const int64_t column = columns.data<int64_t>()[i];
      is_read.data<bool>()[i] = column == row ? !unit : (column > row) == upper;
    }
  }
  return is_read;
}

Rows rows_of(const SparseTensor& x) {
  check(x.dense_dim() == 0, "expected a sparse matrix without dense dimensions, but got ", x.describe());
  if (x.sparse_layout() != SparseLayout::kCsr) {
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
  return {starts, columns, ops::reshape(x.values(), Dims{batches * nnz}), batches * height, batches * width};
}

Pairs pairs_of(const Rows& a, const Rows& b) {
  Pairs out;
  std::vector<std::pair<int64_t, size_t>> terms;
  std::vector<std::pair<int64_t, int64_t>> factors;
  const int64_t *first = a.starts.data<int64_t>(), *second = b.starts.data<int64_t>();
  for (int64_t row = 0; row < a.rows; ++row) {
    terms.clear();
    factors.clear();
    for (int64_t i = first[row]; i < first[row + 1]; ++i) {
      const int64_t inner = a.columns.data<int64_t>()[i];
      for (int64_t k = second[inner]; k < second[inner + 1]; ++k) {
        terms.emplace_back(b.columns.data<int64_t>()[k], factors.size());
        factors.emplace_back(i, k);
      }
    }
    std::sort(terms.begin(), terms.end());
    for (size_t t = 0; t < terms.size(); ++t) {
      if (t == 0 || terms[t].first != terms[t - 1].first) {
        out.rows.push_back(row);
        out.columns.push_back(terms[t].first);
      }
      out.left.push_back(factors[terms[t].second].first);
      out.right.push_back(factors[terms[t].second].second);
      out.element.push_back(static_cast<int64_t>(out.rows.size()) - 1);
    }
  }
  return out;
}

}  // namespace tensord::kernels
