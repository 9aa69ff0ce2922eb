#pragma once

#include <string>

#include "core/ops/value.h"

namespace tensord::ops {

// PyTorch's numbers of layouts, which TorchScript code stores.
enum class SparseLayout : int8_t { kCoo = 1, kCsr = 2, kCsc = 4, kBsr = 5, kBsc = 6 };
const char* name_of(SparseLayout layout);  // "sparse_coo", as PyTorch prints it without "torch."
// Throws Error{kInvalidArgument} for a number that is not a sparse layout.
SparseLayout sparse_layout(int64_t number);
// Compressed layouts store the start of each row (column); blocked ones have a block for each index.
bool compresses_rows(SparseLayout layout);
bool is_blocked(SparseLayout layout);

// A tensor with the elements that are not zero, and where they are. Operators know it by IMPL with kSparseCPU. The
// values are an ordinary tensor: autograd knows them, and gradients of a sparse tensor are gradients of its values.
// COO: indices int64 [sparse dims, nnz], values [nnz, dense dims …]; in any order, and what has one place is added.
//
// CSR, CSC: compressed [batch …, rows + 1] and plain indices [batch …, nnz] of int32 or int64, values
// [batch …, nnz, dense …].
//
// BSR, BSC: the same for blocks, values [batch …, nnz, block rows, block columns, dense …].
//
// Which elements there are never changes; values may be written by operators in place. The tensor is where its values
// are; its indices are always in host memory, so that one code for indices serves all devices.
class SparseTensor final : public TensorImpl {
 public:
  // These functions read no elements; see check_invariants. `is_coalesced`: sorted, and no position occurs twice.
  static IntrusivePtr<SparseTensor> coo(const Dims& sizes, Tensor indices, Tensor values, bool is_coalesced);
  static IntrusivePtr<SparseTensor> compressed(SparseLayout layout, const Dims& sizes, Tensor compressed, Tensor plain,
                                               Tensor values);

  SparseLayout sparse_layout() const { return layout_; }
  bool is_coo() const { return layout_ == SparseLayout::kCoo; }
  const Dims& sizes() const { return TensorImpl::sizes; }
  int64_t ndim() const { return static_cast<int64_t>(sizes().size()); }
  DType dtype() const { return TensorImpl::dtype; }
  const Tensor& compressed_indices() const { return compressed_; }  // undefined for COO
  const Tensor& indices() const { return indices_; }                // all indices of COO; the plain ones otherwise
  const Tensor& values() const { return values_; }
  bool is_coalesced() const { return is_coalesced_; }
  // The number of stored elements (blocks, if blocked) of each batch.
  int64_t nnz() const { return indices_.sizes().back(); }
  int64_t batch_dim() const { return is_coo() ? 0 : compressed_.ndim() - 1; }
  int64_t sparse_dim() const { return is_coo() ? indices_.sizes()[0] : 2; }
  int64_t dense_dim() const { return ndim() - sparse_dim() - batch_dim(); }
  Dims block() const;  // {1, 1} if not blocked
  std::string describe() const override;
  const TensorImpl& differentiable() const override { return *values_.impl(); }
  Tensor shallow_copy_and_detach() const override;
  // The same positions with other values.
  IntrusivePtr<SparseTensor> with(Tensor values) const;

  // Throws Error{kInvalidArgument} if the parts do not fit each other, or an index is out of range, or duplicate or
  // unsorted (which COO allows unless it is coalesced).
  void check_invariants() const;

 private:
  SparseTensor(SparseLayout layout, const Dims& given_sizes, Tensor compressed, Tensor indices, Tensor values,
               bool is_coalesced);
  void check_coo() const;
  void check_compressed() const;
  void check_value_sizes() const;

  const SparseLayout layout_;
  const Tensor compressed_, indices_, values_;
  const bool is_coalesced_;
};
using SparsePtr = IntrusivePtr<SparseTensor>;

// Null for a tensor of another layout and for other values.
SparsePtr as_sparse(const Tensor& tensor);
const SparseTensor* as_sparse(const Value& value);
inline Value box(const SparsePtr& sparse) { return Tensor(sparse); }
// Returns a tensor whose elements are read next. Throws Error{kUnimplemented} naming the reader for a sparse one.
const Tensor& checked_dense(const Tensor& tensor, std::string_view reader);

}  // namespace tensord::ops
