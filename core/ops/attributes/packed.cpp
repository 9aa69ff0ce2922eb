#include "core/ops/attributes/packed.h"

#include "core/ops/run.h"

namespace tensord::ops {

namespace {

Tensor shape_of(const Tensor& t) {
  return t.is_meta() ? t : Tensor::meta_strided(t.sizes(), t.strides(), t.dtype(), t.device());
}

// Converts the arguments to what the call takes.
void widen(std::vector<Value>& arguments, uint32_t widened, bool is_meta) {
  for (size_t i = 0; widened >> i != 0; ++i) {
    if ((widened >> i & 1) == 0) continue;
    const Tensor& halves = arguments[i].to_tensor();
    arguments[i] = is_meta ? Tensor::meta_strided(halves.sizes(), halves.strides(), DType::kFloat32, halves.device())
                           : halves.to(DType::kFloat32);
  }
}

}  // namespace

bool PackedOp::has_other() const {
  for (const BoundCall& call : calls_) {
    if (call.other >= 0) return true;
  }
  return false;
}

std::string PackedOp::class_name() const {
  std::string text = "tensord.Packed<";
  for (size_t i = 0; i < calls_.size(); ++i)
    text += (i ? " " : "") + calls_[i].op->schema.name.substr(calls_[i].op->schema.name.find("::") + 2);
  return text + ">";
}

Tensor PackedOp::run_calls(size_t first, const Tensor& input, const Tensor& other) const {
  Tensor value = input;
  for (size_t i = first; i < calls_.size(); ++i) {
    const BoundCall& call = calls_[i];
    std::vector<Value> arguments = call.arguments;
    widen(arguments, call.widened, input.is_meta());
    arguments[call.input] = value;
    if (call.other >= 0) arguments[call.other] = other;
    const Op& op = call.in_place ? *call.in_place : *call.op;
    value = (input.is_meta() ? ops::infer(op, arguments) : ops::run(op, arguments)).front().to_tensor();
  }
  return value;
}

Tensor PackedOp::run(const Tensor& input, const Tensor& other, bool can_overwrite) const {
  if (!input.is_meta() && !(other.defined() && other.is_meta())) {
    if (std::optional<Tensor> result = try_run(input, other, can_overwrite)) return *result;
    if (!parent_) return run_calls(0, input, other);
    const Tensor before = parent_->run(input, parent_->has_other() ? other : Tensor(), false);
    return run_calls(calls_.size() - 1, before, other);
  }
  // One operand may be a constant while the other is known only by its shape.
  const Tensor result = run_calls(0, shape_of(input), other.defined() ? shape_of(other) : other);
  if (!is_channels_last() || result.ndim() < 4 || result.numel() == 0) return result;
  return Tensor::meta_strided(result.sizes(), channels_last_strides(result.sizes()), result.dtype(), result.device());
}

void PackedOp::extend(const PackedOp& parent, BoundCall call) {
  calls_ = parent.calls_;
  calls_.push_back(std::move(call));
  parent_ = IntrusivePtr<const PackedOp>(&parent);
}

TypePtr packed_type() {
  static const TypePtr type = opaque_type("tensord.Packed");
  return type;
}

}  // namespace tensord::ops
