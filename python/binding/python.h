#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "core/ops/value.h"
#include "core/tensor/tensor.h"

// What all units of the binding share. Python objects are held by nb::object; raw PyObject* are borrowed unless said.
// Functions want the GIL unless said.
namespace tensord::python {

namespace nb = nanobind;
using ops::Value;

// Python's tuples and names by what the stable ABI has; the macros where it is not asked for.
inline size_t tuple_size(PyObject* tuple) { return static_cast<size_t>(PyTuple_Size(tuple)); }
inline PyObject* tuple_item(PyObject* tuple, size_t i) {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
#else
  return PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i));
#endif
}
// The same of what is a list or a tuple.
inline Py_ssize_t sequence_size(PyObject* sequence) {
  return PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence);
}
inline PyObject* sequence_item(PyObject* sequence, Py_ssize_t i) {
  return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : tuple_item(sequence, static_cast<size_t>(i));
}
// For a tuple that nobody else has yet; takes the reference over.
inline void set_tuple_item(PyObject* tuple, size_t i, PyObject* item) { PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), item); }
inline const char* utf8_of(PyObject* text) { return PyUnicode_AsUTF8AndSize(text, nullptr); }
inline std::string class_of(PyObject* object) {
  return nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__")).c_str();
}

// Set once when the module is made.
extern PyTypeObject* tensor_type;
extern PyTypeObject* device_type;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// For objects whose __init__ has not run, as those of lazy layers' parameters.
[[noreturn]] void refuse_uninitialized(PyObject* object);
// REQUIRES: is_tensor.
inline const Tensor& tensor_in(PyObject* object) {
  const Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(object));
  if (!tensor.defined()) [[unlikely]]
    refuse_uninitialized(object);
  return tensor;
}
// A new Python object for the tensor; None for an undefined one.
nb::object wrap(Tensor tensor);
nb::object wrap(const std::vector<Tensor>& tensors);  // a tuple

// A Python object that C++ holds, on whatever thread it ends up.
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

// The same as a value of the engine's, for what carries values.
struct HeldObject final : ops::OpaqueObject {
  explicit HeldObject(Held held) : held(std::move(held)) {}
  std::string class_name() const override { return "Python object"; }
  const Held held;
};

// Sets Python's error from the C++ exception that is being handled; for functions that Python calls directly.
void set_python_error() noexcept;
// Runs `function` without the GIL. What Python raised meanwhile (in hooks, or by Ctrl-C) comes back as it was.
template <class Fn>
decltype(auto) without_gil(Fn&& function) {
  const nb::gil_scoped_release release;
  return function();
}

// Each adds its part to the module.
void bind_errors(nb::module_& module);
void bind_constants(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_functions(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_storage(nb::module_& module);
void bind_literals(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_autograd(nb::module_& module);
void bind_function_class(nb::module_& module);
void bind_optim(nb::module_& module);
void bind_distributed(nb::module_& module);
void bind_models(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_planned_step(nb::module_& module);
void bind_runtime(nb::module_& module);

}  // namespace tensord::python
