#include "core/tensor/tensor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/binding/constants.h"
#include "python/binding/convert.h"
#include "python/binding/memory.h"
#include "python/binding/operator.h"
#include "python/binding/run_op.h"
#include "python/binding/size.h"
#include "python/binding/tensor_slots.h"
#include "python/binding/trace.h"
#include "core/autograd/storage_changes.h"
#include "core/tensor/complex.h"

namespace tensord::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* device_type = nullptr;

void refuse_uninitialized(PyObject* object) {
  fail(ErrorCode::kInvalidArgument, "an uninitialized tensor (", class_of(object), ") was used; call its lazy module once before");
}

nb::object wrap(Tensor tensor) {
  if (!tensor.defined()) return nb::none();
  nb::object out = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  new (nb::inst_ptr<Tensor>(out)) Tensor(std::move(tensor));
  nb::inst_mark_ready(out);
  return out;
}

nb::object wrap(const std::vector<Tensor>& tensors) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    set_tuple_item(out.ptr(), i, wrap(tensors[i]).release().ptr());
  }
  return out;
}

namespace {

// Copies a tensor to host memory to read its elements.
Tensor on_host(const Tensor& x) {
  if (!x.is_strided()) {
    const bool is_quantized = x.impl()->layout == Functionality::kQuantized;
    fail(ErrorCode::kUnimplemented, "a ", is_quantized ? "quantized" : "sparse", " tensor (", describe(x),
         ") has no elements to read; take ", is_quantized ? "dequantize()" : "to_dense()");
  }
  check(!x.is_meta(), "a meta tensor has no data");
  if (x.device().kind == DeviceKind::kCPU) return x;
  static const ops::Op& cpu = ops::get_op("aten::cpu");
  return run_op(cpu, {x});
}

template <class T>
nb::object element(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return nb::bool_(value);
  } else if constexpr (std::is_integral_v<T>) {
    return nb::int_(static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    return nb::steal(PyComplex_FromDoubles(static_cast<double>(value.real()), static_cast<double>(value.imag())));
  } else {
    return nb::float_(static_cast<double>(static_cast<float>(value)));
  }
}
template <>
nb::object element<double>(const double& value) {
  return nb::float_(value);
}

template <class T>
nb::object nested_list(const Tensor& x, int64_t dim, const T* at) {
  if (dim == x.ndim()) return element<T>(*at);
  const auto d = static_cast<size_t>(dim);
  nb::object out = nb::steal(PyList_New(x.sizes()[d]));
  for (int64_t i = 0; i < x.sizes()[d]; ++i) {
    PyList_SetItem(out.ptr(), i, nested_list(x, dim + 1, at + i * x.strides()[d]).release().ptr());
  }
  return out;
}

nb::object to_list(const Tensor& given) {
  record_values_read();
  const Tensor x = on_host(given);
  return dispatch_any(x.dtype(), "tolist", [&]<class T>() {
    return x.numel() == 0 && x.ndim() == 1 ? nb::object(nb::list()) : nested_list<T>(x, 0, x.data<T>());
  });
}

nb::object item(const Tensor& x) {
  record_values_read();
  if (x.numel() != 1) {
    fail(ErrorCode::kInvalidArgument, "item: only tensors with one element can be converted to a number, not one of ", x.numel(),
         " elements");
  }
  return to_python(Value(Value(x).to_scalar()));
}

// x.data = y: gives the tensor other memory without recording it for autograd.
void set_data(const Tensor& x, const Tensor& value) {
  refuse_in_trace("an assignment to data");
  check(!x.impl()->is_inference || is_inference_mode(), "data: a tensor of inference mode, or of a model that was not loaded "
        "with trainable=True, cannot be given other memory");
  check(x.dtype() == value.dtype(), "data: expected ", name_of(x.dtype()), ", got ", name_of(value.dtype()));
  autograd::take_memory(x, value);
}

void init(Tensor* self, nb::handle data) {
  if (is_tensor(data.ptr())) {
    new (self) Tensor(tensor_in(data.ptr()));
  } else {
    new (self) Tensor(make_tensor(data, DType::kFloat32));
  }
}

nb::object transposed(const Tensor& x, const char* what) {
  static const ops::Op& transpose = ops::get_op("aten::transpose.int");
  check(x.ndim() >= 2, what, ": expected a tensor of at least 2 dimensions, got ", x.ndim());
  return wrap(run_op(transpose, {x, int64_t{-2}, int64_t{-1}}));
}

nb::object reversed(const Tensor& x) {
  static const ops::Op& permute = ops::get_op("aten::permute");
  Dims dims;
  for (int64_t i = x.ndim(); i-- > 0;) dims.push_back(i);
  return wrap(run_op(permute, {x, ops::make_int_list(dims)}));
}

int64_t rank(const Tensor& x) {
  record_read(x, jit::TensorRead::kRank);
  return x.ndim();
}

DType dtype_read(const Tensor& x) {
  record_read(x, jit::TensorRead::kDType);
  return x.dtype();
}

void bind_shape(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro("shape", [](const Tensor& x) {
    record_sizes_read(x);
    return size_object(x.sizes());
  });
  tensor.def_prop_ro("ndim", rank);
  tensor.def("dim", rank);
  tensor.def("ndimension", rank);
  tensor.def("numel", [](const Tensor& x) {
    record_sizes_read(x);
    return x.numel();
  });
  tensor.def("nelement", [](const Tensor& x) {
    record_sizes_read(x);
    return x.numel();
  });
  tensor.def("size", [](const Tensor& x) {
    record_sizes_read(x);
    return size_object(x.sizes());
  });
  tensor.def("size", [](const Tensor& x, int64_t dim) {
    record_sizes_read(x);
    return x.size(dim);
  }, nb::arg("dim"));
  tensor.def("stride", [](const Tensor& x) {
    record_read(x, jit::TensorRead::kStrides);
    return int_tuple(x.strides());
  });
  tensor.def("stride", [](const Tensor& x, int64_t dim) {
    record_read(x, jit::TensorRead::kStrides);
    return x.stride(dim);
  }, nb::arg("dim"));
  tensor.def("storage_offset", [](const Tensor& x) { return x.offset(); });
  tensor.def("element_size", [](const Tensor& x) { return size_of(dtype_read(x)); });
  tensor.def_prop_ro("itemsize", [](const Tensor& x) { return size_of(dtype_read(x)); });
  tensor.def_prop_ro("nbytes", [](const Tensor& x) {
    record_sizes_read(x);
    return static_cast<size_t>(x.numel()) * size_of(dtype_read(x));
  });
  tensor.def("data_ptr", [](const Tensor& x) {
    record_values_read();
    return x.numel() == 0 ? uintptr_t{0} : reinterpret_cast<uintptr_t>(x.raw_data());
  });
  tensor.def_prop_ro("T", reversed);
  tensor.def_prop_ro("mT", [](const Tensor& x) { return transposed(x, "mT"); });
}

void bind_kind(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro("dtype", [](const Tensor& x) { return dtype_object(dtype_read(x)); });
  tensor.def_prop_ro("device", [](const Tensor& x) { return nb::cast(x.device()); });
  tensor.def_prop_ro("layout", [](const Tensor& x) {
    const ops::SparsePtr sparse = ops::as_sparse(x);
    return constant_object(ConstantKind::kLayout, sparse ? static_cast<int64_t>(sparse->sparse_layout()) : 0);
  });
  tensor.def_prop_ro("is_sparse", [](const Tensor& x) {
    const ops::SparsePtr sparse = ops::as_sparse(x);
    return sparse && sparse->is_coo();
  });
  tensor.def_prop_ro("is_quantized", [](const Tensor& x) { return x.impl()->layout == Functionality::kQuantized; });
  tensor.def_prop_ro("is_cuda", [](const Tensor& x) { return x.device().kind == DeviceKind::kCUDA; });
  tensor.def_prop_ro("is_meta", [](const Tensor& x) { return x.is_meta(); });
  tensor.def_prop_ro("_version", [](const Tensor& x) { return x.version(); });
  tensor.def("is_writable", [](const Tensor& x) { return !x.is_meta() && x.storage()->is_writable(); },
             "Whether operators may write it: not where it lies over a read-only array.");
}

}  // namespace

void bind_tensor(nb::module_& module) {
  bind_size(module);
  static std::vector<PyType_Slot> slots;
  add_operator_slots(slots);
  add_index_slots(slots);
  add_buffer_slots(slots);
  slots.push_back({0, nullptr});
  auto tensor = nb::class_<Tensor>(module, "Tensor", nb::type_slots(slots.data()), nb::is_weak_referenceable());
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor.def("__init__", init, nb::arg("data"));
  bind_shape(tensor);
  bind_kind(tensor);
  tensor.def("item", item);
  tensor.def("tolist", to_list);
  tensor.def("is_same", [](const Tensor& x, const Tensor& other) { return x.is_same(other); }, nb::arg("other"),
             "Whether both are one and the same tensor, not only equal.");
  tensor.def_prop_rw(
      "data", [](const Tensor& x) {
        static const ops::Op& detach = ops::get_op("aten::detach");
        return wrap(run_op(detach, {x}));
      },
      set_data);
}

}  // namespace tensord::python
