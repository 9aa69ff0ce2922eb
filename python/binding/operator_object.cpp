#include <nanobind/stl/string.h>
#include <structmember.h>

#include <algorithm>
#include <map>

#include "python/binding/operator.h"

// The Python type of operators. Calls make no tuples (vectorcall); in a class it binds as a method.
namespace tensord::python {
namespace {

struct OperatorObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  const Operator* op;
};

PyObject* call_object(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return call_operator(*reinterpret_cast<OperatorObject*>(self)->op, args, static_cast<size_t>(PyVectorcall_NARGS(flags)),
                       names);
}

PyObject* get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  static PyObject* const kMethodType = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
  return PyObject_CallFunctionObjArgs(kMethodType, self, object, nullptr);
}

PyObject* name_of_object(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<OperatorObject*>(self)->op->name.c_str());
}

PyObject* qualified_name(PyObject* self, void*) { return name_of_object(self, nullptr); }

PyObject* module_name(PyObject*, void*) { return PyUnicode_FromString("tensord.engine"); }

PyObject* doc_of(PyObject* self, void*) {
  try {
    return PyUnicode_FromString(signatures_of(*reinterpret_cast<OperatorObject*>(self)->op).c_str());
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %s>", reinterpret_cast<OperatorObject*>(self)->op->name.c_str());
}

// Pickles and copies by name.
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("tensord.engine._operators");
  if (!module) return nullptr;
  PyObject* find = PyObject_GetAttrString(module, "find");
  Py_DECREF(module);
  if (!find) return nullptr;
  return Py_BuildValue("N(s)", find, ("aten::" + reinterpret_cast<OperatorObject*>(self)->op->name).c_str());
}

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyGetSetDef properties[] = {{"__name__", name_of_object, nullptr, nullptr, nullptr},
                            {"__qualname__", qualified_name, nullptr, nullptr, nullptr},
                            {"__module__", module_name, nullptr, nullptr, nullptr},
                            {"__doc__", doc_of, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(get)},
                       {Py_tp_getset, properties},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
                       {0, nullptr}};
PyType_Spec spec = {"tensord.engine.Operator", sizeof(OperatorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

PyTypeObject* operator_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw nb::python_error();
  return type;
}

const Operator* find(const std::string& name) {
  return name.find('.') == std::string::npos ? find_operator(name) : find_overload(name);
}

nb::object describe_argument(const ops::Argument& argument) {
  nb::dict out;
  out["name"] = argument.name;
  out["type"] = argument.enum_name.empty() ? argument.type->str() : argument.enum_name;
  out["is_optional"] = argument.type->kind() == ops::TypeKind::kOptional;
  out["has_default"] = argument.default_value.has_value();
  out["is_keyword_only"] = argument.is_keyword_only;
  out["fixed_size"] = argument.fixed_list_size;
  out["is_written"] = argument.alias.is_write;
  return out;
}

}  // namespace

nb::object operator_object(const Operator& op) {
  static auto* made = new std::map<const Operator*, PyObject*>();
  PyObject*& object = (*made)[&op];
  if (!object) {
    object = PyType_GenericAlloc(operator_type(), 0);
    if (!object) throw nb::python_error();
    auto* fields = reinterpret_cast<OperatorObject*>(object);
    fields->vectorcall = call_object;
    fields->op = &op;
  }
  return nb::borrow(object);
}

void bind_functions(nb::module_& module) {
  module.def("_operator_names", [] {
    nb::list out;
    for (const std::string& name : operator_names()) out.append(name);
    return out;
  });
  module.def("_operator", [](const std::string& name) -> nb::object {
    const Operator* op = find(name);
    if (!op) throw nb::attribute_error(("there is no operator " + name).c_str());
    return operator_object(*op);
  });
  // The input of the stub generator: the arguments and results of each overload.
  module.def("_schemas", [](const std::string& name) {
    nb::list out;
    const Operator* op = find(name);
    if (!op) return out;
    for (const Overload& overload : op->overloads) {
      nb::dict record;
      nb::list arguments, returns;
      for (const auto& argument : overload.op->schema.arguments) arguments.append(describe_argument(argument));
      for (const auto& result : overload.op->schema.returns) returns.append(describe_argument(result));
      record["overload"] = overload.op->schema.overload;
      record["text"] = overload.op->schema.str();
      record["arguments"] = arguments;
      record["returns"] = returns;
      record["spreads"] = overload.pack_from;
      record["is_random"] = overload.op->is_random;
      record["has_gradient"] = static_cast<bool>(overload.op->gradient) || overload.op->is_composite;
      out.append(record);
    }
    return out;
  });
  // Adds the operators whose first argument is self to Tensor, except names that Tensor already has.
  module.def("_add_methods", [](nb::handle tensor_class) {
    nb::list added;
    for (const std::string& full : operator_names()) {
      if (!full.starts_with("aten::") || full.starts_with("aten::__")) continue;
      const Operator& op = *find_operator(full);
      const auto takes_self = [](const Overload& overload) {
        return !overload.params.empty() && overload.params[0].argument->name == "self" &&
               overload.params[0].type.kind == ParamKind::kTensor;
      };
      if (!std::any_of(op.overloads.begin(), op.overloads.end(), takes_self)) continue;
      if (nb::hasattr(tensor_class, op.name.c_str())) continue;
      nb::setattr(tensor_class, op.name.c_str(), operator_object(op));
      added.append(op.name);
    }
    return added;
  });
}

}  // namespace tensord::python
