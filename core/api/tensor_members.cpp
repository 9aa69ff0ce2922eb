// The members of Tensor that are not operators. The operators are in methods_*.cpp.
#include "tensord/autograd.h"
#include "tensord/index.h"
#include "tensord/ops.h"
//
#include "core/autograd/storage_changes.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/memory/shared_tensor.h"

namespace tensord {

Tensor Tensor::index(const std::vector<TensorIndex>& indices) const& { return tensord::index(*this, indices); }
Tensor Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& values) const& {
  return tensord::index_put_(*this, indices, values);
}
Tensor Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& values, Bool accumulate) const& {
  return tensord::index_put_(*this, indices, values, accumulate);
}
Tensor Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value) const& {
  return tensord::index_put_(*this, indices, value);
}
Tensor Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value, Bool accumulate) const& {
  return tensord::index_put_(*this, indices, value, accumulate);
}
Tensor Tensor::operator[](const TensorIndex& index) const& { return tensord::index(*this, {index}); }

Tensor Tensor::to(const Device& device) const& { return tensord::to(*this, device, known("to").dtype); }

bool Tensor::is_shared() const& { return tensord::is_shared(*this); }
const Tensor& Tensor::share_memory_() const& { return tensord::share_memory_(*this), *this; }
const Tensor& Tensor::resize_(const Dims& sizes) const& { return autograd::resize_(*this, sizes), *this; }
const Tensor& Tensor::set_(const Tensor& source) const& { return autograd::set_(*this, source), *this; }
const Tensor& Tensor::set_(const Storage& storage, int64_t offset, const Dims& sizes, const Dims& strides) const& {
  return autograd::set_(*this, storage, offset, sizes, strides), *this;
}
bool Tensor::is_pinned() const& { return tensord::is_pinned(*this); }
Tensor Tensor::pin_memory() const& { return tensord::pin_memory(*this); }

bool Tensor::requires_grad() const& { return known("requires_grad"), autograd::requires_grad(*this); }
Tensor Tensor::grad() const& { return known("grad"), autograd::grad(*this); }
void Tensor::set_grad(const Tensor& gradient) const& { known("set_grad"), autograd::set_grad(*this, gradient); }
IntrusivePtr<autograd::Node> Tensor::grad_fn() const& { return known("grad_fn"), autograd::grad_fn(*this); }
void Tensor::retain_grad() const& { known("retain_grad"), autograd::retain_grad(*this); }
void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const& {
  known("backward");
  autograd::backward(*this, gradient, {.retain_graph = retain_graph || create_graph, .create_graph = create_graph});
}
autograd::HookHandle Tensor::register_hook(std::function<Tensor(const Tensor& gradient)> hook) const& {
  return known("register_hook"), autograd::register_hook(*this, std::move(hook));
}
autograd::HookHandle Tensor::register_post_accumulate_grad_hook(
    std::function<void(const Tensor& parameter)> hook) const& {
  known("register_post_accumulate_grad_hook");
  return autograd::register_post_accumulate_grad_hook(*this, std::move(hook));
}

}  // namespace tensord
