#include "core/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/parallel.h"
#include "core/tensor/complex.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/element_reads.h"

namespace tensord {
namespace {

struct Extent {
  int64_t low;
  int64_t high;  // inclusive, in elements from the start of the storage
};

Extent extent_of(const Tensor& tensor) {
  Extent extent{tensor.offset(), tensor.offset()};
  for (int64_t i = 0; i < tensor.ndim(); ++i) {
    const int64_t reach = (tensor.sizes()[i] - 1) * tensor.strides()[i];
    (reach < 0 ? extent.low : extent.high) += reach;
  }
  return extent;
}

IntrusivePtr<TensorImpl> make_impl(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                                   Device device) {
  auto impl = make_intrusive<TensorImpl>();
  impl->numel = checked_numel(sizes);
  impl->sizes = Dims(sizes);
  impl->strides = Dims(strides);
  impl->dtype = dtype;
  impl->device = device;
  int64_t bytes = 0;
  // Messages are formatted only on failure: this runs for every tensor.
  if (__builtin_mul_overflow(impl->numel, static_cast<int64_t>(size_of(dtype)), &bytes)) {
    fail(ErrorCode::kInvalidArgument, "the size of shape ", to_string(sizes), " in bytes overflows");
  }
  return impl;
}

}  // namespace

namespace {

void check_storable(DType dtype) {
  if (dtype == DType::kComplex32) fail(ErrorCode::kUnimplemented, "dtype complex32 is not supported");
}

}  // namespace

void Tensor::fail_without_data() const {
  if (!impl_->is_strided()) fail_unstrided("memory");
  fail(ErrorCode::kUnimplemented, "a tensor of shapes only has no elements to read");
}

void Tensor::fail_unstrided(const char* asked) const {
  fail(ErrorCode::kUnimplemented, "a tensor ", impl_->describe(), " has no ", asked, " of its own");
}

void Tensor::fail_undefined(const char* asked) { fail(ErrorCode::kInvalidArgument, asked, " of an undefined tensor"); }

Tensor Tensor::empty(std::span<const int64_t> sizes, DType dtype, Device device) {
  return empty_strided(sizes, contiguous_strides(sizes), dtype, device);
}

Tensor Tensor::empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                             Device device) {
  check_storable(dtype);
  auto impl = make_impl(sizes, strides, dtype, device);
  int64_t elements = impl->numel == 0 ? 0 : 1;
  if (impl->numel != 0) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t reach = 0;
      if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
          __builtin_add_overflow(elements, reach, &elements)) {
        fail(ErrorCode::kInvalidArgument, "strides ", to_string(strides), " are not possible for shape ",
             to_string(sizes));
      }
    }
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(elements), size_of(dtype), &bytes)) {
    fail(ErrorCode::kInvalidArgument, "the size of shape ", to_string(sizes), " in bytes overflows");
  }
  impl->storage = allocate_storage(bytes, device);
  return Tensor(std::move(impl));
}

Tensor Tensor::meta(std::span<const int64_t> sizes, DType dtype, Device device) {
  return meta_strided(sizes, contiguous_strides(sizes), dtype, device);
}

Tensor Tensor::meta_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                            Device device) {
  static std::atomic<uint64_t> last_id{0};
  Tensor out(make_impl(sizes, strides, dtype, device));
  out.impl_->alias_id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  return out;
}

Tensor Tensor::from_storage(Storage storage, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                            int64_t offset, DType dtype) {
  check_storable(dtype);
  check(sizes.size() == strides.size(), "tensor has ", sizes.size(), " sizes but ", strides.size(), " strides");
  auto impl = make_impl(sizes, strides, dtype, storage->device());
  const auto capacity = static_cast<int64_t>(storage->size_bytes() / size_of(dtype));
  check(offset >= 0, "tensor offset ", offset, " is negative");
  if (impl->numel != 0) {
    int64_t last = offset;
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t reach = 0;
      if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last) || last >= capacity) {
        fail(ErrorCode::kInvalidArgument, "tensor of sizes ", to_string(sizes), " and strides ", to_string(strides),
             " at offset ", offset, " lies outside of a storage of ", capacity, " elements");
      }
    }
    check(last < capacity, "tensor at offset ", offset, " lies outside of a storage of ", capacity, " elements");
  }
  impl->offset = std::min(offset, capacity);  // a tensor without elements may start anywhere
  impl->storage = std::move(storage);
  return Tensor(std::move(impl));
}

