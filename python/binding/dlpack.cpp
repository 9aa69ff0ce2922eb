#include "python/binding/dlpack.h"

#include <memory>

#include "python/binding/convert.h"
#include "python/binding/trace.h"
#include "core/autograd/variable.h"
#include "core/tensor/device_runtime.h"

// Exchanges tensors with other libraries (PyTorch, JAX, CuPy, NumPy) through DLPack without copies.
namespace tensord::python {
namespace {

dlpack::DataType dlpack_type(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * size_of(dtype));
  if (dtype == DType::kBool) return {dlpack::kBool, 8, 1};
  if (dtype == DType::kBFloat16) return {dlpack::kBfloat, 16, 1};
  if (is_complex(dtype)) return {dlpack::kComplex, bits, 1};
  if (is_floating(dtype)) return {dlpack::kFloat, bits, 1};
  return {is_signed(dtype) ? dlpack::kInt : dlpack::kUInt, bits, 1};
}

DType dtype_of(dlpack::DataType type) {
  static constexpr DType kAll[] = {DType::kUInt8,   DType::kInt8,    DType::kInt16,     DType::kInt32,
                                   DType::kInt64,   DType::kFloat16, DType::kFloat32,   DType::kFloat64,
                                   DType::kBool,    DType::kBFloat16, DType::kComplex64, DType::kComplex128};
  for (const DType dtype : kAll) {
    const dlpack::DataType known = dlpack_type(dtype);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return dtype;
  }
  fail(ErrorCode::kUnimplemented, "from_dlpack: there is no dtype for elements of code ", static_cast<int>(type.code), ", ",
       static_cast<int>(type.bits), " bits and ", type.lanes, " lanes");
}

// kDLCPU, kDLCUDA, kDLExtDev.
int32_t dlpack_type(Device device) { return device.is_host() ? 1 : device.kind == kCUDA ? 2 : 12; }

// The owner of an exported tensor. It holds the storage, not the Python object.
template <class M>
struct Exported {
  M managed{};
  tensord::Tensor tensor;
  Dims sizes, strides;
};

template <class M>
M* export_tensor(const Tensor& x) {
  record_values_read();
  auto exported = std::make_unique<Exported<M>>();
  exported->tensor = x.as_view(x.sizes(), x.strides(), x.offset());
  exported->sizes = x.sizes();
  exported->strides = x.strides();
  // The strides of dimensions of size 1 have no meaning, but some libraries check them.
  for (size_t i = 0; i < exported->sizes.size(); ++i) {
    if (exported->sizes[i] < 2) exported->strides[i] = 1;
  }
  dlpack::Tensor& out = exported->managed.tensor;
  out.data = x.numel() == 0 ? nullptr : x.raw_data();
  out.device = {dlpack_type(x.device()), x.device().index};
  out.ndim = static_cast<int32_t>(x.ndim());
  out.dtype = dlpack_type(x.dtype());
  out.shape = exported->sizes.data();
  out.strides = exported->strides.data();
  exported->managed.owner = exported.get();
  exported->managed.deleter = [](M* managed) { delete static_cast<Exported<M>*>(managed->owner); };
  return &exported.release()->managed;
}

template <class M>
void free_capsule(PyObject* capsule) {
  // A library that takes the tensor renames the capsule and frees the tensor.
  const char* name = PyCapsule_GetName(capsule);
  const std::string_view wanted = std::is_same_v<M, dlpack::Managed> ? "dltensor" : "dltensor_versioned";
  if (!name || wanted != name) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class M>
nb::object capsule_of(M* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, free_capsule<M>);
  if (!capsule) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

nb::object to_dlpack(const Tensor& given, nb::handle stream, nb::handle max_version, nb::handle, nb::handle copy) {
  if (given.device().kind == DeviceKind::kCPU && !stream.is_none()) {
    fail(ErrorCode::kInvalidArgument, "__dlpack__: a tensor in host memory has no stream");
  }
  check(!autograd::requires_grad(given), "__dlpack__: the tensor requires a gradient; use tensor.detach()");
  check(!given.is_meta(), "__dlpack__: a meta tensor has no data");
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  const Tensor x = copies ? given.clone() : given;
  // A consumer's stream does not wait for ours. -1: it asks for no order.
  if (!x.device().is_host() && (stream.is_none() || read_int(stream.ptr()) != -1)) synchronize(x.device());
  const bool is_versioned = !max_version.is_none() && read_int(nb::object(max_version[0]).ptr()) >= 1;
  if (!is_versioned) {
    check(x.storage()->is_writable(), "__dlpack__: the tensor's memory is read-only, which DLPack before 1.0 cannot say");
    return capsule_of(export_tensor<dlpack::Managed>(x), "dltensor");
  }
  auto* managed = export_tensor<dlpack::ManagedVersioned>(x);
  managed->version = {1, 0};
  managed->flags = (x.storage()->is_writable() ? 0 : dlpack::kReadOnly) | (copies ? dlpack::kCopied : 0);
  return capsule_of(managed, "dltensor_versioned");
}

Tensor tensor_over(const dlpack::Tensor& given, bool is_writable, std::function<void()> deleter) {
  // From here on the tensor is owned, even if it turns out to be invalid.
  const std::shared_ptr<void> owner(nullptr, [deleter = std::move(deleter)](void*) { deleter(); });
  check(given.device.type == 1 || given.device.type == 2 || given.device.type == 3, "from_dlpack: devices of type ",
        given.device.type, " are not supported, only host memory and CUDA");
  const DType dtype = dtype_of(given.dtype);
  Dims sizes, strides(static_cast<size_t>(given.ndim), 0);
  int64_t count = 1, last = 0;
  for (int32_t i = 0; i < given.ndim; ++i) {
    check(given.shape[i] >= 0, "from_dlpack: a size is negative");
    sizes.push_back(given.shape[i]);
    count *= given.shape[i];
  }
  int64_t dense = 1;
  for (int32_t i = given.ndim; i-- > 0;) {
    strides[static_cast<size_t>(i)] = given.strides ? given.strides[i] : dense;
    dense *= std::max<int64_t>(given.shape[i], 1);
    check(strides[static_cast<size_t>(i)] >= 0 || given.shape[i] < 2, "from_dlpack: negative strides are not supported");
    if (given.shape[i] < 2) strides[static_cast<size_t>(i)] = 1;
    last += (given.shape[i] - 1) * strides[static_cast<size_t>(i)];
  }
  const Device device = given.device.type == 2 ? Device{kCUDA, static_cast<int8_t>(given.device.id)} : Device{};
  char* data = static_cast<char*>(given.data) + given.byte_offset;
  check(count == 0 || reinterpret_cast<uintptr_t>(data) % std::min<size_t>(size_of(dtype), 8) == 0,
        "from_dlpack: the memory is not aligned for ", name_of(dtype));
  const size_t bytes = count == 0 ? 0 : static_cast<size_t>(last + 1) * size_of(dtype);
  return Tensor::from_storage(wrap_storage(data, bytes, [owner] {}, device, is_writable), sizes, strides, 0, dtype);
}

template <class M>
Tensor take_over(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw nb::python_error();
  bool is_writable = true;
  if constexpr (std::is_same_v<M, dlpack::ManagedVersioned>) {
    check(managed->version.major == 1, "from_dlpack: version ", managed->version.major, " of DLPack is not known");
    is_writable = !(managed->flags & dlpack::kReadOnly);
  }
  PyCapsule_SetName(capsule, used);
  PyCapsule_SetDestructor(capsule, nullptr);
  return tensor_over(managed->tensor, is_writable, [managed] {
    if (!managed->deleter) return;
    // Deleters of Python libraries release Python objects, so they need the GIL.
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire gil;
    managed->deleter(managed);
  });
}

// The stream on which this thread goes on with memory of a CUDA device, for whoever makes it ready; otherwise None.
nb::object stream_for(nb::handle source) {
  if (!nb::hasattr(source, "__dlpack_device__")) return nb::none();
  const nb::object place = source.attr("__dlpack_device__")();
  if (read_int(nb::object(place[0]).ptr()) != 2) return nb::none();
  const auto index = static_cast<int8_t>(read_int(nb::object(place[1]).ptr()));
  return nb::int_(reinterpret_cast<uintptr_t>(current_stream(Device{kCUDA, index}).handle()));
}

nb::object from_dlpack(nb::handle source) {
  nb::object capsule;
  if (PyCapsule_CheckExact(source.ptr())) {
    capsule = nb::borrow(source);
  } else {
    if (!nb::hasattr(source, "__dlpack__")) throw nb::type_error("from_dlpack: expected an object with __dlpack__ or a capsule");
    const nb::object stream = stream_for(source);
    // Libraries older than DLPack 1.0 do not know max_version.
    try {
      capsule = source.attr("__dlpack__")(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_TypeError)) throw;
      capsule = stream.is_none() ? source.attr("__dlpack__")() : source.attr("__dlpack__")(nb::arg("stream") = stream);
    }
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    return wrap(take_over<dlpack::ManagedVersioned>(capsule.ptr(), "dltensor_versioned", "used_dltensor_versioned"));
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    fail(ErrorCode::kInvalidArgument, "from_dlpack: the capsule holds no tensor, or it was used already");
  }
  return wrap(take_over<dlpack::Managed>(capsule.ptr(), "dltensor", "used_dltensor"));
}

}  // namespace

void bind_dlpack(nb::module_& module) {
  module.def("_to_dlpack", to_dlpack, nb::arg("tensor"), nb::arg("stream").none(), nb::arg("max_version").none(),
             nb::arg("dl_device").none(), nb::arg("copy").none());
  module.def("_dlpack_device", [](const Tensor& x) {
    return nb::make_tuple(dlpack_type(x.device()), static_cast<int>(x.device().index));
  });
  module.def("from_dlpack", from_dlpack, nb::arg("source"), "A tensor over the memory of another library's.");
}

}  // namespace tensord::python
