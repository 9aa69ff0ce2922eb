#include "kernels/base/packed_half.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "core/tensor/strided_copy.h"
#include "kernels/base/epilogue_step.h"
#include "kernels/base/half_epilogue.h"
#include "kernels/base/half_rows.h"

namespace tensord::kernels {
namespace {

using ops::PackedOp;

constexpr size_t kMaxTensors = 8;  // that a call reads, and that it writes

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// From the first element to the end of the last.
size_t extent_bytes(const Tensor& meta) {
  int64_t last = 0;
  for (size_t i = 0; i < meta.sizes().size(); ++i) last += (meta.sizes()[i] - 1) * meta.strides()[i];
  return meta.numel() == 0 ? 0 : static_cast<size_t>(last + 1) * size_of(meta.dtype());
}

Tensor tensor_at(const void* data, const Tensor& meta) {
  return Tensor::from_storage(wrap_storage(const_cast<void*>(data), extent_bytes(meta), nullptr), meta.sizes(),
                              meta.strides(), 0, meta.dtype());
}

// If `half` is dense, `wide` has its memory order.
void widen(const void* half, const Tensor& meta, void* to, const Tensor& wide) {
  if (meta.strides() != wide.strides()) return strided_copy(tensor_at(to, wide), tensor_at(half, meta));
  auto* out = static_cast<float*>(to);
  if (meta.dtype() == DType::kFloat16) return widen_row(static_cast<const Half*>(half), out, meta.numel());
  widen_row(static_cast<const BFloat16*>(half), out, meta.numel());
}

void narrow(const void* from, const Tensor& wide, void* half, const Tensor& meta) {
  if (meta.strides() != wide.strides()) return strided_copy(tensor_at(half, meta), tensor_at(from, wide));
  const auto* in = static_cast<const float*>(from);
  if (meta.dtype() == DType::kFloat16) return narrow_row(in, static_cast<Half*>(half), meta.numel());
  narrow_row(in, static_cast<BFloat16*>(half), meta.numel());
}

// How channels lie in memory: rows of all channels, or one plane each.
struct ChannelRows {
  int64_t rows = 0, length = 0;
  bool are_planes = false;
};
std::optional<ChannelRows> channel_rows(const Tensor& like, bool has_affine) {
  if (!is_non_overlapping_and_dense(like.sizes(), like.strides())) return std::nullopt;
  constexpr int64_t kPiece = 8192;
  if (!has_affine) return ChannelRows{(like.numel() + kPiece - 1) / kPiece, kPiece, false};
  if (like.ndim() < 2) return std::nullopt;
  const int64_t channels = like.sizes()[1];
  if (like.strides()[1] == 1) return ChannelRows{like.numel() / channels, channels, false};
  if (!like.is_contiguous()) return std::nullopt;
  const int64_t planes = like.sizes()[0] * channels;
  return ChannelRows{planes, like.numel() / planes, true};
}

// `from` and `other` have the layout of `like`.
template <class T>
void finish(const HalfSteps& steps, const ChannelRows& lie, const float* from, const T* other, T* to,
            const Tensor& like) {
  const int64_t count = like.numel();
  constexpr double kNsPerElement = 0.3;
  parallel_for_cost(lie.rows, kNsPerElement * static_cast<double>(lie.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * lie.length;
      HalfEpilogue each{.has_row_of_scales = !lie.are_planes, .low = steps.low, .high = steps.high};
      if (steps.scale.defined()) {
        const int64_t channel = lie.are_planes ? row % like.sizes()[1] : 0;
        each.scale = steps.scale.data<float>() + channel;
        each.shift = steps.shift.data<float>() + channel;
      }
      each.has_row_of_scales = each.has_row_of_scales && each.scale != nullptr;
      if (other != nullptr) each.other = other + at;
      const int64_t length = std::min(lie.length, count - at);
      finish_rows({from + at, 1, length, length}, each, to + at, length);
    }
  });
}
void finish(const HalfSteps& steps, const float* from, const void* other, void* to, const Tensor& like) {
  const std::optional<ChannelRows> lie = channel_rows(like, steps.scale.defined());
  check_internal(lie.has_value(), "steps behind a result that lies otherwise");
  if (like.dtype() == DType::kFloat16)
    return finish(steps, *lie, from, static_cast<const Half*>(other), static_cast<Half*>(to), like);
  finish(steps, *lie, from, static_cast<const BFloat16*>(other), static_cast<BFloat16*>(to), like);
}

// The scratch memory holds the halves' tensors in float32, followed by `wide`'s own.
class PreparedHalf final : public ops::PreparedCall {
 public:
  PreparedHalf(std::unique_ptr<ops::PreparedCall> wide, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : wide_(std::move(wide)) {
    for (const Tensor& input : inputs) inputs_.push_back(place(input));
    for (const Tensor& output : outputs) outputs_.push_back(place(output));
    inner_at_ = scratch_bytes;
    scratch_bytes += wide_->scratch_bytes;
    cost = wide_->cost;
    label = wide_->label;
    variant = wide_->variant + " of " + std::string(name_of(outputs[0].dtype()));
  }

  // The operands of one output. `other`, if defined, is added to it; it is the second input.
  void add_steps(const HalfSteps& steps, const Tensor& other) {
    steps_ = steps;
    const Tensor& output = outputs_[0].meta;
    if (!other.defined()) return;
    other_ = Tensor::meta_strided(other.sizes(), other.strides(), other.dtype());
    if (other.strides() == output.strides()) {
      may_overwrite = 2;
    } else {
      other_at_ = scratch_bytes;
      scratch_bytes += aligned(output.size_bytes());
    }
    cost.bytes += static_cast<double>(output.size_bytes());
  }

  void run(const ops::KernelContext& context, const ops::PreparedRun& memory) const override {
    char* const scratch = static_cast<char*>(memory.scratch);
    std::array<const void*, kMaxTensors> inputs{};
    std::array<void*, kMaxTensors> outputs{};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Place& place = inputs_[i];
      inputs[i] = place.wide ? scratch + place.at : memory.inputs[i];
      if (place.wide) widen(memory.inputs[i], place.meta, scratch + place.at, place.wide);
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs[i] = outputs_[i].wide ? scratch + outputs_[i].at : memory.outputs[i];
    wide_->run(context, {inputs.data(), outputs.data(), scratch + inner_at_});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Place& place = outputs_[i];
      if (!place.wide) continue;
      if (steps_.is_none()) {
        narrow(outputs[i], place.wide, memory.outputs[i], place.meta);
      } else {
        const void* const other = other_.defined() ? other_as(place.meta, memory, scratch) : nullptr;
        finish(steps_, static_cast<const float*>(outputs[i]), other, memory.outputs[i], place.meta);
      }
    }
  }

