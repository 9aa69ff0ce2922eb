// Arguments that operators on sparse tensors must refuse, by operator and message; the nearest valid arguments are
// accepted.
#include "core/ops/sparse.h"
#include "tests/support/operator_rows.h"

namespace tensord::sparse_refusals_test {
namespace {

using namespace testing_rows;
using ops::SparseTensor;

// A vector of indices, and a table of them.
Tensor row(const std::vector<int64_t>& values) { return longs(values); }
Tensor table(const Dims& sizes, const std::vector<int64_t>& values) { return shaped(longs(values), sizes); }

Value coo(const Dims& sizes, bool is_of_module = false) {
  const Value out = run("aten::to_sparse", {ones(sizes)});
  if (is_of_module) const_cast<SparseTensor*>(ops::as_sparse(out))->is_of_module = true;
  return out;
}
Value csr(const Dims& sizes) { return run("aten::to_sparse_csr", {ones(sizes)}); }
// One index twice.
Value repeated() {
  return run("aten::sparse_coo_tensor.indices_size", {table({2, 2}, {1, 1, 2, 2}), ones({2}), ints({2, 3})});
}
// Dense rows at two of three indices.
Value hybrid() {
  return run("aten::sparse_coo_tensor.indices_size", {table({1, 2}, {0, 2}), ones({2, 4}), ints({3, 4})});
}

TEST(SparseRefusals, PartsThatDoNotFit) {
  const Tensor one = ones({1}), two = ones({2});
  const auto sized = [](const Tensor& indices, const Tensor& values, const Dims& sizes) {
    return std::vector<Value>{indices, values, ints(sizes)};
  };
  const char* const kCoo = "aten::sparse_coo_tensor.indices_size";
  expect_rows({
      {"aten::sparse_coo_tensor.indices", {row({1}), one}, "expected indices int64 of sparse_dim x nnz and values"},
      {"aten::sparse_coo_tensor.indices", {table({1, 1}, {1}).to(DType::kInt32), one}, "expected indices int64"},
      {"aten::sparse_coo_tensor.indices", {table({1, 1}, {INT64_MAX}), one}, "an index is too large"},
      {"aten::sparse_coo_tensor.indices", {table({1, 1}, {-1}), one}, "found negative index -1 for dim 0"},
      {"aten::sparse_coo_tensor.indices", {table({1, 0}, {}), ones({0})}, kTaken},
      {kCoo, sized(table({1, 1}, {0}), one, {0}), "size is 0 but found index 0"},
      {kCoo, sized(table({1, 1}, {2}), one, {2}), "size is 2 but found index 2"},
      {kCoo, sized(table({1, 1}, {1}), one, {2}), kTaken},
      {kCoo, sized(table({2, 1}, {0, 0}), one, {2}), "number of dimensions must be sparse_dim (2)"},
      {kCoo, sized(table({1, 2}, {0, 1}), one, {2}), "expected values of sizes [2]"},
      {kCoo, sized(Tensor::scalar(int64_t{1}), one, {2}), "expected indices, but got"},
      {kCoo, sized(table({1, 0}, {}), ones({0}), {-1}), "a sparse tensor has sizes [-1]"},
      {kCoo, sized(table({2, 0}, {}), ones({0}), {int64_t{1} << 40, int64_t{1} << 40}),
       "has more places than can be numbered"},
      {kCoo,
       {table({1, 2}, {1, 0}), two, ints({3}), kNone, kNone, kNone, kNone, true},
       "indices of a coalesced tensor are not in order"},
      {kCoo,
       {table({1, 2}, {1, 1}), two, ints({3}), kNone, kNone, kNone, kNone, true},
       "indices of a coalesced tensor are not distinct"},
      {kCoo, {table({2, 2}, {0, 0, 1, 2}), two, ints({3, 3}), kNone, kNone, kNone, kNone, true}, kTaken},
      {kCoo, {table({2, 2}, {0, 1, 2, 1}), two, ints({3, 3}), kNone, kNone, kNone, kNone, true}, kTaken},
  });
}

TEST(SparseRefusals, OtherDevices) {
  const Value elsewhere = Device{DeviceKind::kCUDA, 0}, here = Device{};
  const Tensor place = table({1, 1}, {0}), one = ones({1});
  const char *const kSays = "device cuda:0 is not available", *const kCsr = "on cuda:0 are not supported";
  const auto made = [&](const Value& device) { return std::vector<Value>{place, one, kNone, kNone, device}; };
  const auto sized = [&](const Value& device) {
    return std::vector<Value>{place, one, ints({2}), kNone, kNone, device};
  };
  const auto empty = [&](const Value& device) { return std::vector<Value>{ints({2}), kNone, kNone, device}; };
  const auto rows = [&](const Value& device) {
    return std::vector<Value>{row({0, 1}), row({0}), one, ints({1, 2}), kNone, kNone, device};
  };
  expect_rows({
      {"aten::sparse_coo_tensor.indices", made(elsewhere), kSays},
      {"aten::sparse_coo_tensor.indices", made(here), kTaken},
      {"aten::sparse_coo_tensor.indices_size", sized(elsewhere), kSays},
      {"aten::sparse_coo_tensor.indices_size", sized(here), kTaken},
      {"aten::_sparse_coo_tensor_unsafe", sized(elsewhere), kSays},
      {"aten::_sparse_coo_tensor_unsafe", sized(here), kTaken},
      {"aten::sparse_coo_tensor.size", empty(elsewhere), kSays},
      {"aten::sparse_coo_tensor.size", empty(here), kTaken},
      {"aten::sparse_csr_tensor.crow_col_value_size", rows(elsewhere), kCsr},
      {"aten::sparse_csr_tensor.crow_col_value_size", rows(here), kTaken},
      {"aten::to.device", {coo({2}), elsewhere, DType::kFloat32, false, false, kNone}, kSays},
      {"aten::to.device", {coo({2}), here, DType::kFloat32, false, true, kNone}, kTaken},
      {"aten::to.dtype_layout", {coo({2}), kNone, kNone, elsewhere, kNone, false, false, kNone}, kSays},
      {"aten::to.dtype_layout", {coo({2}), kNone, int64_t{1}, here, kNone, false, false, kNone}, kTaken},
  });
}

TEST(SparseRefusals, CompressedPartsThatDoNotFit) {
  const Tensor one = ones({1}), two = ones({2});
  const auto csr_of = [](const Tensor& starts, const Tensor& columns, const Tensor& values, const Dims& sizes) {
    return std::vector<Value>{starts, columns, values, ints(sizes)};
  };
  const char *const kCsr = "aten::sparse_csr_tensor.crow_col_value_size",
                    *const kBsr = "aten::sparse_bsr_tensor.crow_col_value_size",
                    *const kFree = "aten::sparse_csr_tensor.crow_col_value",
                    *const kFreeBsr = "aten::sparse_bsr_tensor.crow_col_value";
  const Tensor starts = row({0, 1, 2}), columns = row({0, 2});
  const int64_t coo_number = 1, csr_number = 2;
  const Value compressed[] = {starts, columns, two};
  expect_rows({
      {kCsr, csr_of(starts, columns, two, {2, 3}), kTaken},
      {kCsr, csr_of(starts, columns, two, {2, 2}), "plain index 2 is out of range 0 … 1"},
      {kCsr, csr_of(starts, row({0, -1}), two, {2, 3}), "plain index -1 is out of range"},
      {kCsr, csr_of(row({1, 1, 2}), columns, two, {2, 3}), "the first compressed index is 1, not 0"},
      {kCsr, csr_of(row({0, 1, 1}), columns, two, {2, 3}), "the last compressed index is 1, but there are 2"},
      {kCsr, csr_of(row({0, 3, 2}), columns, two, {2, 3}), "compressed index 3 follows 0"},
      {kCsr, csr_of(row({0, 2, 1, 2}), columns, two, {3, 3}), "compressed index 1 follows 2"},
      {kCsr, csr_of(row({0, 2, 2}), row({1, 1}), two, {2, 3}), "not in order or not distinct"},
      {kCsr, csr_of(row({0, 2, 2}), row({2, 1}), two, {2, 3}), "not in order or not distinct"},
      {kCsr, csr_of(row({0, 2, 2}), row({0, 0}), two, {2, 1}), "more indices in a row or column than it is long"},
      {kCsr, csr_of(starts, columns, two, {3, 3}), "expected 4 compressed indices, but got 3"},
      {kCsr, csr_of(starts, columns, one, {2, 3}), "expected values of sizes [2]"},
      {kCsr, csr_of(starts, columns.to(DType::kInt32), two, {2, 3}), "both indices must be int32 or int64"},
      {kCsr, csr_of(starts, table({1, 2}, {0, 2}), two, {2, 3}), "both indices must have the same dimensions"},
      {kCsr, csr_of(starts, columns, two, {3}), "has no rows and columns"},
      {kCsr, csr_of(table({1, 2}, {0, 1}), table({1, 1}, {0}), ones({1, 1}), {2, 1, 1}), "indices of sizes [1, 2]"},
      {kBsr, csr_of(row({0, 1}), row({0}), ones({1, 2, 2}), {2, 2}), kTaken},
      {kBsr, csr_of(row({0, 1}), row({0}), ones({1, 2}), {2, 2}), "have no blocks"},
      {kBsr, csr_of(row({0, 1}), row({0}), ones({1, 2, 2}), {2, 3}), "has blocks of [2, 2]"},
      {kBsr, csr_of(row({0, 1}), row({0}), ones({1, 2, 2}), {3, 2}), "has blocks of [2, 2]"},
      {kFree, {row({}), columns, two}, "expected compressed indices, plain indices and values"},
      {kFree, {starts, table({1, 2}, {0, 2}), two}, "expected compressed indices, plain indices and values"},
      {kFree, {starts, columns, Tensor::scalar(1.0f)}, "expected compressed indices, plain indices and values"},
      {kFree, {starts, row({0, INT64_MAX}), two}, "an index is too large"},
      {kFree, {row({0}), row({}), ones({0})}, kTaken},
      {kFreeBsr, {starts, columns, ones({2, 2})}, "expected compressed indices, plain indices and values"},
      {kFreeBsr, {starts, row({0, int64_t{1} << 61}), ones({2, 1, 8})}, "a block's index is too large"},
      {"aten::sparse_compressed_tensor.comp_plain_value",
       {compressed[0], compressed[1], compressed[2], kNone, csr_number},
       kTaken},
      {"aten::sparse_compressed_tensor.comp_plain_value",
       {compressed[0], compressed[1], compressed[2], kNone, coo_number},
       "expected a compressed layout, but got sparse_coo"},
      {"aten::sparse_compressed_tensor.comp_plain_value_size",
       {compressed[0], compressed[1], compressed[2], ints({2, 3}), kNone, coo_number},
       "expected a compressed layout, but got sparse_coo"},
      {"aten::sparse_compressed_tensor.comp_plain_value",
       {compressed[0], compressed[1], compressed[2], kNone, int64_t{3}},
       "expected a sparse layout, but got layout 3"},
  });
}

TEST(SparseRefusals, WhatTheySayOfThemselves) {
  expect_rows({
      {"aten::indices", {repeated()}, "Cannot get indices or values on an uncoalesced tensor"},
      {"aten::values", {repeated()}, "Cannot get indices or values on an uncoalesced tensor"},
      {"aten::_values", {repeated()}, kTaken},
      {"aten::_dimI", {csr({2, 3})}, "expected a sparse tensor of layout sparse_coo, but got sparse_csr"},
      {"aten::crow_indices", {coo({2, 3})}, "expected a tensor that compresses rows, but got sparse_coo"},
      {"aten::ccol_indices", {csr({2, 3})}, "expected a tensor that compresses columns, but got sparse_csr"},
      {"aten::row_indices", {csr({2, 3})}, "expected a tensor that compresses columns"},
      {"aten::col_indices", {run("aten::to_sparse_csc", {ones({2, 3})})}, "expected a tensor that compresses rows"},
      {"aten::len.Tensor", {run("aten::sum.dim_IntList", {coo({2, 3}), ints({0})})}, kTaken},
      {"aten::len.Tensor",
       {run("aten::to_sparse.sparse_dim", {Tensor::scalar(2.0f), int64_t{0}})},
       "len() of a 0-d tensor"},
      {"aten::sparse_dim", {ones({2})}, "has no kernel for cpu; it has: SparseCOO (CPU, CUDA), SparseCSR (CPU, CUDA)"},
      {"aten::_nnz", {repeated()}, kTaken},
  });
}

TEST(SparseRefusals, Conversions) {
  const Tensor x = ones({4, 6}), batch = ones({2, 2, 2});
  Tensor uneven = ones({2, 2, 2}).clone();
  uneven.data<float>()[0] = 0;
  const Value layout_csr = int64_t{2}, layout_bsr = int64_t{5};
  expect_rows({
      {"aten::to_sparse_bsr", {x, ints({2, 3})}, kTaken},
      {"aten::to_sparse_bsr", {x, ints({3, 3})}, "must be divisible by the blocksize [3, 3]"},
      {"aten::to_sparse_bsr", {x, ints({0, 3})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse_bsr", {x, ints({2, 0})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse_bsr", {x, ints({-2, 3})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse_bsr", {x, ints({2, 4})}, "must be divisible by the blocksize [2, 4]"},
      {"aten::to_sparse_bsr", {x, ints({0, 2})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse_bsr", {x, ints({2, 0})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse_bsr", {x, ints({2, 2, 2})}, "blocksize must be two positive numbers"},
      {"aten::to_sparse", {x, layout_bsr}, "to sparse_bsr needs a blocksize"},
      {"aten::to_sparse", {x, layout_csr}, kTaken},
      {"aten::to_sparse", {x, kNone, kNone, int64_t{-1}}, "dense_dim -1 of a tensor of 2 dimensions"},
      {"aten::to_sparse", {x, kNone, kNone, int64_t{3}}, "dense_dim 3 of a tensor of 2 dimensions"},
      {"aten::to_sparse", {x, kNone, kNone, int64_t{1}}, kTaken},
      {"aten::to_sparse", {hybrid(), kNone, kNone, int64_t{1}}, kTaken},
      {"aten::to_sparse", {hybrid(), kNone, kNone, int64_t{0}}, "changing the dense dimensions"},
      {"aten::to_sparse.sparse_dim", {x, int64_t{2}}, kTaken},
      {"aten::to_sparse.sparse_dim", {x, int64_t{3}}, "sparse_dim must be in 1 … 2, but got 3"},
      {"aten::to_sparse.sparse_dim", {x, int64_t{0}}, "sparse_dim must be in 1 … 2, but got 0"},
      {"aten::to_sparse.sparse_dim", {x, int64_t{-1}}, "sparse_dim must be in 1 … 2, but got -1"},
      {"aten::to_sparse.sparse_dim", {Tensor::scalar(2.0f), int64_t{0}}, kTaken},
      {"aten::to_sparse.sparse_dim", {hybrid(), int64_t{1}}, kTaken},
      {"aten::to_sparse.sparse_dim", {hybrid(), int64_t{2}}, "changing the sparse dimensions"},
      {"aten::to_sparse_csr", {ones({4})}, "expected a matrix to convert to sparse_csr"},
      {"aten::to_sparse_csr", {batch}, kTaken},
      {"aten::to_sparse_csr", {uneven}, "the same number of specified elements in each batch"},
      {"aten::to.dtype_layout",
       {coo({2}), kNone, layout_csr, kNone, kNone, false, false, kNone},
       "doesn't support converting to a different layout"},
  });
}

TEST(SparseRefusals, Arithmetic) {
  const Value a = coo({2, 3}), b = coo({3, 2}), owned = coo({2, 3}, true);
  const Value two = 2.0;
  expect_rows({
      {"aten::abs_", {repeated()}, "in place is implemented for coalesced tensors"},
      {"aten::neg_", {repeated()}, kTaken},
      {"aten::abs_", {coo({2, 3})}, kTaken},
      {"aten::abs_", {owned}, "writes into a sparse tensor that belongs to the module"},
      {"aten::zero_", {owned}, "writes into a sparse tensor that belongs to the module"},
      {"aten::mul_.Scalar", {owned, two}, "writes into a sparse tensor that belongs to the module"},
      {"aten::mul_.Tensor", {coo({2, 3}), ones({2, 3})}, "in place is implemented for sparse tensors and numbers"},
      {"aten::mul_.Tensor", {coo({2, 3}), Tensor::scalar(2.0f)}, kTaken},
      {"aten::pow.Tensor_Scalar", {a, 0.0}, "is implemented for sparse tensors and positive powers"},
      {"aten::pow.Tensor_Scalar", {a, two}, kTaken},
      {"aten::add.Tensor", {a, b, 1}, "expected sizes of both tensors to match, but got [2, 3] and [3, 2]"},
      {"aten::add.Tensor", {a, csr({2, 3}), 1}, "expected tensors of one layout"},
      {"aten::add.Tensor", {hybrid(), coo({3, 4}), 1}, "to have the same sparse dimensions, but got 1 and 2"},
      {"aten::add.Tensor", {ones({3, 2}), a, 1}, "expected sizes of both tensors to match"},
      {"aten::add.Tensor", {a, ones({2, 3}), 1}, "add(sparse, dense) is not supported"},
      {"aten::add_.Tensor", {coo({2, 3}), a, 1}, "adding to a sparse tensor in place is not supported"},
      {"aten::add_.Tensor", {ones({3, 2}), a, 1}, "expected sizes of both tensors to match"},
      {"aten::mul.Tensor", {a, b}, "mul operands have incompatible sizes: [2, 3] and [3, 2]"},
      {"aten::mul.Tensor", {a, csr({2, 3})}, "expected tensors of one layout"},
      {"aten::mul.Tensor", {hybrid(), coo({3, 4})}, "expected both tensors to have the same sparse dimensions"},
      {"aten::mul.Tensor", {a, ones({5, 2, 3})}, "does not broadcast"},
      {"aten::mul.Tensor", {a, ones({1, 3})}, kTaken},
      {"aten::div.Tensor", {a, ones({2, 3})}, "Sparse division requires a scalar"},
      {"aten::div.Tensor", {a, Tensor::scalar(2.0f)}, kTaken},
      {"aten::sparse_mask", {ones({3, 2}), a}, "sparse_mask(): operands have incompatible sizes"},
      {"aten::sparse_mask", {ones({1, 3}), a}, "sparse_mask(): operands have incompatible sizes"},
      {"aten::sparse_mask", {b, a}, "sparse_mask(): operands have incompatible sizes"},
      {"aten::sparse_mask", {ones({2, 3}), a}, kTaken},
  });
}

TEST(SparseRefusals, Moves) {
  const Value a = coo({2, 3});
  const Tensor beyond = row({0, 3}), below = row({-4}), last = row({-3, 2});
  expect_rows({
      {"aten::permute", {a, ints({0})}, "number of dimensions in the tensor input does not match"},
      {"aten::permute", {a, ints({1, 1})}, "duplicate dims are not allowed"},
      {"aten::permute", {a, ints({1, -1})}, "duplicate dims are not allowed"},
      {"aten::permute", {hybrid(), ints({1, 0})}, "transpositions between sparse and dense dimensions"},
      {"aten::permute", {hybrid(), ints({0, 1})}, kTaken},
      {"aten::t", {coo({2, 3, 4})}, "t() expects a tensor with <= 2 dimensions, but self is 3D"},
      {"aten::transpose.int", {csr({2, 2, 2}), 0, 1}, "transposes only rows and columns"},
      {"aten::transpose.int", {csr({2, 2, 2}), 1, 2}, kTaken},
      {"aten::transpose.int", {csr({2, 2, 2}), 2, 0}, "transposes only rows and columns"},
      {"aten::select.int", {a, 1, 3}, "select(): index 3 out of range"},
      {"aten::select.int", {a, 1, -4}, "select(): index -4 out of range"},
      {"aten::select.int", {a, 1, -3}, kTaken},
      {"aten::select.int", {a, 1, 2}, kTaken},
      {"aten::narrow", {a, 1, 1, 3}, "start (1) + length (3) exceeds dimension size (3)"},
      {"aten::narrow", {a, 1, 1, -1}, "exceeds dimension size"},
      {"aten::narrow", {a, 1, -4, 1}, "exceeds dimension size"},
      {"aten::narrow", {a, 1, 4, 0}, "exceeds dimension size"},
      {"aten::narrow", {a, 1, 4, -1}, "exceeds dimension size"},
      {"aten::narrow", {a, 1, 3, 0}, kTaken},
      {"aten::narrow", {a, 1, -1, 1}, kTaken},
      {"aten::index_select", {a, 1, beyond}, "index_select(): index out of range"},
      {"aten::index_select", {a, 1, below}, "index_select(): index out of range"},
      {"aten::index_select", {a, 1, last}, kTaken},
      {"aten::index_select", {a, 1, table({1, 1}, {0})}, "Index is supposed to be a vector"},
      {"aten::cat", {tensors({a, coo({3, 3})}), 0}, kTaken},
      {"aten::cat", {tensors({a, coo({3, 3})}), 1}, "Sizes of tensors must match except in dimension 1"},
      {"aten::cat", {tensors({a, coo({2})}), 0}, "expected tensors of one form"},
      {"aten::cat", {tensors({coo({3, 4}), hybrid()}), 0}, "expected tensors of one form"},
      {"aten::cat", {tensors({hybrid(), hybrid()}), 1}, "along a dense dimension is not implemented"},
      {"aten::cat", {tensors({a, csr({2, 3})}), 0}, "expected a sparse tensor of layout sparse_coo"},
  });
}

TEST(SparseRefusals, Reductions) {
  const Value a = coo({2, 3}), rows = csr({2, 3});
  expect_rows({
      {"aten::_sparse_sum.dim", {a, ints({0, 0})}, "dim 0 appears multiple times in the list of dims"},
      {"aten::_sparse_sum.dim", {a, ints({1, -1})}, "dim -1 appears multiple times in the list of dims"},
      {"aten::sum.dim_IntList", {rows, ints({0}), false}, "with keepdim=False are unsupported"},
      {"aten::sum.dim_IntList", {rows, ints({0}), true}, kTaken},
      {"aten::sum.dim_IntList", {csr({2, 2, 2}), ints({0}), true}, "expected a matrix of layout sparse_csr"},
      {"aten::_sparse_csr_sum.dim_dtype", {a, ints({0}), true}, "expected a matrix of layout sparse_csr"},
      {"aten::_sparse_softmax", {a, 1, true}, "half_to_float is not supported"},
      {"aten::_sparse_log_softmax", {a, 1, true}, "half_to_float is not supported"},
      {"aten::_sparse_softmax", {a, 1, false}, kTaken},
      {"aten::_sparse_softmax.int", {rows, 1}, "expected a sparse tensor of layout sparse_coo"},
      {"aten::norm.Scalar", {a, 0.0}, "norm of a sparse tensor is implemented for positive p"},
      {"aten::norm.Scalar", {a, -1.0}, "norm of a sparse tensor is implemented for positive p"},
      {"aten::norm.Scalar", {a, 0.5}, kTaken},
  });
}

TEST(SparseRefusals, Products) {
  const Value a = coo({2, 3}), cube = coo({2, 2, 2}), rows = csr({3, 3});
  const Tensor right = ones({3, 2}), twice = ones({3, 2}, DType::kFloat64);
  const Value double_b = run("aten::to.dtype", {coo({3, 2}), DType::kFloat64, false, false, kNone});
  expect_rows({
      {"aten::mm", {a, ones({2, 2})}, "shapes [2, 3] and [2, 2] cannot be multiplied"},
      {"aten::mm", {a, ones({3})}, "expected two 2-D tensors, but got sizes [2, 3] and [3]"},
      {"aten::mm", {cube, ones({2, 2})}, "expected two 2-D tensors"},
      {"aten::bmm", {cube, ones({3, 2, 2})}, "cannot be multiplied"},
      {"aten::bmm", {cube, ones({2, 2, 2})}, kTaken},
      {"aten::mm", {a, twice}, "expected both matrices to have the same dtype, but got float32 and float64"},
      {"aten::mm", {a, double_b}, "expected both matrices to have the same dtype"},
      {"aten::bmm", {cube, cube}, "products of two sparse tensors are implemented for matrices"},
      {"aten::mm", {hybrid(), ones({4, 2})}, "expected a sparse matrix without dense dimensions"},
      {"aten::mm", {ones({2, 3}), hybrid()}, "expected a sparse matrix"},
      {"aten::mv", {a, ones({2})}, "expected a matrix and a vector"},
      {"aten::mv", {a, ones({3, 1})}, "expected a matrix and a vector"},
      {"aten::mv", {cube, ones({2})}, "expected a matrix and a vector"},
      {"aten::matmul", {cube, ones({2, 2})}, "matmul of sparse tensors is implemented for matrices"},
      {"aten::matmul", {coo({3}), right}, "matmul of sparse tensors is implemented for matrices"},
      {"aten::matmul", {a, right}, kTaken},
      {"aten::sparse_sampled_addmm", {coo({2, 2}), ones({2, 3}), right}, "expected a tensor of layout sparse_csr"},
      {"aten::sparse_sampled_addmm", {csr({2, 2}), ones({2, 3}), right}, kTaken},
      {"aten::sparse_sampled_addmm", {csr({2, 3}), ones({2, 3}), right}, "expected a product of sizes [2, 3]"},
      {"aten::sparse_sampled_addmm", {csr({3, 2}), ones({2, 3}), right}, "expected a product of sizes [3, 2]"},
      {"aten::sparse_sampled_addmm", {csr({2, 2}), ones({2, 4}), right}, "cannot be multiplied"},
      {"aten::sparse_sampled_addmm", {csr({2, 2, 2}), ones({2, 3}), right}, "expected two 3-D tensors"},
      {"aten::mv", {coo({3}), ones({3})}, "expected a matrix"},
      {"aten::triangular_solve", {right, a, true, false, false}, "a dense right side and a square matrix"},
      {"aten::triangular_solve", {right, csr({3, 2}), true, false, false}, "a dense right side and a square matrix"},
      {"aten::triangular_solve", {twice, rows, true, false, false}, "expected a right side of float32"},
      {"aten::triangular_solve", {ones({3}), rows, true, false, false}, "expected a right side of float32 and two"},
      {"aten::triangular_solve", {ones({2, 2}), rows, true, false, false}, "expected a right side with 3 rows"},
      {"aten::triangular_solve", {right, rows, true, false, false}, kTaken},
  });
}

// Scripts can call the engine's own operators too.
TEST(SparseRefusals, OwnOperatorsLookAtTheirIndices) {
  const Tensor starts = row({0, 1, 2}), columns = row({0, 2}), values = ones({2}), dense = ones({3, 2});
  const char *const kScatter = "tensord::scatter_rows", *const kGather = "tensord::gather_rows",
                    *const kProduct = "tensord::csr_product", *const kSampled = "tensord::csr_sampled",
                    *const kSolve = "tensord::csr_solve", *const kSoftmax = "tensord::group_softmax";
  const Tensor flat = table({1, 2}, {0, 1}), narrow = row({0, 1}).to(DType::kInt32);
  expect_rows({
      {kScatter, {row({0, 1}), values, 2}, kTaken},
      {kScatter, {row({0, 1}), values, 1}, "index 1 is out of range"},
      {kScatter, {row({-1, 0}), values, 2}, "index -1 is out of range"},
      {kScatter, {row({1}), values, 2}, "expected values for 1 places"},
      {kScatter, {row({0}), Tensor::scalar(1.0f), 1}, "expected values for 1 places"},
      {kScatter, {row({}), ones({0}), -1}, "expected values for 0 places"},
      {kScatter, {flat, values, 2}, "expected a vector of int64 as places"},
      {kScatter, {narrow, values, 2}, "expected a vector of int64 as places"},
      {kGather, {row({0, 2}), dense}, kTaken},
      {kGather, {row({0, 3}), dense}, "index 3 is out of range"},
      {kGather, {row({-1}), dense}, "index -1 is out of range"},
      {kGather, {flat, dense}, "expected a vector of int64 as places"},
      {kGather, {row({0}), Tensor::scalar(1.0f)}, "expected rows, but got"},
      {kProduct, {starts, columns, values, dense}, kTaken},
      {kProduct, {flat, columns, values, dense}, "expected a vector of int64 as starts"},
      {kProduct, {starts, narrow, values, dense}, "expected a vector of int64 as columns"},
      {kProduct, {row({}), columns, values, dense}, "expected 2 values"},
      {kProduct, {starts, columns, ones({3}), dense}, "expected 2 values"},
      {kProduct, {starts, columns, ones({2, 1}), dense}, "expected 2 values"},
      {kProduct, {starts, columns, values, ones({3})}, "expected a matrix, but got"},
      {kProduct, {starts, columns, values, ones({2, 2})}, "index 2 is out of range"},
      {kProduct, {row({1, 1, 2}), columns, values, dense}, "the starts of rows are not in order"},
      {kProduct, {row({0, 1, 1}), columns, values, dense}, "the starts of rows are not in order"},
      {kProduct, {row({0, 3, 2}), columns, values, dense}, "the starts of rows are not in order"},
      {kProduct, {starts, columns, values, ones({3, 2}, DType::kFloat64)}, "to have the same dtype"},
      {kSampled, {starts, columns, ones({2, 4}), ones({3, 4})}, kTaken},
      {kSampled, {flat, columns, ones({2, 4}), ones({3, 4})}, "expected a vector of int64 as starts"},
      {kSampled, {starts, flat, ones({2, 4}), ones({3, 4})}, "expected a vector of int64 as columns"},
      {kSampled, {starts, columns, ones({3, 4}), ones({3, 4})}, "expected two matrices of one width and dtype"},
      {kSampled, {starts, columns, ones({2, 4}), ones({3, 5})}, "expected two matrices of one width and dtype"},
      {kSampled, {starts, columns, ones({2}), ones({3, 4})}, "expected two matrices of one width and dtype"},
      {kSampled, {starts, columns, ones({2, 4}), ones({3})}, "expected two matrices of one width and dtype"},
      {kSampled, {row({}), columns, ones({0, 4}), ones({3, 4})}, "expected two matrices of one width and dtype"},
      {kSampled, {starts, columns, ones({2, 4}), ones({3, 4}, DType::kFloat64)}, "expected two matrices of one"},
      {kSampled, {starts, columns, ones({2, 4}), ones({2, 4})}, "index 2 is out of range"},
      {kSolve,
       {row({0, 1, 2}), row({0, 1}), ones({2}, DType::kFloat16), ones({2, 1}, DType::kFloat16), true, false, false},
       "is implemented for float32 and float64"},
      {kSoftmax, {row({0, 0}), values, 1, false}, kTaken},
      {kSoftmax, {row({0, 1}), values, 1, false}, "index 1 is out of range"},
      {kSoftmax, {row({0, 0}), row({1, 2}), 1, false}, "expected floating point numbers, but got int64"},
  });
}

TEST(SparseRefusals, StepsOfOptimizersLookAtTheLengthsOfTheirLists) {
  const char *const kSgd = "tensord::sgd_step_", *const kAdagrad = "tensord::adagrad_step_",
                    *const kAdam = "tensord::sparse_adam_step_";
  const Value none = tensors({}), one = tensors({ones({3, 2})}), two = tensors({ones({3, 2}), ones({3, 2})}),
              grads = tensors({coo({3, 2})});
  const auto sgd = [](const Value& params, const Value& gradients, const Value& buffers, const Value& rounded) {
    return std::vector<Value>{params, gradients, buffers, 0.1, 0.0, 0.9, 0.0, false, false, rounded};
  };
  const auto adagrad = [&](const Value& gradients, const Value& sums, const Dims& steps, const Value& rounded) {
    return std::vector<Value>{one, gradients, sums, ints(steps), 0.1, 0.0, 0.0, 0.1, false, rounded};
  };
  const auto adam = [&](const Value& means, const Value& squares, const Dims& steps, const Value& rounded) {
    return std::vector<Value>{one, grads, means, squares, ints(steps), 0.1, 0.9, 0.99, 0.1, false, rounded};
  };
  expect_rows({
      {kSgd, sgd(one, grads, none, none), kTaken},
      {kSgd, sgd(two, grads, none, none), "expected 2 tensors but got 1"},
      {kSgd, sgd(one, grads, two, none), "expected 1 tensors but got 2"},
      {kSgd, sgd(one, grads, none, two), "expected 1 tensors but got 2"},
      {kAdagrad, adagrad(grads, one, {1}, none), kTaken},
      {kAdagrad, adagrad(tensors({coo({3, 2}), coo({3, 2})}), one, {1}, none), "expected 1 tensors but got 2"},
      {kAdagrad, adagrad(grads, none, {1}, none), "expected 1 tensors but got 0"},
      {kAdagrad, adagrad(grads, one, {}, none), "expected 1 numbers of steps but got 0"},
      {kAdagrad, adagrad(grads, one, {1}, two), "expected 1 tensors but got 2"},
      {kAdam, adam(one, one, {1}, none), kTaken},
      {kAdam, adam(none, one, {1}, none), "expected 1 tensors but got 0"},
      {kAdam, adam(one, none, {1}, none), "expected 1 tensors but got 0"},
      {kAdam, adam(one, one, {1, 2}, none), "expected 1 numbers of steps but got 2"},
      {kAdam, adam(one, one, {1}, two), "expected 1 tensors but got 2"},
  });
}

}  // namespace
}  // namespace tensord::sparse_refusals_test
