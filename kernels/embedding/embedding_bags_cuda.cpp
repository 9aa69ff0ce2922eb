// embedding_bag on a CUDA device, and its gradients, which are made of other operators.
#include <optional>

#include "core/ops/op.h"
#include "core/tensor/device_copy.h"
#include "kernels/cuda/launch.h"
#include "kernels/embedding/embedding_bag.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using OptionalTensor = std::optional<Tensor>;

Tensor wide_indices(const Tensor& x) { return x.to(DType::kInt64).contiguous(); }

void bags_cuda(const KernelContext& context, const Tensor& table, const Tensor& indices, const Tensor& offsets, bool,
               int64_t mode, bool, const OptionalTensor& weights, bool, std::optional<int64_t> padding, Tensor& out,
               Tensor& bag_of_index, Tensor& counts, Tensor& maxima) {
  const auto kind = static_cast<BagMode>(mode);
  // Sums have none, and means have them in two outputs.
  if (kind == BagMode::kSum && counts.numel() > 0) zero_elements(counts);
  if (kind == BagMode::kSum && maxima.numel() > 0) zero_elements(maxima);
  const Tensor all_indices = wide_indices(indices), all_offsets = wide_indices(offsets),
               factors = weights ? weights->contiguous() : Tensor();
  BagJob job;
  job.dtype = static_cast<int8_t>(table.dtype());
  job.index_dtype = static_cast<int8_t>(bag_of_index.dtype());
  job.mode = static_cast<int8_t>(mode);
  job.rows = table.size(0);
  job.width = table.size(1);
  job.row_step = table.stride(0);
  job.step = table.stride(1);
  job.bags = out.size(0);
  job.offset_count = offsets.numel();
  job.index_count = indices.numel();
  job.padding = padding ? *padding + (*padding < 0 ? job.rows : 0) : -1;
  job.table = table.raw_data();
  job.indices = all_indices.raw_data();
  job.offsets = all_offsets.raw_data();
  if (factors) job.weights = factors.raw_data();
  job.out = out.raw_data();
  if (bag_of_index.numel() > 0) job.bag_of_index = bag_of_index.raw_data();
  if (kind != BagMode::kSum) job.counts = counts.raw_data();
  if (kind == BagMode::kMax) job.maxima = maxima.raw_data();
  job.errors = errors_of(context);
  if (job.offset_count > 0) launch(context, &KernelTable::bags, job);
  if (kind == BagMode::kMean && counts.numel() > 0) copy_elements(maxima, counts);
}
IMPL("aten::embedding_bag.padding_idx", kCUDA, bags_cuda);
IMPL("aten::embedding_bag", kCUDA,
     [](const KernelContext& context, const Tensor& table, const Tensor& indices, const Tensor& offsets, bool scales,
        int64_t mode, bool is_sparse, const OptionalTensor& weights, bool has_last, Tensor& out, Tensor& bag_of_index,
        Tensor& counts, Tensor& maxima) {
       bags_cuda(context, table, indices, offsets, scales, mode, is_sparse, weights, has_last, {}, out, bag_of_index,
                 counts, maxima);
     });

// --- gradients