 private:
  struct Place {
    Tensor meta, wide;  // `wide` is undefined where the tensor is used as it is
    size_t at = 0;      // of `wide`, in scratch
  };
  Place place(const Tensor& like) {
    Place out{Tensor::meta_strided(like.sizes(), like.strides(), like.dtype()), {}};
    if (!is_half(like.dtype())) return out;
    out.wide = wide_meta(like);
    out.at = scratch_bytes;
    scratch_bytes += aligned(out.wide.size_bytes());
    return out;
  }

  const void* other_as(const Tensor& like, const ops::PreparedRun& memory, char* scratch) const {
    const void* const other = memory.inputs[1];
    if (other_.strides() == like.strides()) return other;
    strided_copy(tensor_at(scratch + other_at_, like), tensor_at(other, other_));
    return scratch + other_at_;
  }

  std::unique_ptr<ops::PreparedCall> wide_;
  std::vector<Place> inputs_, outputs_;
  size_t inner_at_ = 0, other_at_ = 0;
  HalfSteps steps_;
  Tensor other_;  // its shape; undefined if there is none
};

class PackedHalf final : public PackedOp {
 public:
  PackedHalf(const ops::PackArgs& args, DType dtype, IntrusivePtr<PackedOp> wide)
      : PackedOp(args, wide->calls().front().input), dtype_(dtype), wide_(std::move(wide)) {}
  PackedHalf(const PackedHalf& other, IntrusivePtr<PackedOp> wide)
      : PackedOp(other), dtype_(other.dtype_), wide_(std::move(wide)), steps_(other.steps_) {}

  IntrusivePtr<PackedOp> with(const ops::BoundCall& call, const ops::Epilogue& epilogue) const override {
    auto joined = make_intrusive<PackedHalf>(*this, wide_);
    if (!joined->steps_.join(epilogue)) return nullptr;
    joined->extend(*this, call);
    return joined;
  }
  IntrusivePtr<PackedOp> with_channels_last() const override {
    IntrusivePtr<PackedOp> wide = wide_->with_channels_last();
    return wide ? make_intrusive<PackedHalf>(*this, std::move(wide)) : nullptr;
  }
  bool is_channels_last() const override { return wide_->is_channels_last(); }

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    const Tensor& out = args.outputs[0];
    if (input.dtype() != dtype_ || !covers(out, other)) return nullptr;
    // When the other tensor is larger, the result is repeated.
    if (other.defined() && first_result(input).sizes() != out.sizes()) return nullptr;
    if (auto call = prepare_directly(input, other, args)) return call;
    const Tensor wide_input = wide_meta(input), wide_output = wide_meta(out);
    std::vector<ops::Value> arguments(args.arguments.begin(), args.arguments.end());
    arguments[1] = wide_input;
    auto wide = wide_->prepare(wide_input, Tensor(),
                               {args.op, arguments, {&wide_output, 1}, args.threads, args.precision, args.packs});
    if (!wide) return nullptr;
    auto call = std::make_unique<PreparedHalf>(std::move(wide), std::span(&input, 1), args.outputs);
    if (!steps_.is_none()) call->add_steps(steps_, other);
    add_labels(*call);
    return call;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool) const override {
    if (input.dtype() != dtype_ || other.defined() != steps_.has_add) return std::nullopt;
    const std::optional<Tensor> wide = wide_->try_run(input.to(DType::kFloat32), Tensor(), false);
    if (!wide || steps_.is_none()) return wide ? std::optional(wide->to(dtype_)) : std::nullopt;
    Tensor out = Tensor::empty_strided(wide->sizes(), wide->strides(), dtype_);
    if (!covers(out, other)) return std::nullopt;
    Tensor added = other;
    if (other.defined() && other.strides() != out.strides()) {
      added = Tensor::empty_strided(out.sizes(), out.strides(), dtype_);
      added.copy_from(other);
    }
    finish(steps_, wide->data<float>(), added.defined() ? added.raw_data() : nullptr, out.raw_data(), out);
    return out;
  }

