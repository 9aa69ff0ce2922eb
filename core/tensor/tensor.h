#pragma once

#include <cstdint>
#include <string>

#include "core/base/device.h"
#include "core/base/dispatch_key.h"
#include "core/base/error.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"
#include "core/tensor/grad_mode.h"
#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

namespace tensord {

class Tensor;

// Autograd's data of a tensor; defined in core/autograd/meta.h, opaque here.
class AutogradMeta : public RefCounted {};

// The object behind a handle: strided memory. Tensors of other layouts derive from it (core/ops/sparse.h, quantized.h):
// they have sizes, a dtype and a device, but no storage and no strides.
struct TensorImpl : RefCounted {
  Storage storage;  // null for a meta tensor (shape and dtype only), and for other layouts
  Dims sizes;
  Dims strides;        // in elements
  int64_t offset = 0;  // in elements, from the start of the storage
  int64_t numel = 1;
  DType dtype = DType::kFloat32;
  Functionality layout = Functionality::kDense;  // also of complex numbers
  Device device;
  bool is_of_module =
      false;  // other layouts only: part of a module, which all runs share, so in-place writes refuse it
  bool is_inference = is_inference_mode();  // made in inference mode: never takes part in autograd
  IntrusivePtr<AutogradMeta> autograd;      // null until autograd needs it
  uint64_t alias_id = 0;                    // meta tensors only: the memory it stands for; its views have the same id

  bool is_strided() const { return layout == Functionality::kDense; }
  // "float32[2, 3]", for messages; for other layouts "qint8[2, 3]", "sparse_csr float32[2, 3]".
  virtual std::string describe() const;
  // The tensor that autograd knows in place of this one: itself, or the values of a sparse tensor.
  virtual const TensorImpl& differentiable() const { return *this; }
  // A new tensor over the same elements, without autograd's data.
  virtual Tensor shallow_copy_and_detach() const;
  // The dispatch keys of a call with this tensor.
  DispatchKeySet keys() const {
    if (!is_strided()) [[unlikely]]
      return layout;
    const DispatchKeySet numbers = is_complex(dtype) ? Functionality::kComplex : Functionality::kDense;
    const DispatchKeySet known = autograd ? DispatchKeySet(Functionality::kAutograd) : DispatchKeySet();
    return numbers | known | Functionality::kADInplaceOrView;
  }
};

// A handle to an n-dimensional array: sizes, strides and an offset over a shared Storage, or an array of another
// layout, whose parts its own class has. Copies of the handle are the same tensor; views are other tensors over the
// same storage. A default-constructed handle is undefined. As thread-safe as an int: concurrent reads are fine.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Uninitialized memory, row-major. Throws Error on a bad shape, or if there is no memory.
  static Tensor empty(std::span<const int64_t> sizes, DType dtype, Device device = {});
  static Tensor empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                              Device device = {});
  // Shape and dtype without data, for shape inference. data() must not be called.
  static Tensor meta(std::span<const int64_t> sizes, DType dtype, Device device = {});
  static Tensor meta_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                             Device device = {});
  // A tensor over existing bytes. Throws Error{kInvalidArgument} if an element would lie outside of the storage.
  static Tensor from_storage(Storage storage, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                             int64_t offset, DType dtype);
  // 0-d tensor with one value.
  template <class T>
  static Tensor scalar(T value, DType dtype = dtype_of<T>);

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // All functions below throw Error{kInvalidArgument} for an undefined tensor.
  const Dims& sizes() const { return known("sizes").sizes; }
  const Dims& strides() const { return strided("strides").strides; }
  int64_t size(int64_t dim) const { return known("size").sizes[axis_of(dim, ndim())]; }
  int64_t stride(int64_t dim) const { return strided("strides").strides[axis_of(dim, ndim())]; }
  int64_t ndim() const { return static_cast<int64_t>(known("ndim").sizes.size()); }
  int64_t numel() const { return known("numel").numel; }
  int64_t offset() const { return strided("offset").offset; }
  DType dtype() const { return known("dtype").dtype; }
  Device device() const { return known("device").device; }
  size_t size_bytes() const { return static_cast<size_t>(numel()) * size_of(dtype()); }
  // storage() and strides() throw Error{kUnimplemented} for a tensor of another layout.
  const Storage& storage() const { return strided("storage").storage; }
  bool is_strided() const { return known("layout").is_strided(); }
  bool is_meta() const { return !known("is_meta").storage && impl_->is_strided(); }
  // Of a meta tensor: a number for the memory it stands for, which its views share.
  uint64_t alias_id() const { return known("alias_id").alias_id; }
  uint32_t version() const { return known("version").storage ? impl_->storage->version() : 0; }

  bool is_contiguous() const { return tensord::is_contiguous(sizes(), strides()); }
  bool is_channels_last() const { return tensord::is_channels_last(sizes(), strides()); }

  // The first element, in its device's memory. Throws Error for a meta tensor: shape inference must not read elements.
  void* raw_data() const {
    if (!known("data").storage) [[unlikely]]
      fail_without_data();
    return static_cast<char*>(impl_->storage->data()) + impl_->offset * static_cast<int64_t>(size_of(impl_->dtype));
  }
  // REQUIRES: dtype() == dtype_of<T>.
  template <class T>
  T* data() const {
    check_internal(dtype() == dtype_of<T>, "tensor of ", name_of(dtype()), " read as ", name_of(dtype_of<T>));
    return static_cast<T*>(raw_data());
  }
