#pragma once

#include "core/ops/run.h"
#include "core/ops/sparse.h"

// Helpers of operators on sparse tensors. Values are computed with operators, so that they have gradients; indices are
// not.
namespace tensord::kernels {

using ops::SparseLayout;
using ops::SparsePtr;
using ops::SparseTensor;

// For IMPL: code for values on any device, which it computes with operators; indices are always the host's.
inline constexpr ops::DispatchKey kSparseComposite{
    Functionality::kSparse | DispatchKeySet(Functionality::kSparseCompressed), kCPU, true};

// Throws Error naming what was expected.
const SparseTensor& sparse_of(const ops::Value& value);
// The same for one layout.
const SparseTensor& coo_of(const ops::Value& value);
// Of a tensor, sparse or not.
inline const Dims& sizes_of(const ops::Value& value) {
  return value.is_strided() ? value.to_tensor().sizes() : sparse_of(value).sizes();
}
// Throws Error{kUnimplemented} for a device other than the host, for what does not work on others.
inline void check_host(const ops::Value& device) {
  if (device.is_none() || device.to_device().is_host()) return;
  fail(ErrorCode::kUnimplemented, "sparse tensors of this layout on ", to_string(device.to_device()),
       " are not supported");
}
// Values on the device, if it is not None.
Tensor on_device(const Tensor& values, const ops::Value& device);

// For untrusted parts: copied, so that no other code writes them later, and checked.
SparsePtr checked(SparseLayout layout, const Dims& sizes, const Tensor& compressed, const Tensor& indices,
                  const Tensor& values, bool is_coalesced);
// The same positions with other values.
ops::Value with_values(const SparseTensor& x, Tensor values);

// --- orders and positions of elements (places_cpu.cpp)

// int64 [nnz]: the number of an element's place, row by row, among the sparse dimensions, which are `sizes`.
Tensor places_of(const Tensor& indices, std::span<const int64_t> sizes);
// The inverse of places_of.
Tensor indices_of(std::span<const int64_t> places, std::span<const int64_t> sizes);
// Groups of equal places: the distinct ones in order, and for each place the number of its group.
struct Groups {
  std::vector<int64_t> distinct;
  Tensor group;  // int64
};
Groups group_places(const Tensor& places);
// Where each of `count` rows begins among `rows`, which are in order; the end last.
Tensor starts_of(std::span<const int64_t> rows, int64_t count);

// Positions that both tensors have, sorted and without duplicates, and the element of either at each.
struct SharedPlaces {
  std::vector<int64_t> places, from_left, from_right;
};
SharedPlaces shared_places(const Tensor& left, const Tensor& right);

// --- rows of indices, one for each sparse dimension (indices_cpu.cpp)

// -1 if there is none.
int64_t largest_index(const Tensor& indices);
// Elements whose index of dimension `at` is in [begin, end).
std::vector<int64_t> elements_between(const Tensor& indices, int64_t at, int64_t begin, int64_t end);
// Elements whose index of dimension `at` is in `index`, once for each time that it is there, and the position there.
struct AskedElements {
  std::vector<int64_t> which, position;
};
AskedElements requested_elements(const Tensor& indices, int64_t at, int64_t size, const Tensor& index);
void zero_row(const Tensor& indices, int64_t at);
void shift_row(const Tensor& indices, int64_t at, int64_t by);
void set_row(const Tensor& indices, int64_t at, std::span<const int64_t> values);

// --- layouts (layouts_cpu.cpp)

// Sorted, without duplicate positions.
SparsePtr coalesced(const SparseTensor& coo);
// COO of any layout; coalesced but where it was COO before.
SparsePtr to_coo(const SparseTensor& x);
// From COO of any kind. `block`: for blocked layouts. `dtype`: of the indices.
SparsePtr to_compressed(const SparseTensor& coo, SparseLayout layout, const Dims& block, DType dtype = DType::kInt64);
// In the layout of `like`.
SparsePtr to_layout_of(const SparseTensor& coo, const SparseTensor& like);
Tensor to_dense(const SparseTensor& x);
SparsePtr to_sparse(const Tensor& x, int64_t sparse_dim);

// --- rows, for products and solutions (row_indices_cpu.cpp, rows.cpp)

// A matrix by rows: CSR with indices of int64. Batches lie one after the other along the diagonal.
struct Rows {
  Tensor starts, columns, values;
  int64_t rows = 0, column_count = 0;
};
Rows rows_of(const SparseTensor& x);
// Which elements a product of two sparse matrices has, and of which pairs of elements each is the sum.
struct Pairs {
  std::vector<int64_t> rows, columns;         // of the product
  std::vector<int64_t> left, right, element;  // for each pair: its factors, and the element that it goes to
};
Pairs pairs_of(const Rows& a, const Rows& b);

// out[places[i]] += values[i], of `count` rows; and its adjoint, values[i] = x[places[i]].
Tensor scatter_rows(const Tensor& places, const Tensor& values, int64_t count);
Tensor gather_rows(const Tensor& places, const Tensor& x);

// An operator for sparse tensors alone: a function of the raw values.
#define SPARSE_OP(NAME, ...)                  \
  OP(NAME).dynamic_shape().constant_result(); \
  IMPL(NAME, ::tensord::kernels::kSparseComposite, __VA_ARGS__)
// The same for the CPU alone.
#define SPARSE_CPU_OP(NAME, ...)              \
  OP(NAME).dynamic_shape().constant_result(); \
  IMPL(NAME, ::tensord::ops::kSparseCPU, __VA_ARGS__)

using Arguments = std::span<const ops::Value>;
using Results = std::vector<ops::Value>;

// Registers an operator of dense tensors, written with others, that makes a sparse one.
void add_factory(const std::string& name, const ops::ReturnFn& function);

}  // namespace tensord::kernels