// For each index: its row and its bag, both in range, and whether it counts.
struct Members {
  Tensor rows, bags, is_used;
  Tensor sizes;  // of each bag
};
Members members_of(const Tensor& indices, const Tensor& given_offsets, int64_t count, int64_t padding) {
  const Tensor rows = wide_indices(indices), offsets = wide_indices(given_offsets);
  check(offsets.numel() == count || offsets.numel() == count + 1, "embedding_bag: expected gradients of ",
        offsets.numel(), " bags, but got ", count);
  const auto is_ordered = [&] {
    const Tensor before = narrow(offsets, 0, 0, offsets.numel() - 1),
                 after = narrow(offsets, 0, 1, offsets.numel() - 1);
    return ops::all(ops::le(before, after)).item_bool() && select(offsets, 0, 0).item_int() >= 0 &&
           select(offsets, 0, -1).item_int() <= rows.numel();
  };
  check(offsets.numel() == 0 || is_ordered(), "embedding_bag: the offsets of bags are not in order");
  const Tensor places = ops::arange(rows.numel(), {.dtype = DType::kInt64, .device = rows.device()});
  const Tensor bags = ops::sub(ops::searchsorted(offsets, places, {.right = true}), Scalar(1));
  const Tensor is_inside = ops::logical_and(ops::ge(bags, Scalar(0)), ops::lt(bags, Scalar(count)));
  const Tensor is_used = ops::logical_and(is_inside, ops::ne(rows, Scalar(padding)));
  const Tensor near = ops::clamp(bags, Scalar(0), Scalar(std::max<int64_t>(count - 1, 0)));
  const Tensor sizes = ops::zeros(Dims{count}, {.dtype = DType::kInt64, .device = rows.device()});
  return {rows, near, is_used, count == 0 ? sizes : ops::index_add(sizes, 0, near, is_used.to(DType::kInt64))};
}

DType dtype_of_bag_sums(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

void table_gradient_cuda(const KernelContext&, const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                         const Tensor&, const Tensor&, const Tensor& maxima, int64_t rows, bool scales, int64_t mode,
                         bool, const OptionalTensor& weights, int64_t padding, Tensor& out) {
  const DType dtype = dtype_of_bag_sums(grad.dtype());
  const Tensor g = grad.to(dtype), table = ops::zeros(out.sizes(), {.dtype = dtype, .device = out.device()});
  const int64_t count = grad.size(0);
  const Members members = members_of(indices, offsets, count, padding);
  if (count == 0 || indices.numel() == 0) return zero_elements(out);
  if (static_cast<BagMode>(mode) == BagMode::kMax) {
    const Tensor is_filled = unsqueeze(ops::gt(members.sizes, Scalar(0)), 1);
    return out.copy_from(ops::scatter_add(table, 0, wide_indices(maxima), ops::mul(g, is_filled.to(dtype))));
  }
  Tensor factors = members.is_used.to(dtype);
  const auto divide_by = [&](const Tensor& counts, const Tensor& places) {
    factors = ops::div(factors, ops::index_select(ops::clamp_min(counts, Scalar(1)), 0, places).to(dtype));
  };
  if (static_cast<BagMode>(mode) == BagMode::kMean) divide_by(members.sizes, members.bags);
  if (scales) {
    const Tensor none = ops::zeros(Dims{rows}, {.dtype = DType::kInt64, .device = out.device()});
    divide_by(ops::index_add(none, 0, members.rows, ops::ones_like(members.rows)), members.rows);
  }
  if (weights) factors = ops::mul(factors, weights->to(dtype));
  const Tensor terms = ops::mul(ops::index_select(g, 0, members.bags), unsqueeze(factors, 1));
  out.copy_from(ops::index_add(table, 0, members.rows, terms));
}
IMPL("aten::_embedding_bag_backward", kCUDA, table_gradient_cuda);

void weights_gradient_cuda(const KernelContext&, const Tensor& grad, const Tensor& table, const Tensor& indices,
                           const Tensor& offsets, const Tensor&, int64_t, int64_t padding, Tensor& out) {
  const Members members = members_of(indices, offsets, grad.size(0), padding);
  if (grad.numel() == 0 || out.numel() == 0) return zero_elements(out);
  const auto rows_of = [](const Tensor& x, const Tensor& places) {
    return ops::index_select(x.to(DType::kFloat64), 0, places);
  };
  const Tensor products = ops::mul(rows_of(table, members.rows), rows_of(grad, members.bags));
  const Tensor sums = ops::sum(products, Dims{1});
  out.copy_from(ops::where(members.is_used, sums, ops::zeros_like(sums)));
}
IMPL("aten::_embedding_bag_per_sample_weights_backward", kCUDA, weights_gradient_cuda);

}  // namespace
}  // namespace tensord::kernels