Tensor Tensor::as_view(Dims sizes, Dims strides, int64_t offset) const {
  const TensorImpl& base = known("a view");
  auto impl = make_intrusive<TensorImpl>();
  impl->numel = checked_numel(sizes);
  impl->sizes = std::move(sizes);
  impl->strides = std::move(strides);
  impl->offset = offset;
  impl->dtype = base.dtype;
  impl->device = base.device;
  impl->storage = base.storage;
  impl->alias_id = base.alias_id;
  return Tensor(std::move(impl));
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone(bool preserve_strides) const {
  const bool keep = preserve_strides && is_non_overlapping_and_dense(sizes(), strides());
  const Dims new_strides = keep ? strides() : contiguous_strides(sizes());
  if (is_meta()) return meta_strided(sizes(), new_strides, dtype(), device());
  Tensor out = empty_strided(sizes(), new_strides, dtype(), device());
  out.copy_from(*this);
  return out;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  const bool keep = is_non_overlapping_and_dense(sizes(), strides());
  const Dims new_strides = keep ? strides() : contiguous_strides(sizes());
  if (is_meta()) return meta_strided(sizes(), new_strides, dtype, device());
  Tensor out = empty_strided(sizes(), new_strides, dtype, device());
  out.copy_from(*this);
  return out;
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  const bool keep = is_non_overlapping_and_dense(sizes(), strides());
  const Dims new_strides = keep ? strides() : contiguous_strides(sizes());
  if (is_meta()) return meta_strided(sizes(), new_strides, dtype(), device);
  Tensor out = empty_strided(sizes(), new_strides, dtype(), device);
  out.copy_from(*this);
  return out;
}

void Tensor::copy_from(const Tensor& source) const {
  const Dims to = broadcast_sizes(sizes(), source.sizes());
  if (to != sizes()) {
    fail(ErrorCode::kInvalidArgument, "copy: a tensor of shape ", source.sizes(), " does not fit into shape ",
         to_string(sizes()));
  }
  if (source.device() != device() && source.sizes() != sizes()) return copy_from(source.to(device()));
  copy_elements(*this,
                source.as_view(sizes(), broadcast_strides(source.sizes(), source.strides(), sizes()), source.offset()));
}

namespace {

thread_local uint64_t reads = 0;

void check_item(const Tensor& tensor) {
  ++reads;
  check(tensor.numel() == 1, "a Tensor with ", tensor.numel(), " elements cannot be converted to Scalar");
  check(!tensor.is_meta(), "the element of a meta tensor is not known");
}

}  // namespace

uint64_t element_reads() { return reads; }

double Tensor::item_double() const {
  check_item(*this);
  if (!device().is_host()) return to(Device{}).item_double();
  return dispatch_all(dtype(), "item", [&]<class T>() { return static_cast<double>(*data<T>()); });
}

int64_t Tensor::item_int() const {
  check_item(*this);
  if (!device().is_host()) return to(Device{}).item_int();
  return dispatch_all(dtype(), "item", [&]<class T>() { return static_cast<int64_t>(*data<T>()); });
}

bool Tensor::item_bool() const {
  check(numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  check(numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  check_item(*this);
  if (!device().is_host()) return to(Device{}).item_bool();
  return dispatch_any(dtype(), "item", [&]<class T>() { return static_cast<bool>(*data<T>() != T(0)); });
}

std::string TensorImpl::describe() const { return name_of(dtype) + to_string(sizes); }

Tensor TensorImpl::shallow_copy_and_detach() const {
  if (!is_strided()) fail(ErrorCode::kUnimplemented, "detach() is not supported for ", describe());
  auto impl = make_intrusive<TensorImpl>();
  impl->storage = storage;
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = offset;
  impl->numel = numel;
  impl->dtype = dtype;
  impl->device = device;
  impl->is_inference = is_inference;
  impl->alias_id = alias_id;
  return Tensor(std::move(impl));
}

std::string describe(const Tensor& tensor) { return tensor.defined() ? tensor.impl()->describe() : "undefined"; }

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (!a.storage() || a.storage() != b.storage() || a.numel() == 0 || b.numel() == 0) return Overlap::kNo;
  if (a.offset() == b.offset() && a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype()) {
    return Overlap::kFull;
  }
  if (!is_non_overlapping_and_dense(a.sizes(), a.strides()) || !is_non_overlapping_and_dense(b.sizes(), b.strides())) {
    return Overlap::kUnknown;
  }
  const Extent ea = extent_of(a), eb = extent_of(b);
  const auto sa = static_cast<int64_t>(size_of(a.dtype())), sb = static_cast<int64_t>(size_of(b.dtype()));
  const bool apart = (ea.high + 1) * sa <= eb.low * sb || (eb.high + 1) * sb <= ea.low * sa;
  return apart ? Overlap::kNo : Overlap::kPartial;
}

}  // namespace tensord
