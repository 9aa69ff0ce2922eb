// tensord::attention on the CPU: threads share the heads and blocks of their rows, and call attend_rows for each.
// Halves are widened to float32, which scores need; float64 uses plain operators.
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_gradient.h"
#include "kernels/base/prepared_operand.h"
#include "kernels/view/view.h"
#include "ops/linear.h"

namespace tensord::kernels {
namespace {

using ops::PrepareArgs;
using ops::PreparedCall;
using ops::PreparedRun;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// The arguments in the order of the schema.
enum Argument { kQuery, kKey, kValue, kMask, kScale, kFill, kFillsWhere, kIsCausal, kTransposes, kIsSafe };

// All heads: the shape that they share, and where each begins.
class AttentionCall {
 public:
  AttentionCall(std::span<const Value> arguments, const Tensor& out, int threads) {
    const auto tensor = [&](Argument i) { return arguments[i].to_tensor(); };
    const MaybeTensor mask = arguments[kMask].is_tensor() ? MaybeTensor(tensor(kMask)) : std::nullopt;
    Dims out_sizes = out.sizes(), out_strides = out.strides();
    const size_t n = out_sizes.size();
    if (arguments[kTransposes].to_bool()) {
      std::swap(out_sizes[n - 3], out_sizes[n - 2]);
      std::swap(out_strides[n - 3], out_strides[n - 2]);
    }
    const Dims batch = out_sizes.span().first(n - 2);
    shape_.queries = out_sizes[n - 2], shape_.value_depth = out_sizes[n - 1];
    shape_.keys = tensor(kKey).size(-2), shape_.depth = tensor(kKey).size(-1);
    set_strides(tensor(kQuery), shape_.query_row, shape_.query_col);
    set_strides(tensor(kKey), shape_.key_row, shape_.key_col);
    set_strides(tensor(kValue), shape_.value_row, shape_.value_col);
    shape_.out_row = out_strides[n - 2];
    shape_.scale = static_cast<float>(arguments[kScale].to_float());
    shape_.is_causal = arguments[kIsCausal].to_bool();
    shape_.is_safe = arguments[kIsSafe].to_bool();
    if (mask) set_mask(*mask, arguments);
    offsets_.resize(static_cast<size_t>(checked_numel(batch)));
    for (const Argument i : {kQuery, kKey, kValue}) add_offsets(i, tensor(i).sizes(), tensor(i).strides(), batch);
    if (mask) {
      Dims sizes = mask->sizes(), strides = mask->strides();
      while (sizes.size() < 2) sizes.insert(0, 1), strides.insert(0, 0);
      add_offsets(kMask, sizes, strides, batch);
    }
    add_offsets(4, out_sizes, out_strides, batch);
    cut(threads);
  }

  size_t scratch_bytes() const { return static_cast<size_t>(parts_ * scratch_) * sizeof(float); }
  ops::Cost cost() const {
    const double heads = static_cast<double>(offsets_.size()), rows = static_cast<double>(shape_.queries),
                 keys = static_cast<double>(shape_.keys),
                 width = static_cast<double>(shape_.depth + shape_.value_depth);
    return {2 * heads * rows * keys * width, 4 * heads * width * (rows + keys)};
  }

  void run(const float* query, const float* key, const float* value, const void* mask, float* out,
           float* scratch) const {
    const int64_t mask_size = shape_.mask == AttentionMask::kAdd ? 4 : 1;
    parallel_run(parts_, [&](int part) {
      const int64_t units = units_per_head_ * static_cast<int64_t>(offsets_.size());
      int64_t last_head = -1;
      for (int64_t u = units * part / parts_; u < units * (part + 1) / parts_; ++u) {
        const int64_t index = u / units_per_head_, block = u % units_per_head_;
        const auto& at = offsets_[static_cast<size_t>(index)];
        const void* head_mask = mask ? static_cast<const char*>(mask) + at[kMask] * mask_size : nullptr;
        const AttentionHead head{query + at[kQuery], key + at[kKey], value + at[kValue], head_mask, out + at[4]};
        const int64_t begin = block * rows_, end = std::min(shape_.queries, begin + rows_);
        attend_rows(shape_, head, begin, end, scratch + part * scratch_, index != last_head);
        last_head = index;
      }
    });
  }

