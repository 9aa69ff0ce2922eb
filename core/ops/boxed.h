#pragma once

#include <span>
#include <string>

#include "core/ops/op.h"

namespace tensord::ops {

// Tensors that are no grid of ordinary numbers: TorchScript calls them Tensor, but they are no Tensor here, so that an
// operator which does not know them cannot read their parts as one. A call with such a tensor among its arguments is
// looked up by the tensor's kind, as a kernel is by its device.
enum class BoxedKind : uint8_t { kQuantized, kSparse };
inline constexpr size_t kBoxedKinds = 2;

class BoxedTensor : public OpaqueObject {
 public:
  std::string class_name() const final { return "Tensor"; }
  BoxedKind boxed_kind() const { return boxed_kind_; }
  virtual const Dims& sizes() const = 0;
  // "qint8[2, 3]", "sparse_csr float32[2, 3]", for messages.
  virtual std::string describe() const = 0;
  // Part of a module, which all runs share: refused by what writes in place.
  bool is_of_module() const { return is_of_module_; }
  void set_of_module() { is_of_module_ = true; }

 protected:
  explicit BoxedTensor(BoxedKind kind) : boxed_kind_(kind) {}

 private:
  const BoxedKind boxed_kind_;
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

// How an operator takes tensors of a kind. One without an entry refuses them by name, unless its schema asks for them
// by not asking for tensors.
const DirectFn* boxed_form(const Op& op, BoxedKind kind);
// Throws Error{kUnimplemented} naming the operator and the tensor where there is none.
const DirectFn& checked_boxed_form(const Op& op, const BoxedTensor& tensor);

// Collects one entry; made by QUANTIZED() and SPARSE(). Several names, apart by blanks, share it. A form may be
// written with other operators: these are recorded, so their gradients are the form's.
class BoxedBuilder {
 public:
  BoxedBuilder(BoxedKind kind, const char* names) : kind_(kind), names_(names) {}
  // A function of the raw values, whatever the schema says of their types.
  BoxedBuilder& direct(const DirectFn& function);

 private:
  BoxedKind kind_;
  std::string names_;
};

// Registers an operator for tensors of this kind alone, with a function of the raw values; others are refused.
bool add_boxed_op(BoxedKind kind, const char* schema, const DirectFn& function);

#define QUANTIZED(NAMES)                                                                           \
  static const ::tensord::ops::BoxedBuilder TENSORD_CONCAT(quantized_registration_, __COUNTER__) = \
      ::tensord::ops::BoxedBuilder(::tensord::ops::BoxedKind::kQuantized, NAMES)
#define SPARSE(NAMES)                                                                           \
  static const ::tensord::ops::BoxedBuilder TENSORD_CONCAT(sparse_registration_, __COUNTER__) = \
      ::tensord::ops::BoxedBuilder(::tensord::ops::BoxedKind::kSparse, NAMES)

}  // namespace tensord::ops
