// Included inside class Tensor (see methods.h): first the members that are not operators, then all operators.

// Python's x[...], see index.h.
Tensor index(const std::vector<TensorIndex>& indices) const&;
Tensor index_put_(const std::vector<TensorIndex>& indices, const Tensor& values) const&;
Tensor index_put_(const std::vector<TensorIndex>& indices, const Tensor& values, Bool accumulate) const&;
Tensor index_put_(const std::vector<TensorIndex>& indices, const Scalar& value) const&;
Tensor index_put_(const std::vector<TensorIndex>& indices, const Scalar& value, Bool accumulate) const&;
Tensor operator[](const TensorIndex& index) const&;

// Copies to another device with the same dtype.
Tensor to(const Device& device) const&;
// The single element. Throws Error if numel() != 1, or if an integer does not fit in T.
template <class T>
T item() const& {
  if constexpr (std::is_same_v<T, bool>) {
    return item_bool();
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t value = item_int();
    check(std::in_range<T>(value), "item: ", value, " does not fit in the type that is asked for");
    return static_cast<T>(value);
  } else {
    return static_cast<T>(item_double());
  }
}
template <class T>
T* data_ptr() const& {
  return data<T>();
}

// Memory, see core/tensor/memory/shared_tensor.h and core/autograd/storage_changes.h.
bool is_shared() const&;
const Tensor& share_memory_() const&;
const Tensor& resize_(const Dims& sizes) const&;
const Tensor& set_(const Tensor& source) const&;
const Tensor& set_(const Storage& storage, int64_t offset, const Dims& sizes, const Dims& strides) const&;
// Returns a copy in pinned host memory, which a device of this build accesses directly
// (core/tensor/memory/pinned_memory.h), without autograd history; or the tensor itself if its memory is pinned already.
// Throws Error{kUnimplemented} if there is no such device.
bool is_pinned() const&;
Tensor pin_memory() const&;

// Autograd, see core/autograd/variable.h and engine.h.
bool requires_grad() const&;
Tensor grad() const&;
void set_grad(const Tensor& gradient) const&;
IntrusivePtr<autograd::Node> grad_fn() const&;
void retain_grad() const&;
void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const&;
// The result of the hook, if defined, replaces the gradient.
autograd::HookHandle register_hook(std::function<Tensor(const Tensor& gradient)> hook) const&;
autograd::HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor& parameter)> hook) const&;

#include "tensord/method_list.h"
