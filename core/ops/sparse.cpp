#include "core/ops/sparse.h"

#include <utility>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

// Indices are int64, or int32 for compressed layouts.
template <class Fn>
void with_indices(const Tensor& indices, Fn&& fn) {
  if (indices.dtype() == DType::kInt32) return fn.template operator()<int32_t>();
  fn.template operator()<int64_t>();
}

// The number of positions must fit into an index, even if a size of 0 makes the product 0.
void check_places(const Dims& sizes) {
  int64_t places = 1;
  for (const int64_t size : sizes) {
    check(size >= 0, "a sparse tensor has sizes ", sizes);
    check(size == 0 || !__builtin_mul_overflow(places, size, &places), "a sparse tensor of sizes ", sizes,
          " has more places than can be numbered");
  }
}

// One batch of compressed indices: the start of each row, and the columns.
template <class T>
void check_rows(const T* starts, const T* plain, int64_t rows, int64_t columns, int64_t nnz, const char* name) {
  check(starts[0] == 0, name, " tensor: the first compressed index is ", starts[0], ", not 0");
  check(starts[rows] == nnz, name, " tensor: the last compressed index is ", starts[rows], ", but there are ", nnz,
        " plain ones");
  // Checks all of them before any is used.
  for (int64_t row = 0; row < rows; ++row) {
    check(starts[row] <= starts[row + 1] && starts[row + 1] <= nnz, name, " tensor: compressed index ", starts[row + 1],
          " follows ", starts[row]);
  }
  for (int64_t row = 0; row < rows; ++row) {
    check(starts[row + 1] - starts[row] <= columns, name, " tensor: more indices in a row or column than it is long");
    for (auto i = static_cast<int64_t>(starts[row]); i < static_cast<int64_t>(starts[row + 1]); ++i) {
      check(plain[i] >= 0 && plain[i] < columns, name, " tensor: plain index ", plain[i], " is out of range 0 … ",
            columns - 1);
      check(i == static_cast<int64_t>(starts[row]) || plain[i - 1] < plain[i], name,
            " tensor: plain indices are not in order or not distinct (", plain[i], ")");
    }
  }
}

}  // namespace

const char* name_of(SparseLayout layout) {
  switch (layout) {
    case SparseLayout::kCoo: return "sparse_coo";
    case SparseLayout::kCsr: return "sparse_csr";
    case SparseLayout::kCsc: return "sparse_csc";
    case SparseLayout::kBsr: return "sparse_bsr";
    case SparseLayout::kBsc: return "sparse_bsc";
  }
  return "";
}

SparseLayout sparse_layout(int64_t number) {
  check(number == 1 || number == 2 || (number >= 4 && number <= 6), "expected a sparse layout, but got layout ",
        number);
  return static_cast<SparseLayout>(number);
}

bool compresses_rows(SparseLayout layout) { return layout == SparseLayout::kCsr || layout == SparseLayout::kBsr; }
bool is_blocked(SparseLayout layout) { return layout == SparseLayout::kBsr || layout == SparseLayout::kBsc; }

SparseTensor::SparseTensor(SparseLayout layout, const Dims& given_sizes, Tensor compressed, Tensor indices,
                           Tensor values, bool is_coalesced)
    : layout_(layout),
      compressed_(std::move(compressed)),
      indices_(std::move(indices)),
      values_(std::move(values)),
      is_coalesced_(is_coalesced) {
  TensorImpl::layout = is_coo() ? Functionality::kSparse : Functionality::kSparseCompressed;
  TensorImpl::sizes = given_sizes;
  TensorImpl::dtype = values_.dtype();
  device = values_.device();
  for (const int64_t size : given_sizes) {
    if (__builtin_mul_overflow(numel, size, &numel)) numel = INT64_MAX;  // check_invariants refuses it
  }
}

IntrusivePtr<SparseTensor> SparseTensor::coo(const Dims& sizes, Tensor indices, Tensor values, bool is_coalesced) {
  return SparsePtr(
      new SparseTensor(SparseLayout::kCoo, sizes, Tensor(), indices.contiguous(), std::move(values), is_coalesced));
}

IntrusivePtr<SparseTensor> SparseTensor::compressed(SparseLayout layout, const Dims& sizes, Tensor compressed,
                                                    Tensor plain, Tensor values) {
  return SparsePtr(
      new SparseTensor(layout, sizes, compressed.contiguous(), plain.contiguous(), std::move(values), true));
}

Dims SparseTensor::block() const {
  if (!is_blocked(layout_)) return Dims{1, 1};
  const auto first = static_cast<size_t>(batch_dim()) + 1;
  return Dims{values_.sizes()[first], values_.sizes()[first + 1]};
}

SparsePtr SparseTensor::with(Tensor values) const {
  if (is_coo()) return coo(sizes(), indices_, std::move(values), is_coalesced_);
  return compressed(layout_, sizes(), compressed_, indices_, std::move(values));
}

Tensor SparseTensor::shallow_copy_and_detach() const { return Tensor(with(values_.impl()->shallow_copy_and_detach())); }

std::string SparseTensor::describe() const { return concat(name_of(layout_), " ", tensord::name_of(dtype()), sizes()); }

