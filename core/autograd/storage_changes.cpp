#include "core/autograd/storage_changes.h"

#include <algorithm>

#include "core/autograd/meta.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/shared_tensor.h"

namespace tensord::autograd {
namespace {

void check_changeable(const Tensor& tensor, const char* what) {
  check(tensor.defined(), what, ": argument 'self' is an undefined tensor");
  check(tensor.is_strided() && !tensor.is_meta(), what, ": a tensor without memory (meta or sparse)");
  check(!tensor.impl()->is_inference, what,
        ": a tensor made in inference mode, as those of a loaded model are, keeps its memory, which runs of models "
        "remember");
  check(!requires_grad(tensor), what,
        ": the tensor takes part in a gradient; change tensor.detach() or tensor.data instead");
}

// The tensor is no longer a view of its base.
void forget_base(const Tensor& tensor) {
  if (view_of(tensor)) tensor.impl()->autograd = nullptr;
}

// Bytes from the start of the storage to the end of the last element with these sizes.
size_t bytes_of(const Tensor& tensor, const Dims& sizes) {
  int64_t end = 0, bytes = 0;
  const bool is_too_large = __builtin_add_overflow(tensor.offset(), checked_numel(sizes), &end) ||
                            __builtin_mul_overflow(end, size_of(tensor.dtype()), &bytes);
  check(!is_too_large, "resize_: the size of shape ", sizes, " in bytes overflows");
  return static_cast<size_t>(bytes);
}

Storage storage_of(const StorageImpl& from, size_t size_bytes) {
  Storage to = allocate_storage(size_bytes, from.device());
  const Device device = from.device();
  DeviceStream& stream = current_stream(device);
  const size_t kept = std::min(size_bytes, from.size_bytes());
  device_runtime(device).copy(to->data(), device, from.data(), device, kept, stream);
  from.record_stream(stream);
  while (to->version() != from.version()) to->bump_version();
  return to;
}

void check_sole(const Tensor& tensor, const char* what) {
  check(tensor.storage()->ensure_writable(), what, ": the tensor's memory is read-only");
  check(!is_shared(tensor), what, ": memory that processes share keeps its size");
  const uint32_t others = tensor.storage()->use_count() - 1;
  if (others > 0) {
    fail(ErrorCode::kFailedPrecondition, what, ": the tensor's memory is held by ", others,
         " more (views, arrays over it, a model's runs), which would keep the old one; resize a clone()");
  }
}

}  // namespace

void take_memory(const Tensor& tensor, const Tensor& source) {
  for (const Tensor* one : {&tensor, &source}) {
    if (!one->is_strided())
      fail(ErrorCode::kUnimplemented, "a tensor ", describe(*one), " has no memory of its own to set");
  }
  TensorImpl &to = *tensor.impl(), &from = *source.impl();
  to.storage = from.storage;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.offset = from.offset;
  to.numel = from.numel;
  to.device = from.device;
}

void resize_(const Tensor& tensor, const Dims& sizes) {
  check_changeable(tensor, "resize_");
  if (tensor.sizes() == sizes) return;
  const size_t bytes = bytes_of(tensor, sizes);
  if (checked_numel(sizes) > 0 && bytes > tensor.storage()->size_bytes()) {
    check_sole(tensor, "resize_");
    tensor.impl()->storage = storage_of(*tensor.storage(), bytes);
  }
  TensorImpl& impl = *tensor.impl();
  impl.sizes = sizes;
  impl.strides = contiguous_strides(sizes);
  impl.numel = checked_numel(sizes);
  forget_base(tensor);
  impl.storage->bump_version();
}

void set_(const Tensor& tensor, const Tensor& source) {
  check_changeable(tensor, "set_");
  check(source.defined() && source.is_strided() && !source.is_meta(),
        "set_: argument 'source' has no memory (undefined, meta or sparse)");
  check(!requires_grad(source), "set_: the source takes part in a gradient; give it source.detach()");
  check(tensor.dtype() == source.dtype(), "set_: expected ", name_of(tensor.dtype()), ", got ",
        name_of(source.dtype()));
  check(tensor.device() == source.device(), "set_: expected a tensor on ", to_string(tensor.device()), ", got one on ",
        to_string(source.device()));
  const uint32_t before = tensor.version();
  take_memory(tensor, source);
  forget_base(tensor);
  // The version tells those who saved the tensor that it changed.
  while (tensor.version() <= before) tensor.storage()->bump_version();
}

void set_(const Tensor& tensor, const Storage& storage, int64_t offset, const Dims& sizes, const Dims& strides) {
  check(static_cast<bool>(storage), "set_: there is no storage");
  set_(tensor, Tensor::from_storage(storage, sizes, strides, offset, tensor.dtype()));
}

void resize_storage_(const Tensor& tensor, size_t size_bytes) {
  check_changeable(tensor, "resize_");
  if (tensor.storage()->size_bytes() == size_bytes) return;
  check_sole(tensor, "resize_");
  Storage storage = storage_of(*tensor.storage(), size_bytes);
  // The tensor's present sizes must fit.
  Tensor::from_storage(storage, tensor.sizes(), tensor.strides(), tensor.offset(), tensor.dtype());
  tensor.impl()->storage = std::move(storage);
  tensor.storage()->bump_version();
}

}  // namespace tensord::autograd