#ifdef TENSORD_METHODS  // programs that include <tensord/…>: every operator is a member
#include TENSORD_METHODS
#endif
  Tensor as_view(Dims sizes, Dims strides,
                 int64_t offset) const;  // over the same storage; in elements, not checked against it
#ifndef TENSORD_METHODS  // for the engine: autograd does not see these. On any device, queued on its current stream.
#define TENSORD_TENSOR_WITHOUT_METHODS
  Tensor contiguous() const;  // a row-major copy, or this tensor if it is row-major already
  // Copies the elements to new memory: row-major, or in the same order of dimensions if `preserve_strides` is set and
  // the tensor is dense.
  Tensor clone(bool preserve_strides = false) const;
  // Same data in another dtype (converted as by static_cast; bool is value != 0).
  Tensor to(DType dtype) const;
  // The same data on another device, with the same strides if the tensor is dense; the tensor itself if it is there
  // already.
  Tensor to(Device device) const;
#endif
  void copy_from(const Tensor& source) const;  // broadcasts, converts, copies between devices; autograd does not see it

  // The only element as double, int64 or bool; waits for the tensor's device. Throws Error if numel() != 1.
  double item_double() const;
  int64_t item_int() const;
  bool item_bool() const;

 private:
  [[noreturn]] void fail_without_data() const;
  [[noreturn]] void fail_unstrided(const char* asked) const;
  [[noreturn]] static void fail_undefined(const char* asked);
  TensorImpl& known(const char* asked) const {
    if (!impl_) [[unlikely]]
      fail_undefined(asked);
    return *impl_;
  }
  TensorImpl& strided(const char* asked) const {
    if (!known(asked).is_strided()) [[unlikely]]
      fail_unstrided(asked);
    return *impl_;
  }
  IntrusivePtr<TensorImpl> impl_;
};

template <class T>
Tensor Tensor::scalar(T value, DType dtype) {
  Tensor out = Tensor::empty({}, dtype);
  dispatch_all(dtype, "scalar", [&]<class U>() { *out.data<U>() = static_cast<U>(value); });
  return out;
}

// As TensorImpl::describe; "undefined" for an undefined tensor.
std::string describe(const Tensor& tensor);

// Whether `a` and `b` share memory: exactly the same elements in the same order (kFull), dense ranges that overlap
// otherwise (kPartial), one storage but too irregular to tell cheaply (kUnknown).
enum class Overlap { kNo, kFull, kPartial, kUnknown };
Overlap overlap(const Tensor& a, const Tensor& b);

}  // namespace tensord
