// The operators that run a packed operator; see core/ops/packed.h.
#include "core/ops/packed.h"

namespace tensord::kernels {
namespace {

using PackedPtr = IntrusivePtr<ops::PackedOp>;

// A tensor that only this call holds may be written over.
bool is_sole_holder(const Tensor& tensor) {
  return tensor.impl()->use_count() == 1 && tensor.storage() && tensor.storage()->use_count() == 1 &&
         tensor.storage()->is_writable();
}

OP("tensord::packed(tensord.Packed packed, Tensor input) -> Tensor")
    .direct([](const PackedPtr& packed, const Tensor& input) {
      check(!packed->has_other(), "this packed operator takes two tensors");
      return packed->run(input, Tensor(), false);
    });
OP("tensord::packed.other(tensord.Packed packed, Tensor input, Tensor other) -> Tensor")
    .direct([](const PackedPtr& packed, const Tensor& input, const Tensor& other) {
      check(packed->has_other(), "this packed operator takes one tensor");
      return packed->run(input, other, is_sole_holder(other));
    });

std::unique_ptr<ops::PreparedCall> prepare_packed(const ops::PrepareArgs& args) {
  const auto* packed = dynamic_cast<const ops::PackedOp*>(args.arguments[0].to_opaque().get());
  check(packed != nullptr, "expected a packed operator");
  const Tensor other = args.arguments.size() > 2 ? args.arguments[2].to_tensor() : Tensor();
  return packed->prepare(args.arguments[1].to_tensor(), other, args);
}
PREPARE("tensord::packed", DeviceKind::kCPU, &prepare_packed);
PREPARE("tensord::packed.other", DeviceKind::kCPU, &prepare_packed);

}  // namespace
}  // namespace tensord::kernels
