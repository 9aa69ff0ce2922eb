#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "core/ops/value.h"
#include "core/tensor/tensor.h"

// Common declarations of the binding. nb::object holds Python objects; a raw PyObject* is borrowed unless stated
// otherwise. Functions need the GIL unless stated otherwise.
namespace tensord::python {

namespace nb = nanobind;
using ops::Value;

// Access to tuples and strings with functions of the stable ABI, or with macros in other builds.
inline size_t tuple_size(PyObject* tuple) { return static_cast<size_t>(PyTuple_Size(tuple)); }
inline PyObject* tuple_item(PyObject* tuple, size_t i) {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
#else
  return PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i));
#endif
}
// The same for a list or a tuple.
inline Py_ssize_t sequence_size(PyObject* sequence) {
  return PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence);
}
inline PyObject* sequence_item(PyObject* sequence, Py_ssize_t i) {
  return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : tuple_item(sequence, static_cast<size_t>(i));
}
// For a tuple that no one else refers to yet; takes ownership of the reference.
inline void set_tuple_item(PyObject* tuple, size_t i, PyObject* item) { PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), item); }
inline const char* utf8_of(PyObject* text) { return PyUnicode_AsUTF8AndSize(text, nullptr); }
inline std::string class_of(PyObject* object) {
  return nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__")).c_str();
}

// Set once when the module is initialized.
extern PyTypeObject* tensor_type;
extern PyTypeObject* device_type;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// For objects whose __init__ has not run, such as parameters of lazy layers.
[[noreturn]] void refuse_uninitialized(PyObject* object);
// REQUIRES: is_tensor.
inline const Tensor& tensor_in(PyObject* object) {
  const Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(object));
  if (!tensor.defined()) [[unlikely]]
    refuse_uninitialized(object);
  return tensor;
}
// A new Python object for the tensor; None for an undefined tensor.
nb::object wrap(Tensor tensor);
nb::object wrap(const std::vector<Tensor>& tensors);  // a tuple

// A Python object that C++ owns; any thread may release it.
class Held {
 public:
  explicit Held(nb::object object) : object_(new Reference{object.release().ptr()}) {}
  nb::handle get() const { return object_->object; }

 private:
  struct Reference {
    PyObject* object;
    ~Reference() {
      if (!Py_IsInitialized()) return;
      const nb::gil_scoped_acquire gil;
      Py_DECREF(object);
    }
  };
  std::shared_ptr<Reference> object_;
};

// A Python object as a value of the engine.
struct HeldObject final : ops::OpaqueObject {
  explicit HeldObject(Held held) : held(std::move(held)) {}
  std::string class_name() const override { return "Python object"; }
  const Held held;
};

// Sets Python's error from the current C++ exception. For functions that Python calls directly.
void set_python_error() noexcept;
// Runs `function` without the GIL. A Python exception raised meanwhile (in a hook, or by Ctrl-C) is thrown unchanged.
template <class Fn>
decltype(auto) without_gil(Fn&& function) {
  const nb::gil_scoped_release release;
  return function();
}

// Each adds a part of the module.
void bind_errors(nb::module_& module);
void bind_constants(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_functions(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_storage(nb::module_& module);
void bind_literals(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_cuda(nb::module_& module);
void bind_autograd(nb::module_& module);
void bind_function_class(nb::module_& module);
void bind_optim(nb::module_& module);
void bind_distributed(nb::module_& module);
void bind_models(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_planned_step(nb::module_& module);
void bind_runtime(nb::module_& module);

}  // namespace tensord::python