 private:
  std::unique_ptr<ops::PreparedCall> prepare_directly(const Tensor& input, const Tensor& other,
                                                      const ops::PrepareArgs& args) const {
    const auto* const op = dynamic_cast<const ReadsHalves*>(wide_.get());
    if (op == nullptr || dtype_ != DType::kBFloat16) return nullptr;
    auto call = op->prepare_halves(input, other, args, steps_);
    if (call) add_labels(*call);
    return call;
  }
  void add_labels(ops::PreparedCall& call) const {
    for (size_t i = 1; i < calls().size(); ++i) {
      const std::string& name = calls()[i].op->schema.name;
      call.label += "+" + name.substr(name.find("::") + 2);
    }
  }

  // The scratch memory of the layer alone, by shape.
  Tensor first_result(const Tensor& input) const {
    const ops::BoundCall& first = calls().front();
    std::vector<ops::Value> arguments = first.arguments;
    arguments[static_cast<size_t>(first.input)] =
        Tensor::meta_strided(input.sizes(), input.strides(), input.dtype(), input.device());
    return ops::infer(*first.op, arguments).front().to_tensor();
  }

  bool covers(const Tensor& out, const Tensor& other) const {
    if (other.defined() != steps_.has_add || out.dtype() != dtype_) return false;
    if (other.defined() && (other.sizes() != out.sizes() || other.dtype() != dtype_ || other.device() != Device{}))
      return false;
    if (steps_.is_none()) return true;
    const bool fits = !steps_.scale.defined() || (out.ndim() >= 2 && out.sizes()[1] == steps_.scale.numel());
    return fits && out.numel() > 0 && channel_rows(out, steps_.scale.defined()).has_value();
  }

  DType dtype_;
  IntrusivePtr<PackedOp> wide_;
  HalfSteps steps_;
};

}  // namespace

bool HalfSteps::join(const ops::Epilogue& next) {
  using Kind = ops::Epilogue::Kind;
  if (has_clamp || (has_add && next.kind != Kind::kFormula)) return false;
  switch (next.kind) {
    case Kind::kChannelAffine:
      if (scale.defined()) return false;
      scale = next.scale.contiguous();
      shift = next.shift.contiguous();
      return true;
    case Kind::kAdd: return has_add = true;
    case Kind::kFormula: break;
  }
  const std::optional<EpilogueStep> step = epilogue_step_of(next);
  if (!step) return false;
  if (step->kind == EpilogueStep::Kind::kRelu && step->alpha == 0) {
    low = 0;
  } else if (step->kind == EpilogueStep::Kind::kClip) {
    low = step->alpha;
    high = step->beta;
  } else {
    return false;
  }
  return has_clamp = true;
}

Tensor wide_meta(const Tensor& like) {
  const bool is_dense = is_non_overlapping_and_dense(like.sizes(), like.strides());
  return is_dense ? Tensor::meta_strided(like.sizes(), like.strides(), DType::kFloat32)
                  : Tensor::meta(like.sizes(), DType::kFloat32);
}

std::unique_ptr<ops::PreparedCall> widen_call(std::unique_ptr<ops::PreparedCall> wide, std::span<const Tensor> inputs,
                                              std::span<const Tensor> outputs) {
  check_internal(inputs.size() <= kMaxTensors && outputs.size() <= kMaxTensors, "a call of too many tensors");
  return std::make_unique<PreparedHalf>(std::move(wide), inputs, outputs);
}

IntrusivePtr<PackedOp> pack_half(const ops::PackArgs& args, DType dtype, IntrusivePtr<PackedOp> wide) {
  return wide ? make_intrusive<PackedHalf>(args, dtype, std::move(wide)) : nullptr;
}

}  // namespace tensord::kernels
