#include "core/autograd/accumulate_grad.h"

#include <limits>

#include "core/autograd/gradients.h"
#include "core/autograd/hooks/hooks.h"
#include "core/autograd/variable.h"
#include "core/base/mutex.h"
#include "core/ops/run.h"

namespace tensord::autograd {
namespace {

using ops::Value;

Tensor run_dense(const ops::Op& op, std::initializer_list<Value> arguments) {
  std::vector<Value> returns;
  ops::run(op, std::span(arguments.begin(), arguments.size()), returns);
  return returns.front().to_tensor();
}

void add_into(const Tensor& total, const Tensor& gradient) {
  static const ops::Op& add = ops::get_op("aten::add_.Tensor");
  std::vector<Value> returns;
  const Value arguments[] = {total, gradient, 1};
  ops::run(add, arguments, returns);
}

bool is_alone(const Tensor& tensor, uint32_t handles) {
  return tensor.impl()->use_count() <= handles && !tensor.is_meta() && tensor.storage()->use_count() == 1;
}

bool has_layout_of(const Tensor& gradient, const Tensor& leaf) {
  if (is_non_overlapping_and_dense(leaf.sizes(), leaf.strides())) return gradient.strides() == leaf.strides();
  return gradient.is_contiguous();
}

// A copy with the leaf's memory layout; recorded if grad mode is on.
Tensor copy_in_layout_of(const Tensor& gradient, const Tensor& leaf) {
  static const ops::Op& copy = ops::get_op("aten::copy_");
  const bool keeps = is_non_overlapping_and_dense(leaf.sizes(), leaf.strides());
  const Tensor out = keeps ? Tensor::empty_strided(leaf.sizes(), leaf.strides(), gradient.dtype(), gradient.device())
                           : Tensor::empty(leaf.sizes(), gradient.dtype(), gradient.device());
  return run_dense(copy, {out, gradient, false});
}

}  // namespace

AccumulateGrad::AccumulateGrad(const Tensor& leaf, IntrusivePtr<GradSlot> slot)
    : Node(std::numeric_limits<uint64_t>::max()), slot_(std::move(slot)) {
  add_result(leaf);
}

std::vector<Tensor> AccumulateGrad::apply(std::vector<Tensor> gradients) {
  check_internal(gradients.size() == 1, "a leaf takes one gradient");
  Tensor gradient = std::move(gradients.front());
  if (!gradient.defined()) return {};
  const Tensor& leaf = results_[0];
  const MutexLock lock(slot_->mutex);
  Tensor& total = slot_->value;
  if (!total.defined() && !gradient.is_strided()) {
    // The values may share memory with a gradient that flows elsewhere too.
    total = copy_of(is_grad_enabled() ? gradient : detach(gradient));
  } else if (!total.defined()) {
    // Post hooks run afterwards and read the gradient, so the pass keeps a handle to it.
    const uint32_t handles = has_post_hooks(*this) ? 2 : 1;
    // A meta tensor has no elements, so its storage cannot be shared.
    const bool may_take =
        gradient.is_meta() || (!is_grad_enabled() && is_alone(gradient, handles) && has_layout_of(gradient, leaf));
    total =
        may_take ? (state_of(gradient) ? detach(gradient) : std::move(gradient)) : copy_in_layout_of(gradient, leaf);
  } else if (is_grad_enabled() || !total.is_strided()) {
    total = sum_of(total, gradient);
  } else {
    add_into(total, gradient);
  }
  return {};
}

}  // namespace tensord::autograd
