#include "core/autograd/hooks/saved_hooks.h"

#include <utility>

#include "core/autograd/differentiable.h"
#include "core/autograd/meta.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/tensor/grad_mode.h"

namespace tensord::autograd {
namespace {

thread_local std::shared_ptr<const SavedTensorHooks> current;

}  // namespace

SavedTensorHooksScope::SavedTensorHooksScope(SavedTensorHooks hooks) {
  check(hooks.pack && hooks.unpack, "SavedTensorHooks: both pack and unpack must be given");
  previous_ = std::exchange(current, std::make_shared<const SavedTensorHooks>(std::move(hooks)));
}
SavedTensorHooksScope::~SavedTensorHooksScope() { current = std::move(previous_); }

SavedTensorHooks save_on_cpu() {
  return {[](const Tensor& tensor) -> std::any {
            return std::pair(tensor.device(), tensor.device() == Device{} ? tensor : tensor.to(Device{}));
          },
          [](const std::any& packed) {
            const auto& [device, tensor] = std::any_cast<const std::pair<Device, Tensor>&>(packed);
            return tensor.to(device);
          }};
}

bool hooks_are_set() { return static_cast<bool>(current); }

PackedTensor::PackedTensor(const Tensor& tensor)
    : hooks_(current), shape_(Tensor::meta(tensor.sizes(), tensor.dtype(), tensor.device())) {
  edge_ = gradient_edge(tensor);
  // What the hook itself does is neither recorded nor packed.
  const std::shared_ptr<const SavedTensorHooks> hooks = std::exchange(current, nullptr);
  const NoGradGuard no_grad;
  try {
    packed_ = hooks->pack(detach(tensor));
  } catch (...) {
    current = hooks;
    throw;
  }
  current = hooks;
}

Tensor PackedTensor::unpack(bool with_history) const {
  Tensor out;
  {
    const NoGradGuard no_grad;
    out = hooks_->unpack(packed_);
  }
  check(out.defined() && out.sizes() == shape_.sizes() && out.dtype() == shape_.dtype() &&
            out.device() == shape_.device(),
        "SavedTensorHooks: unpack gave ", out.defined() ? describe(out) : "an undefined tensor", " for ",
        describe(shape_));
  if (with_history && edge_.node) {
    out = detach(out);
    set_history(out, edge_.node, edge_.input_nr);
  }
  return out;
}

}  // namespace tensord::autograd
