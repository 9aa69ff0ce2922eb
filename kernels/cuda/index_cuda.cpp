// Reads and writes by tensors of indices on a CUDA device.
#include "kernels/cuda/index.h"

#include <algorithm>
#include <limits>

#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/loops.h"
#include "kernels/base/positions.h"
#include "kernels/cuda/launch.h"
#include "kernels/view/view.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"

namespace tensord::kernels {

namespace {

// Does the same for the real and the imaginary parts of complex tensors.
IndexedAccess of_pairs(IndexedAccess access) {
  const auto pairs = [](Dims& strides, int64_t last) {
    for (int64_t& stride : strides) stride *= 2;
    strides.push_back(last);
  };
  access.sizes.push_back(2);
  pairs(access.x_strides, 1);
  pairs(access.other_strides, 1);
  for (IndexTensor& index : access.indices) {
    index.strides.push_back(0);
    index.step *= 2;
  }
  return access;
}

// Whether the result depends on the order in which positions of one element come, and must be the same each time. Sums
// and products of integers are the same in any order, and so is one number that is written to all positions.
bool needs_order(IndexUse use, DType dtype, const IndexedAccess& access) {
  if (!execution_context().numerics.is_deterministic || use == IndexUse::kRead) return false;
  if (use != IndexUse::kWrite) return is_floating(dtype);
  const auto& steps = access.other_strides;
  return std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 0; });
}

}  // namespace

void run_indexed_cuda(IndexUse use, const Tensor& x, const IndexedAccess& access, const Tensor& other) {
  if (checked_numel(access.sizes) == 0) return;
  if (use == IndexUse::kAdd && is_complex(x.dtype()))
    return run_indexed_cuda(use, as_real_pairs(x), of_pairs(access), as_real_pairs(other));
  constexpr auto kOperands = static_cast<size_t>(kIndexTensors) + 2;
  if (access.indices.size() > static_cast<size_t>(kIndexTensors))
    fail(ErrorCode::kUnimplemented, "indexing on CUDA takes at most ", kIndexTensors, " tensors of indices");
  std::array<Dims, kOperands> strides;
  strides.fill(Dims(access.sizes.size(), 0));
  strides[0] = access.other_strides;
  strides[1] = access.x_strides;
  for (size_t k = 0; k < access.indices.size(); ++k) strides[k + 2] = access.indices[k].strides;
  const LoopNest<kOperands> nest(access.sizes, strides);
  if (nest.ndim() > static_cast<size_t>(kIndexDims))
    fail(ErrorCode::kUnimplemented, "indexing on CUDA takes at most ", kIndexDims, " dimensions that cannot be merged");
  IndexJob job;
  job.use = use;
  job.dtype = static_cast<int8_t>(x.dtype());
  job.width = static_cast<int8_t>(size_of(x.dtype()));
  job.takes_negative = access.takes_negative;
  job.error = static_cast<int8_t>(access.error);
  job.skipped = access.skipped;
  job.factor = access.factor.to_double();
  job.integer_factor = access.factor.is_float() ? static_cast<int64_t>(job.factor) : access.factor.to_int();
  job.numel = nest.numel();
  job.dims = static_cast<int>(nest.ndim());
  job.tensors = static_cast<int>(access.indices.size());
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    job.other_strides[d] = nest.stride(0, d);
    job.x_strides[d] = nest.stride(1, d);
    for (size_t k = 0; k < access.indices.size(); ++k) job.index_strides[k][d] = nest.stride(k + 2, d);
  }
  for (size_t k = 0; k < access.indices.size(); ++k) {
    const IndexTensor& one = access.indices[k];
    check(one.tensor.dtype() == DType::kInt64 || one.tensor.dtype() == DType::kInt32,
          "Expected dtype int32 or int64 for index");
    job.is_int32[k] = one.tensor.dtype() == DType::kInt32;
    job.index_sizes[k] = one.size;
    job.index_steps[k] = one.step;
    job.index_dims[k] = one.dim;
    job.indices[k] = one.tensor.raw_data();
  }
  job.x = x.raw_data();
  job.other = other.raw_data();
  const ops::KernelContext context(x.device());
  job.errors = errors_of(context);
  if (!needs_order(use, x.dtype(), access)) return launch(context, &KernelTable::index, job);
  IndexJob places = job;
  const Tensor offsets = Tensor::empty(Dims{job.numel}, DType::kInt64, x.device());
  places.use = IndexUse::kPlaces;
  places.other = offsets.raw_data();
  launch(context, &KernelTable::index, places);
  const auto [sorted, order] = ops::sort(offsets, {.stable = true});
  job.places = sorted.raw_data(), job.order = order.raw_data();
  launch(context, &KernelTable::index, job);
}