// The values' dimensions behind the index are the tensor's dense dimensions.
void SparseTensor::check_value_sizes() const {
  Dims expected;
  for (int64_t i = 0; i < batch_dim(); ++i) expected.push_back(sizes()[static_cast<size_t>(i)]);
  expected.push_back(nnz());
  if (is_blocked(layout_)) {
    check(values_.ndim() >= batch_dim() + 3, name_of(layout_), " tensor: values of sizes ", values_.sizes(),
          " have no blocks");
    for (const int64_t size : block()) expected.push_back(size);
  }
  for (int64_t i = batch_dim() + sparse_dim(); i < ndim(); ++i) expected.push_back(sizes()[static_cast<size_t>(i)]);
  check(values_.sizes() == expected, name_of(layout_), " tensor of sizes ", sizes(), ": expected values of sizes ",
        expected, ", but got ", values_.sizes());
}

void SparseTensor::check_coo() const {
  check(indices_.dtype() == DType::kInt64, "indices must be an int64 tensor, but got ",
        tensord::name_of(indices_.dtype()));
  check(indices_.ndim() == 2, "indices must be sparse_dim x nnz, but got: ", indices_.sizes());
  check(sparse_dim() <= ndim(), "number of dimensions must be sparse_dim (", sparse_dim(), ") + dense_dim, but got ",
        ndim());
  check_value_sizes();
  const int64_t* index = indices_.data<int64_t>();
  const int64_t count = nnz();
  for (int64_t d = 0; d < sparse_dim(); ++d) {
    const int64_t size = sizes()[static_cast<size_t>(d)];
    for (int64_t i = 0; i < count; ++i) {
      check(index[d * count + i] >= 0, "found negative index ", index[d * count + i], " for dim ", d);
      check(index[d * count + i] < size, "size is inconsistent with indices: for dim ", d, ", size is ", size,
            " but found index ", index[d * count + i]);
    }
  }
  if (!is_coalesced_) return;
  for (int64_t i = 1; i < count; ++i) {
    bool is_after = false;
    for (int64_t d = 0; d < sparse_dim() && !is_after; ++d) {
      check(index[d * count + i - 1] <= index[d * count + i], "indices of a coalesced tensor are not in order");
      is_after = index[d * count + i - 1] < index[d * count + i];
    }
    check(is_after, "indices of a coalesced tensor are not distinct");
  }
}

void SparseTensor::check_compressed() const {
  const char* name = name_of(layout_);
  check(compressed_.dtype() == indices_.dtype() &&
            (indices_.dtype() == DType::kInt64 || indices_.dtype() == DType::kInt32),
        name, " tensor: both indices must be int32 or int64, but got ", tensord::name_of(compressed_.dtype()), " and ",
        tensord::name_of(indices_.dtype()));
  check(compressed_.ndim() >= 1 && compressed_.ndim() == indices_.ndim(), name,
        " tensor: both indices must have the same dimensions, but got ", compressed_.sizes(), " and ",
        indices_.sizes());
  check(ndim() >= batch_dim() + 2, name, " tensor of sizes ", sizes(), " has no rows and columns");
  const auto batch = static_cast<size_t>(batch_dim());
  int64_t batches = 1;
  for (size_t i = 0; i < batch; ++i) {
    check(compressed_.sizes()[i] == sizes()[i] && indices_.sizes()[i] == sizes()[i], name, " tensor of sizes ", sizes(),
          ": indices of sizes ", compressed_.sizes(), " and ", indices_.sizes());
    batches *= sizes()[i];
  }
  check_value_sizes();
  const Dims blocks = block();
  check(blocks[0] > 0 && blocks[1] > 0 && sizes()[batch] % blocks[0] == 0 && sizes()[batch + 1] % blocks[1] == 0, name,
        " tensor of sizes ", sizes(), " has blocks of ", blocks);
  int64_t rows = sizes()[batch] / blocks[0], columns = sizes()[batch + 1] / blocks[1];
  if (!compresses_rows(layout_)) std::swap(rows, columns);
  check(compressed_.sizes().back() == rows + 1, name, " tensor of sizes ", sizes(), ": expected ", rows + 1,
        " compressed indices, but got ", compressed_.sizes().back());
  with_indices(indices_, [&]<class T>() {
    for (int64_t b = 0; b < batches; ++b) {
      check_rows(compressed_.data<T>() + b * (rows + 1), indices_.data<T>() + b * nnz(), rows, columns, nnz(), name);
    }
  });
}

void SparseTensor::check_invariants() const {
  check_places(sizes());
  for (const Tensor* part : {&compressed_, &indices_}) {
    check(!part->defined() || (!part->is_meta() && part->device().is_host()), "indices of a sparse tensor on ",
          part->defined() ? to_string(part->device()) : std::string(), " are not supported");
  }
  check(!values_.is_meta(), "a sparse tensor without values is not supported");
  is_coo() ? check_coo() : check_compressed();
}

SparsePtr as_sparse(const Tensor& tensor) {
  constexpr DispatchKeySet kSparseLayouts = Functionality::kSparse | Functionality::kSparseCompressed;
  if (!tensor.defined() || !kSparseLayouts.has(tensor.impl()->layout)) return {};
  return SparsePtr(static_cast<SparseTensor*>(tensor.impl()));
}

const SparseTensor* as_sparse(const Value& value) {
  return value.is_tensor() ? as_sparse(value.to_tensor()).get() : nullptr;
}

const Tensor& checked_dense(const Tensor& tensor, std::string_view reader) {
  if (as_sparse(tensor))
    fail(ErrorCode::kUnimplemented, reader, " does not take a sparse gradient (", describe(tensor), ")");
  return tensor;
}

}  // namespace tensord::ops
