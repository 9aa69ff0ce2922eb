#include "core/autograd/saved.h"

#include "core/autograd/anomaly.h"
#include "core/autograd/meta.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"

namespace tensord::autograd {

void check_savable(const Tensor& tensor) {
  check(!tensor.impl()->is_inference || is_inference_mode(),
        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor "
        "and use it in autograd.");
}

void check_version(const Tensor& saved, uint32_t version, const Node* computed_by, uint32_t output_nr) {
  if (saved.version() == version) [[likely]]
    return;
  std::string text =
      concat("one of the variables needed for gradient computation has been modified by an inplace operation: [",
             describe(saved), "]");
  if (computed_by) text += concat(", which is output ", output_nr, " of ", computed_by->name(), ",");
  text += concat(" is at version ", saved.version(), "; expected version ", version, " instead.");
  text += is_anomaly_mode()
              ? " Hint: the report of anomaly mode says which operation could not compute its "
                "gradient; the variable was changed there or later."
              : " Hint: enable anomaly detection to find the operation that failed to compute its gradient.";
  fail(ErrorCode::kFailedPrecondition, text);
}

void fail_released() {
  fail(ErrorCode::kFailedPrecondition,
       "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
       "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
       "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
       "saved tensors after calling backward.");
}

SavedTensor::SavedTensor(const Tensor& tensor, const Node* owner, uint32_t output_nr) {
  if (!tensor.defined()) return;
  check_savable(tensor);
  owner_ = owner;
  if (hooks_are_set() && !tensor.is_meta()) {
    packed_ = std::make_unique<PackedTensor>(owner ? detach(tensor) : tensor);
    output_nr_ = output_nr;
    return;
  }
  tensor_ = owner ? detach(tensor) : tensor;
  version_ = tensor.version();
  output_nr_ = output_nr;
}

Tensor SavedTensor::unpack() const {
  if (packed_) {
    Tensor out = packed_->unpack(is_grad_enabled());
    if (owner_) set_history(out, owner_->history(), output_nr_);
    return out;
  }
  if (!tensor_.defined()) return {};
  if (!owner_) {
    const NodePtr node = tensor_.version() == version_ ? NodePtr() : grad_fn(tensor_);
    check_version(tensor_, version_, node.get(), output_nr(tensor_));
    return tensor_;
  }
  check_version(tensor_, version_, owner_, output_nr_);
  Tensor out = detach(tensor_);
  set_history(out, owner_->history(), output_nr_);
  return out;
}

}  // namespace tensord::autograd