namespace {

using ops::KernelContext;
using ops::Scalar;

Tensor as_rows(const Tensor& x) { return x.ndim() > 0 ? x : x.as_view({1}, {1}, x.offset()); }

// x[…, index[i], …] for a 1-d index of dimension `dim`; `other` has the size of the index in that dimension.
IndexedAccess along(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& other) {
  IndexedAccess access;
  access.sizes = other.sizes();
  access.x_strides = x.strides();
  access.x_strides[static_cast<size_t>(dim)] = 0;
  access.other_strides = other.strides();
  Dims strides(other.sizes().size(), 0);
  strides[static_cast<size_t>(dim)] = index.ndim() == 0 ? 0 : index.strides()[0];
  access.indices.push_back({index, strides, x.sizes()[dim], x.strides()[dim], dim});
  return access;
}

void index_select_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, Tensor& out) {
  const Tensor from = as_rows(x), to = as_rows(out);
  IndexedAccess access = along(from, wrap_dim(dim, from.ndim()), index, to);
  access.error = cuda::KernelError::kRowOutOfRange;
  run_indexed_cuda(IndexUse::kRead, from, access, to);
}

// The rows of the table: first the dimensions of the indices, then those of a row.
IndexedAccess rows_access(const Tensor& table, const Tensor& indices, const Tensor& other) {
  IndexedAccess access;
  access.sizes = other.sizes();
  access.other_strides = other.strides();
  access.x_strides = Dims(other.sizes().size(), 0);
  access.x_strides.back() = table.strides()[1];
  Dims strides = indices.strides();
  strides.push_back(0);
  access.indices.push_back({indices, strides, table.sizes()[0], table.strides()[0], 0});
  access.error = cuda::KernelError::kRowOutOfRange;
  return access;
}
void embedding_cuda(const KernelContext&, const Tensor& table, const Tensor& indices, int64_t, bool, bool,
                    Tensor& out) {
  run_indexed_cuda(IndexUse::kRead, table, rows_access(table, indices, out), out);
}
void embedding_backward_cuda(const KernelContext&, const Tensor& grad, const Tensor& indices, int64_t rows,
                             int64_t padding, bool scales, Tensor& out) {
  const DType dtype = grad.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Tensor dense = grad.to(dtype);
  const Tensor table = Tensor::empty(out.sizes(), dtype, out.device());
  zero_elements(table);
  if (scales) {
    const Tensor counts = Tensor::empty(Dims{rows, 1}, dtype, out.device());
    zero_elements(counts);
    Dims each = indices.sizes();
    each.push_back(1);
    const Tensor ones = ops::ones_like(Tensor::empty(each, dtype, out.device()));
    run_indexed_cuda(IndexUse::kAdd, counts, rows_access(counts, indices, ones), ones);
    const Tensor of_each = Tensor::empty(each, dtype, out.device());
    run_indexed_cuda(IndexUse::kRead, counts, rows_access(counts, indices, of_each), of_each);
    dense = ops::div(dense, of_each);
  }
  IndexedAccess access = rows_access(table, indices, dense);
  access.skipped = padding;
  run_indexed_cuda(IndexUse::kAdd, table, access, dense);
  out.copy_from(table);
}

