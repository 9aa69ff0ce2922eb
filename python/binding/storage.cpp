#include <nanobind/stl/string.h>

#include <algorithm>

#include "python/binding/constants.h"
#include "python/binding/convert.h"
#include "python/binding/size.h"
#include "python/binding/trace.h"
#include "core/autograd/storage_changes.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/memory/shared_memory.h"
#include "core/tensor/memory/shared_tensor.h"

// Storages of tensors, changes of them, and shared memory between processes.
namespace tensord::python {
namespace {

// The result of untyped_storage(): the memory of a tensor at that time.
class UntypedStorage {
 public:
  explicit UntypedStorage(const Tensor& x) : tensor_(x), storage_(x.storage()) {
    check(!x.is_meta(), "untyped_storage: a tensor without memory (meta or sparse)");
  }
  const Storage& storage() const { return storage_; }
  // `function` gives the tensor other memory. This object follows, and does not hold the old memory meanwhile.
  template <class Fn>
  void change(const char* what, Fn function) {
    check(tensor_.storage() == storage_, what, ": the tensor that the storage is of has another one now");
    storage_ = nullptr;
    try {
      function(tensor_);
    } catch (...) {
      storage_ = tensor_.storage();
      throw;
    }
    storage_ = tensor_.storage();
  }

 private:
  Tensor tensor_;
  Storage storage_;
};

// Accepts resize_(2, 3) and resize_((2, 3)).
Dims sizes_in(const nb::args& args) {
  return args.size() == 1 && !PyLong_Check(args[0].ptr()) ? read_dims(args[0].ptr()) : read_dims(args.ptr());
}

void bind_untyped_storage(nb::module_& module) {
  auto type = nb::class_<UntypedStorage>(module, "UntypedStorage");
  type.def("data_ptr", [](const UntypedStorage& self) { return reinterpret_cast<uintptr_t>(self.storage()->data()); });
  const auto bytes = [](const UntypedStorage& self) { return self.storage()->size_bytes(); };
  type.def("nbytes", bytes);
  type.def("size", bytes);
  type.def("__len__", bytes);
  type.def("__eq__", [](const UntypedStorage& self, const UntypedStorage& other) { return self.storage() == other.storage(); });
  type.def("__hash__", [](const UntypedStorage& self) { return reinterpret_cast<uintptr_t>(self.storage().get()) >> 4; });
  type.def_prop_ro("device", [](const UntypedStorage& self) { return nb::cast(self.storage()->device()); });
  type.def("is_shared", [](const UntypedStorage& self) { return shared_place(self.storage()).has_value(); });
  type.def("share_memory_", [](nb::object self) {
    nb::cast<UntypedStorage&>(self).change("share_memory_", share_memory_);
    return self;
  }, nb::sig("def share_memory_(self) -> UntypedStorage"));
  type.def("resize_", [](nb::object self, size_t size) {
    refuse_in_trace("resize_");
    nb::cast<UntypedStorage&>(self).change("resize_", [&](const Tensor& x) { autograd::resize_storage_(x, size); });
    return self;
  }, nb::arg("size"), nb::sig("def resize_(self, size: int) -> UntypedStorage"), "With this many bytes; the first ones keep what is there.");
}

nb::object set_storage(nb::object self, const UntypedStorage& source, int64_t offset, nb::handle sizes, nb::handle strides) {
  refuse_in_trace("set_");
  const Tensor& x = tensor_in(self.ptr());
  const auto item = size_of(x.dtype());
  const Dims whole{static_cast<int64_t>(source.storage()->size_bytes() / item) - offset};
  const Dims wanted = sizes.is_none() ? whole : read_dims(sizes.ptr());
  autograd::set_(x, source.storage(), offset, wanted, strides.is_none() ? contiguous_strides(wanted) : read_dims(strides.ptr()));
  return self;
}

void bind_changes() {
  auto type = nb::borrow<nb::class_<Tensor>>(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  type.def("untyped_storage", [](const Tensor& x) { return UntypedStorage(x); });
  type.def("is_shared", [](const Tensor& x) { return is_shared(x); }, "Whether its memory is shared with other processes, or could be.");
  type.def("share_memory_", [](nb::object self) {
    share_memory_(tensor_in(self.ptr()));
    return self;
  }, nb::sig("def share_memory_(self) -> Tensor"), "Moves its memory to where other processes can have it; an error when views or arrays hold that memory too.");
  type.def("resize_", [](nb::object self, const nb::args& sizes) {
    refuse_in_trace("resize_");
    autograd::resize_(tensor_in(self.ptr()), sizes_in(sizes));
    return self;
  }, nb::sig("def resize_(self, *sizes: int | Sequence[int]) -> Tensor"));
  type.def("set_", [](nb::object self, const Tensor& source) {
    refuse_in_trace("set_");
    autograd::set_(tensor_in(self.ptr()), source);
    return self;
  }, nb::arg("source"), nb::sig("def set_(self, source: Tensor) -> Tensor"));
  type.def("set_", set_storage, nb::arg("source"), nb::arg("storage_offset") = 0, nb::arg("size").none() = nb::none(),
           nb::arg("stride").none() = nb::none(),
           nb::sig("def set_(self, source: UntypedStorage, storage_offset: int = 0, size: Sequence[int] | None = None, "
                   "stride: Sequence[int] | None = None) -> Tensor"));
  type.def("is_pinned", [](const Tensor& x) { return is_pinned(x); }, nb::sig("def is_pinned(self) -> bool"));
  type.def("pin_memory", [](const Tensor& x) { return pin_memory(x); }, nb::sig("def pin_memory(self) -> Tensor"),
           "A copy in memory of the host that a device reads by itself; an error where there is no such device.");
}

// For processes: (a file descriptor that is open as long as the tensor exists, bytes of its file, offset, sizes,
// strides, dtype).
nb::object share_tensor(const Tensor& x) {
  const SharedTensor shared = share(x);
  return nb::make_tuple(shared.file->get(), shared.file_bytes, shared.offset, int_tuple(shared.sizes), int_tuple(shared.strides),
                        dtype_object(shared.dtype));
}

// A row-major copy in shared memory; the bytes are copied once.
Tensor shared_copy(const Tensor& x) {
  const Storage memory = allocate_storage_from(shared_memory_allocator(), std::max<size_t>(x.size_bytes(), 1));
  const Tensor out = Tensor::from_storage(memory, x.sizes(), contiguous_strides(x.sizes()), 0, x.dtype());
  out.copy_from(x);
  return out;
}

// Takes ownership of the file descriptor.
nb::object open_tensor(int file, uint64_t file_bytes, int64_t offset, nb::handle sizes, nb::handle strides, nb::handle dtype) {
  SharedTensor shared{std::make_shared<const FileDescriptor>(file), file_bytes, read_dims(sizes.ptr()),
                      read_dims(strides.ptr()), offset, DType::kUInt8};
  if (!read_dtype(dtype.ptr(), &shared.dtype)) throw nb::type_error("open_shared: argument 'dtype' must be a dtype");
  return wrap(open_shared(shared));
}

}  // namespace

void bind_storage(nb::module_& module) {
  bind_untyped_storage(module);
  bind_changes();
  module.def("_share", share_tensor);
  module.def("_open_shared", open_tensor);
  module.def("_shared_copy", [](const Tensor& x) { return wrap(without_gil([&] { return shared_copy(x); })); });
}

}  // namespace tensord::python
