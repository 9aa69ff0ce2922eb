// tensord::attention on a CUDA device: one kernel for all heads, which keeps no scores in memory.
#include <array>
#include <optional>

#include "core/tensor/device_copy.h"
#include "core/tensor/loops.h"
#include "core/tensor/shape.h"
#include "kernels/cuda/launch.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

// One operand of the job, with `last` as its last two sizes; all dimensions before them are a batch.
void set_operand(AttentionJob& job, size_t k, const Tensor& t, const Dims& batch, const Dims& last,
                 std::array<Dims, 5>& strides) {
  Dims sizes = t.sizes(), steps = t.strides();
  while (sizes.size() < 2) sizes.insert(0, 1), steps.insert(0, 0);
  const size_t n = sizes.size();
  const Dims inner = broadcast_strides(sizes.span().last(2), steps.span().last(2), last);
  job.rows[k] = inner[0], job.columns[k] = inner[1];
  strides[k] = broadcast_strides(sizes.span().first(n - 2), steps.span().first(n - 2), batch);
  job.data[k] = t.raw_data();
}

void attention_cuda(const KernelContext& context, const Tensor& query, const Tensor& key, const Tensor& value,
                    const MaybeTensor& mask, double scale, const std::optional<double>& fill, bool fills_where,
                    bool is_causal, bool transposes, bool is_safe, Tensor& given_out) {
  if (given_out.numel() == 0) return;
  if (key.size(-2) == 0) return zero_elements(given_out);
  const Tensor out = transposes ? transpose(given_out, -3, -2) : given_out;
  const Dims batch = out.sizes().span().first(out.sizes().size() - 2);
  AttentionJob job;
  job.dtype = static_cast<int8_t>(query.dtype());
  job.is_causal = is_causal, job.is_safe = is_safe;
  job.queries = out.size(-2), job.keys = key.size(-2), job.depth = query.size(-1), job.value_depth = out.size(-1);
  job.scale = scale, job.fill = fill.value_or(0);
  std::array<Dims, 5> strides;
  strides[3] = Dims(batch.size(), 0);
  set_operand(job, 0, query, batch, {job.queries, job.depth}, strides);
  set_operand(job, 1, key, batch, {job.keys, job.depth}, strides);
  set_operand(job, 2, value, batch, {job.keys, job.value_depth}, strides);
  if (mask) set_operand(job, 3, *mask, batch, {job.queries, job.keys}, strides);
  set_operand(job, 4, out, batch, {job.queries, job.value_depth}, strides);
  if (mask) job.mask = !fill ? ScoreMask::kAdd : fills_where ? ScoreMask::kFill : ScoreMask::kFillFalse;
  const LoopNest<5> nest(batch, strides);
  if (nest.ndim() > static_cast<size_t>(kAttentionDims))
    fail(ErrorCode::kUnimplemented, "attention on CUDA takes at most ", kAttentionDims,
         " batch dimensions that cannot be merged");
  job.heads = nest.numel();
  job.dims = static_cast<int>(nest.ndim());
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    for (size_t k = 0; k < 5; ++k) job.strides[k][d] = nest.stride(k, d);
  }
  launch(context, &KernelTable::attention, job);
}

IMPL("tensord::attention", kCUDA, attention_cuda);

}  // namespace
}  // namespace tensord::kernels