// `index` has x's dimensions and holds positions along `dim`.
IndexedAccess gather_access(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& other) {
  IndexedAccess access;
  access.sizes = index.sizes();
  access.x_strides = Dims(index.sizes().size(), 0);
  for (int64_t d = 0; d < index.ndim() && d < x.ndim(); ++d)
    access.x_strides[static_cast<size_t>(d)] = d == dim ? 0 : x.strides()[d];
  access.other_strides = other.ndim() == index.ndim() ? other.strides() : Dims(index.sizes().size(), 0);
  access.indices.push_back(
      {index, index.strides(), x.ndim() == 0 ? 1 : x.sizes()[dim], x.ndim() == 0 ? 0 : x.strides()[dim], dim});
  return access;
}
void gather_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, bool, Tensor& out) {
  run_indexed_cuda(IndexUse::kRead, x, gather_access(x, wrap_dim(dim, x.ndim()), index, out), out);
}
// `out` starts as a copy of self, from which the kernel reads, unless it is self already.
void start_index_from(const Tensor& self, const Tensor& out) {
  if (overlap(self, out) != Overlap::kFull) copy_elements(out, self);
}
template <IndexUse kUse>
void scatter_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  Tensor& out) {
  start_index_from(x, out);
  run_indexed_cuda(kUse, out, gather_access(out, wrap_dim(dim, x.ndim()), index, source), source);
}
// A 0-d tensor on x's device.
Tensor number_like(const Tensor& x, const Scalar& value) { return ops::tensor_of(value).to(x.dtype()).to(x.device()); }
// One number at all places of the index.
IndexedAccess same_number_access(const Tensor& x, int64_t dim, const Tensor& index) {
  IndexedAccess access = gather_access(x, dim, index, index);
  access.other_strides = Dims(index.sizes().size(), 0);
  return access;
}

void scatter_value_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                        Tensor& out) {
  start_index_from(x, out);
  run_indexed_cuda(IndexUse::kWrite, out, same_number_access(out, wrap_dim(dim, x.ndim()), index),
                   number_like(x, value));
}

// What joins with every number to that number.
Scalar neutral_of(IndexUse use, DType dtype) {
  if (use == IndexUse::kAdd) return 0;
  if (use == IndexUse::kMultiply) return 1;
  const bool is_lowest = use == IndexUse::kLargest;
  return dispatch_all(dtype, "scatter_reduce", [&]<class T>() -> Scalar {
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(is_lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    else
      return is_lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  });
}

// Sums over how many numbers they are of; whole numbers are rounded down.
void divide_by_counts_cuda(const Tensor& out, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor counts = ops::full(out.sizes(), include_self ? 1 : 0, {.dtype = DType::kInt64, .device = out.device()});
  run_indexed_cuda(IndexUse::kAdd, counts, same_number_access(counts, dim, index), number_like(counts, 1));
  const Tensor parts = ops::clamp_min(counts, 1);
  if (!is_floating(out.dtype())) return out.copy_from(ops::div(out, parts, {.rounding_mode = "floor"}));
  out.copy_from(ops::div(out.to(DType::kFloat64), parts));
}

void scatter_reduce_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                         const std::string& reduce, bool include_self, Tensor& out) {
  start_index_from(x, out);
  if (index.numel() == 0) return;
  dim = wrap_dim(dim, x.ndim());
  const IndexUse use = reduce == "prod"   ? IndexUse::kMultiply
                       : reduce == "amax" ? IndexUse::kLargest
                       : reduce == "amin" ? IndexUse::kSmallest
                                          : IndexUse::kAdd;
  if (!include_self) {
    const Tensor first = number_like(out, neutral_of(use, out.dtype()));
    run_indexed_cuda(IndexUse::kWrite, out, same_number_access(out, dim, index), first);
  }
  run_indexed_cuda(use, out, gather_access(out, dim, index, source), source);
  if (reduce == "mean") divide_by_counts_cuda(out, dim, index, include_self);
}
void scatter_old_reduce_cuda(const KernelContext& context, const Tensor& x, int64_t dim, const Tensor& index,
                             const Tensor& source, const std::string& reduce, Tensor& out) {
  scatter_reduce_cuda(context, x, dim, index, source, reduce == "add" ? "sum" : "prod", true, out);
}
IMPL("aten::scatter_reduce.two", kCUDA, scatter_reduce_cuda);
IMPL("aten::scatter.reduce", kCUDA, scatter_old_reduce_cuda);

