// The operators that run a packed operator; see core/ops/attributes/packed.h.
#include "core/ops/attributes/packed.h"

#include <algorithm>
#include <array>

#include "core/ops/attributes/batch_independence.h"
#include "kernels/base/prepared_operand.h"

namespace tensord::kernels {
namespace {

using PackedPtr = IntrusivePtr<ops::PackedOp>;

// A tensor that only this call holds may be overwritten.
bool is_sole_holder(const Tensor& tensor) {
  return tensor.impl()->use_count() == 1 && tensor.storage() && tensor.storage()->use_count() == 1 &&
         tensor.storage()->is_writable();
}

bool all_calls_are_batch_independent(std::span<const ops::Value> v) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(v[0].to_opaque().get());
  return packed && std::all_of(packed->calls().begin(), packed->calls().end(), [](const ops::BoundCall& call) {
           return ops::is_batch_independent(*call.op, call.arguments);
         });
}

OP("tensord::packed")
    .set<ops::BatchIndependent>(all_calls_are_batch_independent)
    .impl([](const PackedPtr& packed, const Tensor& input) {
      check(!packed->has_other(), "this packed operator takes two tensors");
      return packed->run(input, Tensor(), false);
    })
    .kind(ops::OpKind::kComposite);
OP("tensord::packed.other")
    .set<ops::BatchIndependent>(all_calls_are_batch_independent)
    .impl([](const PackedPtr& packed, const Tensor& input, const Tensor& other) {
      check(packed->has_other(), "this packed operator takes one tensor");
      return packed->run(input, other, is_sole_holder(other));
    })
    .kind(ops::OpKind::kComposite);

// A packed operator's call reads one or two tensors. Constants among them are not inputs of the run: this puts them
// where the call expects them.
class CallWithConstants final : public ops::PreparedCall {
 public:
  CallWithConstants(std::unique_ptr<ops::PreparedCall> call, PreparedOperands operands)
      : call_(std::move(call)), operands_(std::move(operands)) {
    scratch_bytes = call_->scratch_bytes;
    cost = call_->cost;
    label = call_->label;
    variant = call_->variant;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const bool comes = !operands_[i].constant.defined();
      if (comes && (call_->may_overwrite >> i & 1)) may_overwrite |= 1u << operands_[i].input;
    }
  }
  void run(const ops::KernelContext& context, const ops::PreparedRun& memory) const override {
    std::array<const void*, 2> inputs{};
    for (size_t i = 0; i < operands_.size(); ++i) inputs[i] = operands_[i].at(memory);
    call_->run(context, {inputs.data(), memory.outputs, memory.scratch});
  }

 private:
  std::unique_ptr<ops::PreparedCall> call_;
  PreparedOperands operands_;  // the input, and the second tensor if there is one
};

std::unique_ptr<ops::PreparedCall> prepare_packed(const ops::PrepareArgs& args) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(args.arguments[0].to_opaque().get());
  check(packed != nullptr, "expected a packed operator");
  const Tensor other = args.arguments.size() > 2 ? args.arguments[2].to_tensor() : Tensor();
  auto call = packed->prepare(args.arguments[1].to_tensor(), other, args);
  PreparedOperands operands = operands_of(args.arguments);
  const bool all_come = std::none_of(operands.begin(), operands.end(),
                                     [](const PreparedOperand& operand) { return operand.constant.defined(); });
  if (!call || all_come) return call;
  return std::make_unique<CallWithConstants>(std::move(call), std::move(operands));
}
PREPARE("tensord::packed", DeviceKind::kCPU, &prepare_packed);
PREPARE("tensord::packed", kCUDA, &prepare_packed);
PREPARE("tensord::packed.other", DeviceKind::kCPU, &prepare_packed);

}  // namespace
}  // namespace tensord::kernels
