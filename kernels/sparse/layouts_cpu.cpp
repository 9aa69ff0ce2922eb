// Conversions between sparse layouts.
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {

namespace {

// The first `count` sizes of a tensor.
std::span<const int64_t> first(const Dims& sizes, int64_t count) { return {sizes.data(), static_cast<size_t>(count)}; }

int64_t product(std::span<const int64_t> sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) out *= size;
  return out;
}

// [count], followed by the dense sizes after the first `leading` ones.
Dims with_count(int64_t count, const Dims& sizes, int64_t leading) {
  Dims out{count};
  for (size_t i = static_cast<size_t>(leading); i < sizes.size(); ++i) out.push_back(sizes[i]);
  return out;
}

// The numbering of a compressed tensor's elements.
struct Blocks {
  explicit Blocks(const SparseTensor& x)
      : batches(product(first(x.sizes(), x.batch_dim()))),
        block(x.block()),
        rows(x.sizes()[static_cast<size_t>(x.batch_dim())] / block[0]),
        columns(x.sizes()[static_cast<size_t>(x.batch_dim()) + 1] / block[1]) {}
  int64_t batches;
  Dims block;
  int64_t rows, columns;  // in blocks
};

// The indices of all elements, batch by batch and block by block, in [batch …, rows, columns].
std::vector<int64_t> element_places(const SparseTensor& x) {
  const Blocks blocks(x);
  const Tensor starts = x.compressed_indices().to(DType::kInt64), plain = x.indices().to(DType::kInt64);
  const bool by_rows = ops::compresses_rows(x.sparse_layout());
  const int64_t lines = by_rows ? blocks.rows : blocks.columns, nnz = x.nnz();
  const int64_t width = blocks.columns * blocks.block[1], height = blocks.rows * blocks.block[0];
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(x.values().numel()));
  for (int64_t b = 0; b < blocks.batches; ++b) {
    const int64_t* start = starts.data<int64_t>() + b * (lines + 1);
    const int64_t* other = plain.data<int64_t>() + b * nnz;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = start[line]; i < start[line + 1]; ++i) {
        const int64_t row = (by_rows ? line : other[i]) * blocks.block[0];
        const int64_t column = (by_rows ? other[i] : line) * blocks.block[1];
        for (int64_t r = 0; r < blocks.block[0]; ++r) {
          for (int64_t c = 0; c < blocks.block[1]; ++c) out.push_back((b * height + row + r) * width + column + c);
        }
      }
    }
  }
  return out;
}

// Elements with these indices, in any order. Duplicates only where they are summed.
SparsePtr from_places(const Tensor& places, const Tensor& values, const Dims& sizes, int64_t sparse_dim) {
  const Groups groups = group_places(places);
  const auto count = static_cast<int64_t>(groups.distinct.size());
  const auto* group = groups.group.data<int64_t>();
  bool is_ordered = count == places.numel();
  for (int64_t i = 0; i < count && is_ordered; ++i) is_ordered = group[i] == i;
  return SparseTensor::coo(sizes, indices_of(groups.distinct, first(sizes, sparse_dim)),
                           is_ordered ? values : scatter_rows(groups.group, values, count), true);
}

Tensor in_dtype(const Tensor& indices, DType dtype) { return indices.dtype() == dtype ? indices : indices.to(dtype); }

// The destination of an element of a COO matrix (with batches): the number of its block in the layout's order, and its
// place inside of the block.
struct Target {
  std::vector<int64_t> block, inside;
};

Target find_targets(const SparseTensor& coo, SparseLayout layout, const Dims& block) {
  const int64_t count = coo.nnz(), dims = coo.sparse_dim();
  const int64_t height = coo.sizes()[static_cast<size_t>(dims) - 2] / block[0];
  const int64_t width = coo.sizes()[static_cast<size_t>(dims) - 1] / block[1];
  const Tensor batch = places_of(ops::narrow(coo.indices(), 0, 0, dims - 2).contiguous(), first(coo.sizes(), dims - 2));
  const int64_t* row = coo.indices().data<int64_t>() + (dims - 2) * count;
  const int64_t* column = row + count;
  Target out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t r = row[i] / block[0], c = column[i] / block[1];
    const int64_t in_batch = ops::compresses_rows(layout) ? r * width + c : c * height + r;
    out.block.push_back(batch.data<int64_t>()[i] * height * width + in_batch);
    out.inside.push_back(row[i] % block[0] * block[1] + column[i] % block[1]);
  }
  return out;
}

}  // namespace

SparsePtr coalesced(const SparseTensor& coo) {
  if (coo.is_coalesced()) return SparseTensor::coo(coo.sizes(), coo.indices(), coo.values(), true);
  return from_places(places_of(coo.indices(), first(coo.sizes(), coo.sparse_dim())), coo.values(), coo.sizes(),
                     coo.sparse_dim());
}