void index_add_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha, Tensor& out) {
  start_index_from(x, out);
  const Tensor to = as_rows(out), from = as_rows(source);
  IndexedAccess access = along(to, wrap_dim(dim, to.ndim()), index, from);
  access.factor = alpha;
  access.error = cuda::KernelError::kRowOutOfRange;
  run_indexed_cuda(IndexUse::kAdd, to, access, from);
}
void index_copy_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                     Tensor& out) {
  start_index_from(x, out);
  const Tensor to = as_rows(out), from = as_rows(source);
  IndexedAccess access = along(to, wrap_dim(dim, to.ndim()), index, from);
  access.error = cuda::KernelError::kRowOutOfRange;
  run_indexed_cuda(IndexUse::kWrite, to, access, from);
}
void index_fill_cuda(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                     Tensor& out) {
  start_index_from(x, out);
  const Tensor to = as_rows(out), one = number_like(x, value);
  dim = wrap_dim(dim, to.ndim());
  Dims sizes = to.sizes();
  sizes[static_cast<size_t>(dim)] = index.numel();
  IndexedAccess access = along(to, dim, index, one.as_view(sizes, Dims(sizes.size(), 0), one.offset()));
  access.takes_negative = true;
  run_indexed_cuda(IndexUse::kWrite, to, access, one);
}
void take_cuda(const KernelContext&, const Tensor& x, const Tensor& index, Tensor& out) {
  const Tensor from = x.contiguous();
  IndexedAccess access;
  access.sizes = index.sizes();
  access.x_strides = Dims(index.sizes().size(), 0);
  access.other_strides = out.strides();
  access.takes_negative = true;
  access.indices.push_back({index, index.strides(), from.numel(), 1, from.numel()});
  access.error = cuda::KernelError::kElementIndexOutOfRange;
  run_indexed_cuda(IndexUse::kRead, from, access, out);
}

void index_fill_tensor_cuda(const KernelContext& context, const Tensor& x, int64_t dim, const Tensor& index,
                            const Tensor& value, Tensor& out) {
  index_fill_cuda(context, x, dim, index,
                  is_floating(value.dtype()) ? Scalar(value.item_double()) : Scalar(value.item_int()), out);
}
IMPL("aten::index_fill.int_Tensor", kCUDA, index_fill_tensor_cuda);
IMPL("aten::index_select", kCUDA, index_select_cuda);
IMPL("aten::embedding", kCUDA, embedding_cuda);
IMPL("aten::embedding_dense_backward", kCUDA, embedding_backward_cuda);
IMPL("aten::gather", kCUDA, gather_cuda);
IMPL("aten::scatter.src", kCUDA, scatter_cuda<IndexUse::kWrite>);
IMPL("aten::scatter_add", kCUDA, scatter_cuda<IndexUse::kAdd>);
IMPL("aten::scatter.value", kCUDA, scatter_value_cuda);
IMPL("aten::index_add", kCUDA, index_add_cuda);
IMPL("aten::index_copy", kCUDA, index_copy_cuda);
IMPL("aten::index_fill.int_Scalar", kCUDA, index_fill_cuda);
IMPL("aten::take", kCUDA, take_cuda);

}  // namespace
}  // namespace tensord::kernels
