#include "python/binding/memory.h"

#include <cstring>
#include <memory>
#include <string_view>

#include "python/binding/constants.h"
#include "python/binding/tensor_slots.h"
#include "python/binding/trace.h"
#include "core/autograd/variable.h"
#include "core/tensor/complex.h"

// Shares memory with Python in both directions through the buffer protocol: NumPy arrays, bytes, memoryviews.
namespace tensord::python {
namespace {

DType dtype_of_format(const Py_buffer& view) {
  std::string_view format = view.format ? view.format : "B";
  const std::string whole(format);
  if (!format.empty() && (format[0] == '>' || format[0] == '!')) {
    fail(ErrorCode::kInvalidArgument, "from_numpy: numbers in foreign byte order (format '", whole,
         "'); convert them first: array.astype(array.dtype.newbyteorder('='))");
  }
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  if (format == "?") return DType::kBool;
  if (format == "e") return DType::kFloat16;
  if (format == "f") return DType::kFloat32;
  if (format == "d") return DType::kFloat64;
  if (format == "Zf") return DType::kComplex64;
  if (format == "Zd") return DType::kComplex128;
  if (format == "B" || format == "c") return DType::kUInt8;
  if (format.size() == 1 && std::string_view("bhilqn").find(format[0]) != std::string_view::npos) {
    switch (view.itemsize) {
      case 1: return DType::kInt8;
      case 2: return DType::kInt16;
      case 4: return DType::kInt32;
      case 8: return DType::kInt64;
      default: break;
    }
  }
  fail(ErrorCode::kUnimplemented, "from_numpy: there is no dtype for elements of format '", whole, "' and ", view.itemsize,
       " bytes; there are bool, uint8, int8 to int64, float16 to float64, complex64 and complex128");
}

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt8: return "B";
    case DType::kInt8: return "b";
    case DType::kInt16: return "h";
    case DType::kInt32: return "i";
    case DType::kInt64: return "q";
    case DType::kFloat16: return "e";
    case DType::kFloat32: return "f";
    case DType::kFloat64: return "d";
    case DType::kComplex64: return "Zf";
    case DType::kComplex128: return "Zd";
    case DType::kBool: return "?";
    default: return nullptr;
  }
}

struct BufferOwner {
  Py_buffer view{};
  ~BufferOwner() {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view);
  }
};

// The memory of an exported buffer. The storage stays alive even if the tensor gets another one (out=, set_).
struct Exported {
  Storage storage;
  std::vector<Py_ssize_t> sizes, strides;
};

void fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& x = tensor_in(self);
  check(!autograd::requires_grad(x), "numpy: the tensor requires a gradient; use tensor.detach().numpy()");
  check(x.device().kind == DeviceKind::kCPU, "numpy: the tensor is on ", to_string(x.device()),
        "; use tensor.cpu() to copy it to host memory first");
  check(!x.is_meta(), "numpy: a meta tensor has no data");
  const char* format = format_of(x.dtype());
  if (!format) {
    PyErr_Format(PyExc_TypeError, "numpy: NumPy has no %s; use tensor.float() or DLPack", name_of(x.dtype()));
    throw nb::python_error();
  }
  const bool is_read_only = !x.storage()->is_writable();
  check(!(flags & PyBUF_WRITABLE) || !is_read_only, "numpy: the tensor's memory is read-only");
  const bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const bool wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  check((wants_strides && !wants_c) || x.is_contiguous(), "numpy: the tensor is not contiguous");
  auto exported = std::make_unique<Exported>();
  exported->storage = x.storage();
  const auto item = static_cast<Py_ssize_t>(size_of(x.dtype()));
  for (int64_t i = 0; i < x.ndim(); ++i) {
    exported->sizes.push_back(x.sizes()[static_cast<size_t>(i)]);
    exported->strides.push_back(x.strides()[static_cast<size_t>(i)] * item);
  }
  static char nothing;
  view->buf = x.numel() == 0 ? &nothing : x.raw_data();
  view->len = static_cast<Py_ssize_t>(x.size_bytes());
  view->itemsize = item;
  view->readonly = is_read_only;
  view->ndim = static_cast<int>(x.ndim());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? exported->sizes.data() : nullptr;
  view->strides = wants_strides ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = Py_NewRef(self);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  record_values_read();
  try {
    fill_buffer(self, view, flags);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

}  // namespace