SparsePtr to_coo(const SparseTensor& x) {
  if (x.is_coo()) return SparseTensor::coo(x.sizes(), x.indices(), x.values(), x.is_coalesced());
  const int64_t leading = x.batch_dim() + 2;
  const Tensor places = vector_of(element_places(x));
  const Tensor values = ops::reshape(x.values(), with_count(places.numel(), x.sizes(), leading));
  return from_places(places, values, x.sizes(), leading);
}

SparsePtr to_compressed(const SparseTensor& given, SparseLayout layout, const Dims& block, DType dtype) {
  const SparsePtr coo = coalesced(given);
  const int64_t dims = coo->sparse_dim(), batch_dim = dims - 2;
  check(dims >= 2, "expected a matrix to convert to ", name_of(layout), ", but got ", given.describe());
  const int64_t height = coo->sizes()[static_cast<size_t>(dims) - 2],
                width = coo->sizes()[static_cast<size_t>(dims) - 1];
  check(block.size() == 2 && block[0] > 0 && block[1] > 0 && height % block[0] == 0 && width % block[1] == 0,
        "tensor of sizes ", coo->sizes(), " must be divisible by the blocksize ", block);
  const Target target = find_targets(*coo, layout, block);
  const Groups groups = group_places(vector_of(target.block));
  const int64_t rows = height / block[0], columns = width / block[1], area = block[0] * block[1];
  const bool by_rows = ops::compresses_rows(layout);
  const int64_t lines = by_rows ? rows : columns, across = by_rows ? columns : rows;
  const int64_t batches = product(first(coo->sizes(), batch_dim));
  const auto kept = static_cast<int64_t>(groups.distinct.size()), nnz = batches > 0 ? kept / batches : 0;
  std::vector<int64_t> line, plain;
  for (const int64_t place : groups.distinct) {
    line.push_back(place / across);
    plain.push_back(place % across);
  }
  // The begins of lines, in all batches together and then in each.
  const Tensor all = starts_of(line, batches * lines);
  Dims starts_sizes(first(coo->sizes(), batch_dim)), plain_sizes = starts_sizes;
  starts_sizes.push_back(lines + 1);
  plain_sizes.push_back(nnz);
  const Tensor starts = Tensor::empty(starts_sizes, DType::kInt64);
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t* from = all.data<int64_t>() + b * lines;
    check(from[lines] - from[0] == nnz && from[0] == b * nnz,
          "expected the same number of specified elements in each batch, to convert to ", name_of(layout));
    for (int64_t i = 0; i <= lines; ++i) starts.data<int64_t>()[b * (lines + 1) + i] = from[i] - from[0];
  }
  std::vector<int64_t> to(target.inside);
  for (size_t i = 0; i < to.size(); ++i) to[i] += groups.group.data<int64_t>()[i] * area;
  Tensor values = scatter_rows(vector_of(to), coo->values(), kept * area);
  Dims value_sizes = plain_sizes;
  if (ops::is_blocked(layout)) {
    value_sizes.push_back(block[0]);
    value_sizes.push_back(block[1]);
  }
  for (size_t i = static_cast<size_t>(dims); i < coo->sizes().size(); ++i) value_sizes.push_back(coo->sizes()[i]);
  values = ops::reshape(values, value_sizes);
  return SparseTensor::compressed(layout, coo->sizes(), in_dtype(starts, dtype),
                                  in_dtype(ops::reshape(vector_of(plain), plain_sizes), dtype), values);
}

SparsePtr to_layout_of(const SparseTensor& coo, const SparseTensor& like) {
  if (like.is_coo()) return to_coo(coo);
  return to_compressed(coo, like.sparse_layout(), like.block(), like.indices().dtype());
}

Tensor to_dense(const SparseTensor& x) {
  const int64_t leading = x.batch_dim() + x.sparse_dim();
  const auto sparse_sizes = first(x.sizes(), leading);
  const Tensor places = x.is_coo() ? places_of(x.indices(), sparse_sizes) : vector_of(element_places(x));
  const Tensor values = ops::reshape(x.values(), with_count(places.numel(), x.sizes(), leading));
  return ops::reshape(scatter_rows(places, values, product(sparse_sizes)), x.sizes());
}

SparsePtr to_sparse(const Tensor& x, int64_t sparse_dim) {
  check(sparse_dim >= 0 && sparse_dim <= x.ndim() && (sparse_dim > 0 || x.ndim() == 0), "sparse_dim must be in 1 … ",
        x.ndim(), ", but got ", sparse_dim);
  const auto sizes = first(x.sizes(), sparse_dim);
  const Tensor rows = ops::reshape(x, with_count(product(sizes), x.sizes(), sparse_dim));
  Tensor is_kept = ops::ne(ops::detach(rows), 0);
  while (is_kept.ndim() > 1) is_kept = ops::any(is_kept, int64_t{-1});
  std::vector<int64_t> kept;
  const Tensor flags = is_kept.to(Device{}).contiguous();
  for (int64_t i = 0; i < flags.numel(); ++i) {
    if (flags.data<bool>()[i]) kept.push_back(i);
  }
  return SparseTensor::coo(x.sizes(), indices_of(kept, sizes), gather_rows(vector_of(kept), rows), true);
}

}  // namespace tensord::kernels
