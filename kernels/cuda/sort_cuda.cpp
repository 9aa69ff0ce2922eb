// Sorting and selecting along a dimension, and distinct values, on a CUDA device.
#include "kernels/cuda/sort.h"

#include <cmath>
#include <optional>
#include <tuple>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
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

// Moves the lines to the last dimension; a 0-d tensor is one line of one element.
Tensor with_lines_last(const Tensor& x, int64_t dim) {
  return x.ndim() == 0 ? x.as_view({1}, {1}, x.offset()) : transpose(x, dim, -1);
}

Tensor device_empty(const Dims& sizes, DType dtype, const KernelContext& context) {
  return Tensor::empty(sizes, dtype, context.device);
}

}  // namespace

SortedLines::SortedLines(const KernelContext& context, const Tensor& x, int64_t dim, bool descending,
                         bool as_they_stand)
    : context_(context), dim_(dim), lines_(with_lines_last(x, dim).contiguous()) {
  if (lines_.numel() == 0) return;
  Dims sizes = lines_.sizes();
  sizes.push_back(2);  // a SortEntry is two of int64
  entries_ = device_empty(sizes, DType::kInt64, context);
  SortJob job;
  job.dtype = static_cast<int8_t>(x.dtype());
  job.is_descending = descending;
  job.length = lines_.sizes().back();
  job.lines = lines_.numel() / job.length;
  job.in = lines_.raw_data();
  job.to = entries_.raw_data();
  launch(context, &KernelTable::sort, job);
  if (as_they_stand || job.length == 1) return;
  Tensor other = device_empty(sizes, DType::kInt64, context);
  const auto step = [&](SortUse use, int64_t run) {
    job.use = use;
    job.run = run;
    job.from = entries_.raw_data();
    job.to = other.raw_data();
    launch(context, &KernelTable::sort, job);
    std::swap(entries_, other);
  };
  step(SortUse::kTiles, 0);
  for (int64_t run = kSortTile; run < job.length; run *= 2) step(SortUse::kMerge, run);
}

PickJob SortedLines::job(PickUse use) const {
  PickJob job;
  job.use = use;
  job.width = static_cast<int8_t>(size_of(lines_.dtype()));
  job.is_floating = is_floating(lines_.dtype());
  job.length = lines_.sizes().back();
  job.lines = lines_.numel() / job.length;
  job.entries = entries_.raw_data();
  job.in = lines_.raw_data();
  return job;
}

void SortedLines::pick(PickUse use, int64_t first, int64_t count, const Tensor& values, const Tensor& positions) const {
  if (positions.numel() == 0) return;
  Dims sizes = lines_.sizes();
  sizes.back() = count;
  const auto dense = [&](const Tensor& target) {
    return target.is_contiguous() ? target : device_empty(sizes, target.dtype(), context_);
  };
  const Tensor to_positions = with_lines_last(positions, dim_), all_positions = dense(to_positions);
  const Tensor to_values = values ? with_lines_last(values, dim_) : values,
               all_values = values ? dense(to_values) : values;
  PickJob picked = job(use);
  picked.first = first;
  picked.count = count;
  picked.positions = all_positions.raw_data();
  if (values) picked.values = all_values.raw_data();
  launch(context_, &KernelTable::pick, picked);
  if (!all_positions.is_same(to_positions)) copy_elements(to_positions, all_positions);
  if (values && !all_values.is_same(to_values)) copy_elements(to_values, all_values);
}

SortedLines::Groups SortedLines::groups() const {
  PickJob marking = job(PickUse::kMark);
  const Dims all{marking.length};
  const Tensor marks = device_empty(all, DType::kInt64, context_);
  marking.positions = marks.raw_data();
  launch(context_, &KernelTable::pick, marking);
  const Tensor sums = ops::cumsum(marks, 0);
  const Dims count{select(sums, 0, -1).item_int()};
  const Groups out{device_empty(count, DType::kInt64, context_), device_empty(count, DType::kInt64, context_),
                   device_empty(all, DType::kInt64, context_)};
  PickJob grouping = job(PickUse::kGroups);
  grouping.groups = sums.raw_data();
  grouping.positions = out.positions.raw_data();
  grouping.starts = out.starts.raw_data();
  grouping.members = out.members.raw_data();
  launch(context_, &KernelTable::pick, grouping);
  return out;
}