bool has_buffer(nb::handle object) { return PyObject_CheckBuffer(object.ptr()) == 1; }

Tensor tensor_over_buffer(nb::handle object) {
  auto owner = std::make_shared<BufferOwner>();
  if (PyObject_GetBuffer(object.ptr(), &owner->view, PyBUF_FULL_RO) != 0) throw nb::python_error();
  const Py_buffer& view = owner->view;
  const DType dtype = dtype_of_format(view);
  check(!view.suboffsets, "from_numpy: memory behind pointers is not supported");
  Dims sizes, strides;
  int64_t last = 0, count = 1;
  for (int i = 0; i < view.ndim; ++i) {
    const Py_ssize_t size = view.shape ? view.shape[i] : view.len / view.itemsize;
    const Py_ssize_t stride = view.strides ? view.strides[i] : view.itemsize;
    check(stride >= 0 || size < 2, "from_numpy: negative strides are not supported; copy the array first: array.copy()");
    check(stride % view.itemsize == 0, "from_numpy: strides must be whole elements, got ", stride, " bytes for elements of ",
          view.itemsize);
    sizes.push_back(size);
    strides.push_back(size < 2 ? 1 : stride / view.itemsize);
    last += (size - 1) * strides.back();
    count *= size;
  }
  const size_t bytes = count == 0 ? 0 : static_cast<size_t>(last + 1) * static_cast<size_t>(view.itemsize);
  void* data = view.buf;
  const bool is_writable = !view.readonly;
  Storage storage = wrap_storage(data, bytes, [owner] {}, {}, is_writable);
  owner.reset();
  return Tensor::from_storage(std::move(storage), sizes, strides, 0, dtype);
}

void add_buffer_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)});
  slots.push_back({Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)});
}

void bind_memory(nb::module_& module) {
  // For pickling: also supports dtypes that NumPy does not have.
  module.def("_as_bytes", [](const Tensor& x) {
    check(x.is_contiguous() && !x.is_meta(), "_as_bytes: the tensor is not contiguous");
    const Dims sizes{static_cast<int64_t>(x.size_bytes())}, strides{1};
    return wrap(Tensor::from_storage(x.storage(), sizes, strides, x.offset() * static_cast<int64_t>(size_of(x.dtype())),
                                     DType::kUInt8));
  });
  module.def("from_numpy", [](nb::handle array) { return wrap(tensor_over_buffer(array)); }, nb::arg("array").none(),
             "A tensor over an array's memory: changes on one side are seen on the other.");
  module.def(
      "frombuffer",
      [](nb::handle buffer, nb::handle dtype, int64_t count, int64_t offset) {
        DType wanted;
        if (!read_dtype(dtype.ptr(), &wanted)) throw nb::type_error("frombuffer(): argument 'dtype' must be a dtype");
        const nb::object bytes = nb::module_::import_("builtins").attr("memoryview")(buffer).attr("cast")("B");
        const Tensor raw = tensor_over_buffer(bytes);
        const auto item = static_cast<int64_t>(size_of(wanted));
        check(offset >= 0 && offset <= raw.numel(), "frombuffer: offset ", offset, " is outside of ", raw.numel(), " bytes");
        check(reinterpret_cast<uintptr_t>(raw.raw_data()) % static_cast<size_t>(item) == 0,
              "frombuffer: the memory is not aligned for ", name_of(wanted));
        const int64_t max = (raw.numel() - offset) / item;
        if (count < 0) {
          check((raw.numel() - offset) % item == 0, "frombuffer: ", raw.numel() - offset, " bytes are not a whole number of ",
                name_of(wanted));
          count = max;
        }
        check(count <= max, "frombuffer: ", count, " elements are wanted, but the buffer has ", max);
        check(offset % item == 0, "frombuffer: offset ", offset, " is not a whole number of ", name_of(wanted));
        const Dims sizes{count}, strides{1};
        return wrap(Tensor::from_storage(raw.storage(), sizes, strides, offset / item, wanted));
      },
      nb::arg("buffer"), nb::kw_only(), nb::arg("dtype"), nb::arg("count") = -1, nb::arg("offset") = 0);
}

}  // namespace tensord::python
