#include "python/binding/size.h"

namespace tensord::python {
namespace {

PyTypeObject* size_type = nullptr;

PyObject* numel(PyObject* self, PyObject*) {
  PyObject* product = PyLong_FromLong(1);
  for (size_t i = 0; product && i < tuple_size(self); ++i) {
    PyObject* next = PyNumber_Multiply(product, tuple_item(self, i));
    Py_DECREF(product);
    product = next;
  }
  return product;
}

PyObject* repr(PyObject* self) {
  PyObject* list = PySequence_List(self);
  if (!list) return nullptr;
  PyObject* out = PyUnicode_FromFormat("engine.Size(%R)", list);
  Py_DECREF(list);
  return out;
}

PyMethodDef methods[] = {{"numel", numel, METH_NOARGS, "The product of the sizes."}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_base, nullptr},
                       {Py_tp_methods, methods},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {0, nullptr}};
PyType_Spec spec = {"tensord.engine.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

nb::object size_object(std::span<const int64_t> values) {
  PyObject* out = PyType_GenericAlloc(size_type, static_cast<Py_ssize_t>(values.size()));
  if (!out) throw nb::python_error();
  for (size_t i = 0; i < values.size(); ++i) set_tuple_item(out, i, PyLong_FromLongLong(values[i]));
  return nb::steal(out);
}

void bind_size(nb::module_& module) {
  slots[0].pfunc = &PyTuple_Type;
  size_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!size_type) throw nb::python_error();
  module.attr("Size") = nb::borrow(reinterpret_cast<PyObject*>(size_type));
}

}  // namespace tensord::python
