// tensord::attention on a CUDA device: one kernel for all heads, which keeps no scores in memory, and its gradient, a
// kernel for each operand.
#include <array>
#include <optional>

#include "core/ops/generator.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/loops.h"
#include "core/tensor/shape.h"
#include "kernels/attention/attention_gradient.h"
#include "kernels/cuda/launch.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;
using Operand = AttentionOperand;

// The arguments, as tensors of one batch of heads.
class AttentionLaunch {
 public:
  AttentionLaunch(const PlainAttention& arguments, Dims batch)
      : arguments_(arguments), batch_(std::move(batch)), context_(arguments.query.device()) {
    strides_.fill(Dims(batch_.size(), 0));
    const Tensor &query = arguments.query, &key = arguments.key, &value = arguments.value;
    const MaybeTensor& mask = arguments.mask;
    job_.dtype = static_cast<int8_t>(query.dtype());
    job_.is_causal = arguments.is_causal, job_.is_safe = arguments.is_safe;
    job_.queries = query.size(-2), job_.keys = key.size(-2);
    job_.depth = query.size(-1), job_.value_depth = value.size(-1);
    job_.scale = arguments.scale, job_.fill = arguments.fill.value_or(0);
    job_.dropout = arguments.dropout;
    if (mask)
      job_.mask = !arguments.fill ? ScoreMask::kAdd : arguments.fills_where ? ScoreMask::kFill : ScoreMask::kFillFalse;
    set_operand(Operand::kQuery, query, {job_.queries, job_.depth});
    set_operand(Operand::kKey, key, {job_.keys, job_.depth});
    set_operand(Operand::kValue, value, {job_.keys, job_.value_depth});
    if (mask) set_operand(Operand::kMask, *mask, {job_.queries, job_.keys});
  }

  // `last` are its last two sizes; all dimensions before them are a batch.
  void set_operand(int operand, const Tensor& t, const Dims& last) {
    Dims sizes = t.sizes(), steps = t.strides();
    while (sizes.size() < 2) sizes.insert(0, 1), steps.insert(0, 0);
    const size_t n = sizes.size();
    const Dims inner = broadcast_strides(sizes.span().last(2), steps.span().last(2), last);
    job_.rows[operand] = inner[0], job_.columns[operand] = inner[1];
    strides_[static_cast<size_t>(operand)] =
        broadcast_strides(sizes.span().first(n - 2), steps.span().first(n - 2), batch_);
    job_.data[operand] = t.raw_data();
  }
  void set_rows(int operand, const Tensor& t) { set_operand(operand, t, {job_.queries, job_.value_depth}); }
  // One number for each row.
  void set_row_numbers(int operand, const Tensor& t) {
    job_.data[operand] = t.raw_data();
    strides_[static_cast<size_t>(operand)] = t.strides().span().first(batch_.size());
  }
  AttentionJob& job() { return job_; }

  // The result is that of the pass, dense; without one, each head has a result of its own.
  void run(AttentionPass pass, const MaybeTensor& result = std::nullopt) {
    const auto own = static_cast<size_t>(Operand::kResult);
    AttentionJob job = job_;
    std::array<Dims, Operand::kCount> strides = strides_;
    job.pass = pass;
    if (result) {
      const size_t n = result->sizes().size();
      strides[own] =
          broadcast_strides(result->sizes().span().first(n - 2), result->strides().span().first(n - 2), batch_);
      job.data[Operand::kResult] = result->raw_data();
    }
    const LoopNest<Operand::kCount> nest(batch_, strides);
    if (nest.ndim() > static_cast<size_t>(kAttentionDims))
      fail(ErrorCode::kUnimplemented, "attention on CUDA takes at most ", kAttentionDims,
           " batch dimensions that cannot be merged");
    const auto take = [&](bool summed) {
      int64_t heads = 1;
      for (size_t d = 0; d < nest.ndim(); ++d) {
        const bool is_summed = result && nest.size(d) > 1 && nest.stride(own, d) == 0;
        if (is_summed != summed) continue;
        job.sizes[job.dims] = nest.size(d);
        for (size_t k = 0; k < strides.size(); ++k) job.strides[k][job.dims] = nest.stride(k, d);
        ++job.dims;
        heads *= nest.size(d);
      }
      return heads;
    };
    job.heads = take(false);
    job.result_dims = job.dims;
    job.summed_heads = take(true);
    launch(context_, &KernelTable::attention, job);
  }

 private:
  const PlainAttention& arguments_;
  const Dims batch_;
  const KernelContext context_;
  AttentionJob job_;
  std::array<Dims, Operand::kCount> strides_;
};