 private:
  static void set_strides(const Tensor& t, int64_t& row, int64_t& col) {
    row = t.strides()[static_cast<size_t>(t.ndim() - 2)];
    col = t.strides().back();
  }
  void set_mask(const Tensor& mask, std::span<const Value> arguments) {
    const Dims strides = broadcast_strides(mask.sizes().span().last(std::min<size_t>(2, mask.sizes().size())),
                                           mask.strides().span().last(std::min<size_t>(2, mask.sizes().size())),
                                           Dims{shape_.queries, shape_.keys});
    shape_.mask_row = strides[0], shape_.mask_col = strides[1];
    shape_.mask = AttentionMask::kAdd;
    if (arguments[kFill].is_none()) return;
    shape_.mask = arguments[kFillsWhere].to_bool() ? AttentionMask::kFill : AttentionMask::kFillFalse;
    shape_.fill = static_cast<float>(arguments[kFill].to_float());
  }
  // `which` is an Argument, or 4 for the output. All dimensions but the last two count.
  void add_offsets(int which, const Dims& sizes, const Dims& strides, const Dims& batch) {
    const Dims steps =
        broadcast_strides(sizes.span().first(sizes.size() - 2), strides.span().first(sizes.size() - 2), batch);
    for (size_t i = 0; i < offsets_.size(); ++i) {
      int64_t offset = 0, rest = static_cast<int64_t>(i);
      for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) offset += rest % batch[d] * steps[d];
      offsets_[i][static_cast<size_t>(which)] = offset;
    }
  }
  void cut(int threads) {
    rows_ = std::max<int64_t>(1, attention_block_rows(shape_));
    units_per_head_ = (shape_.queries + rows_ - 1) / rows_;
    scratch_ = attention_scratch(shape_);
    const ops::Cost all = cost();
    const int64_t units = units_per_head_ * static_cast<int64_t>(offsets_.size());
    // About 80 operations, or 16 bytes, a nanosecond.
    const double ns = (all.flops / 80 + all.bytes / 16) / static_cast<double>(std::max<int64_t>(1, units));
    parts_ = parallel_parts(units, ns, threads);
  }

  AttentionShape shape_{};
  std::vector<std::array<int64_t, 5>> offsets_;  // by head: in query, key, value, mask and out
  int64_t rows_ = 0, units_per_head_ = 0, scratch_ = 0;
  int parts_ = 1;
};

bool is_covered(std::span<const Value> arguments, const Tensor& out) {
  for (const Argument i : {kQuery, kKey, kValue}) {
    const Tensor& t = arguments[i].to_tensor();
    if (t.dtype() != DType::kFloat32 || !(t.device() == Device{}) || t.numel() == 0) return false;
  }
  if (arguments[kMask].is_tensor() && arguments[kMask].to_tensor().numel() == 0) return false;
  return out.numel() > 0 && (out.strides().back() == 1 || out.sizes().back() == 1);
}

class PreparedAttention final : public PreparedCall {
 public:
  PreparedAttention(const PrepareArgs& args, PreparedOperands operands)
      : call_(args.arguments, args.outputs[0], args.threads), operands_(std::move(operands)) {
    scratch_bytes = call_.scratch_bytes();
    cost = call_.cost();
    label = "attention";
  }
  void run(const ops::KernelContext&, const PreparedRun& memory) const override {
    const auto at = [&](size_t i) { return static_cast<const float*>(operands_[i].at(memory)); };
    call_.run(at(0), at(1), at(2), operands_.size() > 3 ? operands_[3].at(memory) : nullptr,
              static_cast<float*>(memory.outputs[0]), static_cast<float*>(memory.scratch));
  }

 private:
  AttentionCall call_;
  PreparedOperands operands_;
};

std::unique_ptr<PreparedCall> prepare_attention(const PrepareArgs& args) {
  if (!is_covered(args.arguments, args.outputs[0])) return nullptr;
  return std::make_unique<PreparedAttention>(args, operands_of(args.arguments));
}

void run_attention(const ops::KernelContext& context, const Tensor& query, const Tensor& key, const Tensor& value,
                   const MaybeTensor& mask, double scale, const std::optional<double>& fill, bool fills_where,
                   bool is_causal, bool transposes, bool is_safe, Tensor& out) {
  const Value arguments[] = {
      query,     key,        value,  mask ? Value(*mask) : Value(), scale, fill ? Value(*fill) : Value(), fills_where,
      is_causal, transposes, is_safe};
  if (is_covered(arguments, out)) {
    const AttentionCall call(arguments, out, thread_budget());
    const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(call.scratch_bytes())}, DType::kUInt8);
    return call.run(query.data<float>(), key.data<float>(), value.data<float>(), mask ? mask->raw_data() : nullptr,
                    out.data<float>(), static_cast<float*>(scratch.raw_data()));
  }
  if (size_of(query.dtype()) < size_of(DType::kFloat32)) {
    const auto wide = [](const Tensor& x) { return x.dtype() == DType::kBool ? x : x.to(DType::kFloat32); };
    Tensor result = Tensor::empty(out.sizes(), DType::kFloat32, out.device());
    run_attention(context, wide(query), wide(key), wide(value), mask ? MaybeTensor(wide(*mask)) : mask, scale, fill,
                  fills_where, is_causal, transposes, is_safe, result);
    out.copy_from(result);
    return;
  }
  const PlainAttention plain{query, key, value, mask, scale, fill, fills_where, is_causal, is_safe};
  const Tensor result = ops::matmul(plain.weights(), value);
  (transposes ? transpose(out, -3, -2) : out).copy_from(result);
}

IMPL("tensord::attention", DeviceKind::kCPU, &run_attention);
PREPARE("tensord::attention", DeviceKind::kCPU, &prepare_attention);

}  // namespace
}  // namespace tensord::kernels
