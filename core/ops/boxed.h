#pragma once

#include <span>
#include <string>

#include "core/ops/op.h"

namespace tensord::ops {

// Tensors that are no grid of ordinary numbers: TorchScript calls them Tensor, but they are no Tensor here, so that an
// operator which does not know them cannot read their parts as one. A call with such a tensor among its arguments goes
// to the operator's code for the tensor's layout.

class BoxedTensor : public OpaqueObject {
 public:
  std::string class_name() const final { return "Tensor"; }
  Functionality layout() const { return layout_; }
  virtual const Dims& sizes() const = 0;
  // "qint8[2, 3]", "sparse_csr float32[2, 3]", for messages.
  virtual std::string describe() const = 0;
  // Part of a module, which all runs share: refused by what writes in place.
  bool is_of_module() const { return is_of_module_; }
  void set_of_module() { is_of_module_ = true; }

 protected:
  explicit BoxedTensor(Functionality layout) : layout_(layout) {}

 private:
  const Functionality layout_;
  bool is_of_module_ = false;
};

// How what TensorImpl::autograd points to begins. A Tensor may stand for a boxed one, since gradients are Tensors: it
// has its sizes, dtype and device, no elements to read, and becomes what it stands for where it becomes a Value.
struct AutogradHead : AutogradMeta {
  IntrusivePtr<BoxedTensor> stands_for;
};
// What a tensor stands for, null for all that are what they seem.
inline BoxedTensor* stands_for(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  if (!impl || impl->storage || !impl->autograd) [[likely]]
    return nullptr;
  return static_cast<const AutogradHead*>(impl->autograd.get())->stands_for.get();
}

// Null when it is none.
const BoxedTensor* as_boxed(const Value& value);
// The first among the values, lists taken apart; null when there is none.
const BoxedTensor* find_boxed(std::span<const Value> values);

}  // namespace tensord::ops