Dims batch_of(const Tensor& out) { return out.sizes().span().first(out.sizes().size() - 2); }

void attention_cuda(const KernelContext&, const Tensor& query, const Tensor& key, const Tensor& value,
                    const MaybeTensor& mask, double scale, const std::optional<double>& fill, bool fills_where,
                    bool is_causal, bool transposes, bool is_safe, Tensor& given_out) {
  if (given_out.numel() == 0) return;
  if (key.size(-2) == 0) return zero_elements(given_out);
  const Tensor out = transposes ? transpose(given_out, -3, -2) : given_out;
  const PlainAttention arguments{query, key, value, mask, scale, fill, fills_where, is_causal, is_safe};
  AttentionLaunch call(arguments, batch_of(out));
  call.set_rows(Operand::kOut, out);
  call.run(AttentionPass::kForward);
}
IMPL("tensord::attention", kCUDA, attention_cuda);

void attention_training_cuda(const KernelContext& context, const Tensor& query, const Tensor& key, const Tensor& value,
                             const MaybeTensor& mask, double scale, const std::optional<double>& fill, bool fills_where,
                             bool is_causal, bool is_safe, double dropout, Tensor& out, Tensor& statistics,
                             Tensor& philox) {
  if (out.numel() == 0 || key.size(-2) == 0) {
    for (const Tensor& result : {out, statistics, philox}) zero_elements(result);
    return;
  }
  const PlainAttention arguments{query, key, value, mask, scale, fill, fills_where, is_causal, is_safe, dropout};
  AttentionLaunch call(arguments, batch_of(out));
  call.set_rows(Operand::kOut, out);
  call.set_row_numbers(Operand::kStatistics, statistics);
  call.job().philox = philox.raw_data();
  if (dropout > 0) {
    ops::Generator& generator = ops::current_generator(context.device);
    const auto lock = generator.lock();
    const ops::PhiloxState state = generator.take(context.device, 4);
    call.job().seed = state.seed, call.job().offset = state.offset;
  }
  call.run(AttentionPass::kForward);
}
IMPL("tensord::attention_training", kCUDA, attention_training_cuda);

void attention_backward_cuda(const KernelContext&, const Tensor& gradient, const Tensor& query, const Tensor& key,
                             const Tensor& value, const MaybeTensor& mask, const Tensor& out, const Tensor& statistics,
                             const Tensor& philox, double scale, const std::optional<double>& fill, bool fills_where,
                             bool is_causal, bool is_safe, double dropout, const std::vector<bool>& needed,
                             Tensor& of_query, Tensor& of_key, Tensor& of_value) {
  if (out.numel() == 0 || key.size(-2) == 0) {
    for (const Tensor& result : {of_query, of_key, of_value}) zero_elements(result);
    return;
  }
  const PlainAttention arguments{query, key, value, mask, scale, fill, fills_where, is_causal, is_safe, dropout};
  AttentionLaunch call(arguments, batch_of(out));
  call.set_rows(Operand::kOut, out);
  call.set_rows(Operand::kGradient, gradient);
  call.set_row_numbers(Operand::kStatistics, statistics);
  const Tensor dots = Tensor::empty(statistics.sizes(), statistics.dtype(), statistics.device());
  call.set_row_numbers(Operand::kDots, dots);
  call.job().philox = philox.raw_data();
  if (needed[0] || needed[1]) call.run(AttentionPass::kDots);
  if (needed[0]) call.run(AttentionPass::kOfQuery, of_query);
  if (needed[1]) call.run(AttentionPass::kOfKey, of_key);
  if (needed[2]) call.run(AttentionPass::kOfValue, of_value);
}
IMPL("tensord::attention_backward", kCUDA, attention_backward_cuda);

void attention_kept_cuda(const KernelContext& context, const Tensor& statistics, const Tensor& philox, int64_t keys,
                         double dropout, Tensor& out) {
  if (out.numel() == 0) return;
  AttentionJob job;
  job.pass = AttentionPass::kKept;
  job.dtype = static_cast<int8_t>(out.dtype());
  job.queries = statistics.size(-1), job.keys = keys;
  job.heads = statistics.numel() / job.queries;
  job.dropout = dropout;
  job.philox = philox.raw_data();
  job.data[Operand::kResult] = out.raw_data();
  launch(context, &KernelTable::attention, job);
}
IMPL("tensord::attention_kept", kCUDA, attention_kept_cuda);

}  // namespace
}  // namespace tensord::kernels
