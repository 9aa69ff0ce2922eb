#include "kernels/common/packed_half.h"

#include <array>
#include <optional>
#include <utility>

#include "core/tensor/strided_copy.h"
#include "kernels/common/half_rows.h"

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

// `wide` has the order of `half` where that is dense.
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

// The scratch memory has the tensors of halves in float32, and behind them that of `wide`.
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
      if (place.wide) narrow(outputs[i], place.wide, memory.outputs[i], place.meta);
    }
  }

 private:
  struct Place {
    Tensor meta, wide;  // `wide` is undefined where the tensor is taken as it is
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

  std::unique_ptr<ops::PreparedCall> wide_;
  std::vector<Place> inputs_, outputs_;
  size_t inner_at_ = 0;
};

class PackedHalf final : public PackedOp {
 public:
  PackedHalf(const ops::PackArgs& args, DType dtype, IntrusivePtr<PackedOp> wide)
      : PackedOp(args, wide->calls().front().input), dtype_(dtype), wide_(std::move(wide)) {}
  PackedHalf(const PackedHalf& other, IntrusivePtr<PackedOp> wide)
      : PackedOp(other), dtype_(other.dtype_), wide_(std::move(wide)) {}

  IntrusivePtr<PackedOp> with(const ops::BoundCall&, const ops::Epilogue&) const override { return nullptr; }
  IntrusivePtr<PackedOp> with_channels_last() const override {
    IntrusivePtr<PackedOp> wide = wide_->with_channels_last();
    return wide ? make_intrusive<PackedHalf>(*this, std::move(wide)) : nullptr;
  }
  bool is_channels_last() const override { return wide_->is_channels_last(); }

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    if (input.dtype() != dtype_ || other.defined()) return nullptr;
    const Tensor wide_input = wide_meta(input), wide_output = wide_meta(args.outputs[0]);
    std::vector<ops::Value> arguments(args.arguments.begin(), args.arguments.end());
    arguments[1] = wide_input;
    auto call = wide_->prepare(wide_input, other,
                               {args.op, arguments, {&wide_output, 1}, args.threads, args.precision, args.packs});
    return call ? widen_call(std::move(call), {&input, 1}, args.outputs) : nullptr;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool) const override {
    if (input.dtype() != dtype_ || other.defined()) return std::nullopt;
    const std::optional<Tensor> wide = wide_->try_run(input.to(DType::kFloat32), Tensor(), false);
    return wide ? std::optional(wide->to(dtype_)) : std::nullopt;
  }

 private:
  DType dtype_;
  IntrusivePtr<PackedOp> wide_;
};

}  // namespace

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