namespace {

void sort_cuda(const KernelContext& context, const Tensor& x, int64_t dim, bool descending, Tensor& values,
               Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  SortedLines(context, x, dim, descending).pick(PickUse::kRange, 0, line_length(x, dim), values, indices);
}
void stable_cuda(const KernelContext& context, const Tensor& x, std::optional<bool>, int64_t dim, bool descending,
                 Tensor& values, Tensor& indices) {
  sort_cuda(context, x, dim, descending, values, indices);
}
void argsort_cuda(const KernelContext& context, const Tensor& x, int64_t dim, bool descending, Tensor& indices) {
  Tensor none;
  sort_cuda(context, x, dim, descending, none, indices);
}
void argsort_stable_cuda(const KernelContext& context, const Tensor& x, bool, int64_t dim, bool descending,
                         Tensor& indices) {
  argsort_cuda(context, x, dim, descending, indices);
}
void topk_cuda(const KernelContext& context, const Tensor& x, int64_t k, int64_t dim, bool largest, bool,
               Tensor& values, Tensor& indices) {
  const int64_t kept = x.ndim() == 0 ? 1 : k;  // a 0-d tensor holds nothing else
  dim = wrap_dim(dim, x.ndim());
  if (kept != 0) SortedLines(context, x, dim, largest).pick(PickUse::kRange, 0, kept, values, indices);
}
IMPL("aten::sort", kCUDA, sort_cuda);
IMPL("aten::sort.stable", kCUDA, stable_cuda);
IMPL("aten::argsort", kCUDA, argsort_cuda);
IMPL("aten::argsort.stable", kCUDA, argsort_stable_cuda);
IMPL("aten::topk", kCUDA, topk_cuda);

// One element of each line.
void pick_one(const KernelContext& context, PickUse use, const Tensor& x, int64_t first, int64_t dim, bool keepdim,
              const Tensor& values, const Tensor& indices) {
  dim = wrap_dim(dim, x.ndim());
  const auto kept = [&](const Tensor& out) { return keepdim || x.ndim() == 0 ? out : unsqueeze(out, dim); };
  SortedLines(context, x, dim, false).pick(use, first, 1, kept(values), kept(indices));
}
void kth_cuda(const KernelContext& context, const Tensor& x, int64_t k, int64_t dim, bool keepdim, Tensor& values,
              Tensor& indices) {
  pick_one(context, PickUse::kRange, x, k - 1, dim, keepdim, values, indices);
}
template <PickUse kUse>
void one_by_dim(const KernelContext& context, const Tensor& x, int64_t dim, bool keepdim, Tensor& values,
                Tensor& indices) {
  pick_one(context, kUse, x, 0, dim, keepdim, values, indices);
}
template <PickUse kUse>
void one_of_all(const KernelContext& context, const Tensor& x, Tensor& out) {
  if (x.numel() == 0) {
    const double none = is_floating(x.dtype()) ? NAN : 0;
    return out.copy_from(Tensor::scalar(none));
  }
  const Tensor line = reshape(x, Dims{-1}), values = out.as_view({1}, {1}, out.offset());
  SortedLines(context, line, 0, false).pick(kUse, 0, 1, values, device_empty({1}, DType::kInt64, context));
}
IMPL("aten::kthvalue", kCUDA, kth_cuda);
IMPL("aten::median.dim", kCUDA, one_by_dim<PickUse::kMedian>);
IMPL("aten::nanmedian.dim", kCUDA, one_by_dim<PickUse::kNanMedian>);
IMPL("aten::mode", kCUDA, one_by_dim<PickUse::kMode>);
IMPL("aten::median", kCUDA, one_of_all<PickUse::kMedian>);
IMPL("aten::nanmedian", kCUDA, one_of_all<PickUse::kNanMedian>);

// --- distinct values

using Three = std::tuple<Tensor, Tensor, Tensor>;

Three unique_values(const Tensor& x, bool is_consecutive, bool inverse, bool counts) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, "unique: the result's shape depends on the tensor's data");
  const KernelContext context(x.device());
  const Tensor none = device_empty({0}, DType::kInt64, context), flat = reshape(x, Dims{-1});
  if (x.numel() == 0)
    return {device_empty({0}, x.dtype(), context), inverse ? device_empty(x.sizes(), DType::kInt64, context) : none,
            none};
  const SortedLines::Groups groups = SortedLines(context, flat, 0, false, is_consecutive).groups();
  const auto sizes_of_groups = [&] {
    const Tensor end = ops::full(Dims{1}, Scalar(x.numel()), {.dtype = DType::kInt64, .device = x.device()});
    return ops::sub(ops::cat(std::vector<Tensor>{narrow(groups.starts, 0, 1, groups.starts.numel() - 1), end}),
                    groups.starts);
  };
  return {ops::index_select(flat, 0, groups.positions), inverse ? view(groups.members, x.sizes()) : none,
          counts ? sizes_of_groups() : none};
}
Three unique2_cuda(const Tensor& x, bool, bool inverse, bool counts) {
  return unique_values(x, false, inverse, counts);
}
std::tuple<Tensor, Tensor> unique_cuda(const Tensor& x, bool, bool inverse) {
  const auto [values, members, counts] = unique_values(x, false, inverse, false);
  return std::tuple(values, members);
}
// Slices are compared on the host.
Three unique_consecutive_cuda(const Tensor& x, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (dim) wrap_dim(*dim, x.ndim());
  if (!dim || x.ndim() <= 1) return unique_values(x, true, inverse, counts);
  const auto [values, members, sizes] = ops::unique_dim_consecutive(x, *dim, inverse, counts);
  return Three(values, members, sizes);
}
IMPL("aten::_unique2", kCUDA, unique2_cuda);
IMPL("aten::_unique", kCUDA, unique_cuda);
IMPL("aten::unique_consecutive", kCUDA, unique_consecutive_cuda);

}  // namespace
}  // namespace tensord::kernels
