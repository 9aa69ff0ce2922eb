#include "python/binding/convert.h"

#include "python/binding/constants.h"
#include "python/binding/trace.h"
#include "core/ops/sparse.h"

namespace tensord::python {
namespace {

using ops::TypeKind;

ParamKind kind_of(const ops::Type& type, const std::string& enum_name) {
  switch (type.kind()) {
    case TypeKind::kTensor: return ParamKind::kTensor;
    case TypeKind::kNumber: return ParamKind::kNumber;
    case TypeKind::kInt:
      if (enum_name == "ScalarType") return ParamKind::kDType;
      if (enum_name == "Layout") return ParamKind::kLayout;
      if (enum_name == "MemoryFormat") return ParamKind::kMemoryFormat;
      return ParamKind::kInt;
    case TypeKind::kFloat: return ParamKind::kFloat;
    case TypeKind::kBool: return ParamKind::kBool;
    case TypeKind::kComplex: return ParamKind::kComplex;
    case TypeKind::kString: return ParamKind::kString;
    case TypeKind::kDevice: return ParamKind::kDevice;
    case TypeKind::kGenerator: return ParamKind::kGenerator;
    case TypeKind::kAny: return ParamKind::kAny;
    default: return ParamKind::kUnsupported;
  }
}

// Whether a tensor may stand for a number: it is 0-D.
bool is_number_tensor(PyObject* object) { return is_tensor(object) && tensor_in(object).ndim() == 0; }

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// Whether an object is a number of NumPy or another class with __float__.
bool has_float(PyObject* object) {
  return PyType_GetSlot(Py_TYPE(object), Py_nb_float) && !PyLong_Check(object) && !is_tensor(object) && !is_sequence(object) &&
         !PyObject_HasAttrString(object, "__array_interface__");
}
bool is_numpy_scalar(PyObject* object) {
  // NumPy scalars have these attributes and no dimensions.
  return PyType_GetSlot(Py_TYPE(object), Py_nb_float) && PyObject_HasAttrString(object, "dtype") && PyObject_HasAttrString(object, "item") &&
         !is_tensor(object) && PyObject_HasAttrString(object, "ndim") &&
         read_int(nb::handle(object).attr("ndim").ptr()) == 0;
}

Fit fit_element(ParamKind kind, PyObject* object) {
  switch (kind) {
    case ParamKind::kTensor: return is_tensor(object) ? Fit::kExact : Fit::kNo;
    case ParamKind::kNumber:
    case ParamKind::kComplex:
      if (PyFloat_CheckExact(object) || PyLong_Check(object) || PyComplex_Check(object)) return Fit::kExact;
      if (PyFloat_Check(object)) return Fit::kExact;
      if (is_number_tensor(object) || is_numpy_scalar(object)) return Fit::kConverted;
      return Fit::kNo;
    case ParamKind::kInt:
      if (is_plain_int(object)) return Fit::kExact;
      return constant_in(object) || is_index(object) ? Fit::kConverted : Fit::kNo;
    case ParamKind::kFloat:
      if (PyFloat_Check(object)) return Fit::kExact;
      if (PyLong_Check(object) || is_number_tensor(object) || has_float(object)) return Fit::kConverted;
      return Fit::kNo;
    case ParamKind::kBool:
      if (PyBool_Check(object)) return Fit::kExact;
      return is_numpy_scalar(object) ? Fit::kConverted : Fit::kNo;
    case ParamKind::kString: return PyUnicode_Check(object) ? Fit::kExact : Fit::kNo;
    case ParamKind::kDType: {
      DType dtype;
      return read_dtype(object, &dtype) ? Fit::kExact : Fit::kNo;
    }
    case ParamKind::kLayout: return constant_in(object, ConstantKind::kLayout) ? Fit::kExact : Fit::kNo;
    case ParamKind::kMemoryFormat: return constant_in(object, ConstantKind::kMemoryFormat) ? Fit::kExact : Fit::kNo;
    case ParamKind::kDevice:
      return Py_TYPE(object) == device_type || PyUnicode_Check(object) ? Fit::kExact : Fit::kNo;
    case ParamKind::kGenerator: return Fit::kNo;
    case ParamKind::kAny: return Fit::kConverted;
    default: return Fit::kNo;
  }
}

Fit fit_list(const ParamType& type, PyObject* object) {
  if (!is_sequence(object)) {
    if (type.fixed_size == 0) return Fit::kNo;
    return fit_element(type.element, object) == Fit::kNo ? Fit::kNo : Fit::kConverted;
  }
  Fit worst = Fit::kExact;
  const Py_ssize_t count = sequence_size(object);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = sequence_item(object, i);
    if (type.is_element_optional && item == Py_None) continue;
    const Fit one = fit_element(type.element, item);
    if (one == Fit::kNo) return Fit::kNo;
    worst = std::min(worst, one);
  }
  return worst;
}

double read_float(PyObject* object) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

Value read_number(PyObject* object) {
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (PyLong_Check(object)) return Value(read_int(object));
  if (PyFloat_Check(object)) return Value(PyFloat_AsDouble(object));
  if (PyComplex_Check(object)) {
    return Value(std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  }
  if (is_tensor(object)) {
    record_values_read();
    return Value(Value(tensor_in(object)).to_scalar());
  }
  const nb::object plain = nb::handle(object).attr("item")();
  return read_number(plain.ptr());
}

std::string read_string(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw nb::python_error();
  return {text, static_cast<size_t>(size)};
}

Value read_element(ParamKind kind, PyObject* object) {
  switch (kind) {
    case ParamKind::kTensor: return Value(tensor_in(object));
    case ParamKind::kNumber: return read_number(object);
    case ParamKind::kComplex: return Value(read_number(object).to_complex());
    case ParamKind::kInt:
      if (const Constant* constant = constant_in(object)) return Value(constant->number);
      return Value(read_int(object));
    case ParamKind::kFloat:
      if (is_tensor(object)) {
        record_values_read();
        return Value(tensor_in(object).item_double());
      }
      return Value(read_float(object));
    case ParamKind::kBool:
      if (PyBool_Check(object)) return Value(object == Py_True);
      return Value(PyObject_IsTrue(object) == 1);
    case ParamKind::kString: return Value(read_string(object));
    case ParamKind::kDType: {
      DType dtype = DType::kFloat32;
      read_dtype(object, &dtype);
      return Value(dtype);
    }
    case ParamKind::kLayout:
    case ParamKind::kMemoryFormat: return Value(constant_in(object)->number);
    case ParamKind::kDevice:
      if (PyUnicode_Check(object)) return Value(parse_device(read_string(object)));
      return Value(*nb::inst_ptr<Device>(nb::handle(object)));
    default: return to_value(object);
  }
}

Value list_value(PyObject* object) {
  std::vector<Value> items;
  const Py_ssize_t count = sequence_size(object);
  for (Py_ssize_t i = 0; i < count; ++i) items.push_back(to_value(sequence_item(object, i)));
  if (PyTuple_Check(object)) return ops::make_tuple(std::move(items));
  ops::TypePtr element = items.empty() ? ops::tensor_type() : ops::type_of(items.front());
  for (const Value& item : items) {
    element = element ? ops::unify(element, ops::type_of(item)) : element;
  }
  return ops::make_list(element ? element : ops::any_type(), std::move(items));
}

Value dict_value(PyObject* object) {
  std::vector<std::pair<Value, Value>> items;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) items.emplace_back(to_value(key), to_value(value));
  ops::TypePtr keys = items.empty() ? ops::string_type() : ops::type_of(items.front().first);
  ops::TypePtr values = items.empty() ? ops::any_type() : ops::type_of(items.front().second);
  for (const auto& [k, v] : items) {
    keys = keys ? ops::unify(keys, ops::type_of(k)) : keys;
    values = values ? ops::unify(values, ops::type_of(v)) : values;
  }
  ops::Dict dict = make_intrusive<ops::DictObject>(keys ? keys : ops::any_type(), values ? values : ops::any_type());
  for (auto& [k, v] : items) dict->set(std::move(k), std::move(v));
  return dict;
}

}  // namespace

ParamType param_type(const ops::Argument& argument) {
  ParamType out;
  const ops::Type* type = argument.type.get();
  if (type->kind() == TypeKind::kOptional) {
    out.is_optional = true;
    type = type->element().get();
  }
  if (type->kind() != TypeKind::kList) {
    out.kind = kind_of(*type, argument.enum_name);
    return out;
  }
  out.element_type = type->element();
  const ops::Type* element = type->element().get();
  if (element->kind() == TypeKind::kOptional) {
    out.is_element_optional = true;
    element = element->element().get();
  }
  out.element = kind_of(*element, argument.enum_name);
  out.fixed_size = argument.fixed_list_size;
  if (out.element != ParamKind::kUnsupported) out.kind = ParamKind::kList;
  return out;
}

Fit fit(const ParamType& type, PyObject* object) {
  if (object == Py_None) return type.is_optional || type.kind == ParamKind::kGenerator ? Fit::kExact : Fit::kNo;
  return type.kind == ParamKind::kList ? fit_list(type, object) : fit_element(type.kind, object);
}

Value to_value(const ParamType& type, PyObject* object) {
  if (object == Py_None) return {};
  if (type.kind != ParamKind::kList) return read_element(type.kind, object);
  std::vector<Value> items;
  if (is_sequence(object)) {
    const Py_ssize_t count = sequence_size(object);
    items.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = sequence_item(object, i);
      items.push_back(item == Py_None ? Value() : read_element(type.element, item));
    }
  } else {
    items.assign(static_cast<size_t>(type.fixed_size), read_element(type.element, object));
  }
  return ops::make_list(type.element_type, std::move(items));
}

Value to_value(PyObject* object) {
  if (object == Py_None) return {};
  if (is_tensor(object)) return Value(tensor_in(object));
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return read_number(object);
  if (PyUnicode_Check(object)) return Value(read_string(object));
  if (const Constant* constant = constant_in(object)) return Value(constant->number);
  if (Py_TYPE(object) == device_type) return Value(*nb::inst_ptr<Device>(nb::handle(object)));
  if (is_sequence(object)) return list_value(object);
  if (PyDict_Check(object)) return dict_value(object);
  if (is_numpy_scalar(object)) return read_number(object);
  PyErr_Format(PyExc_TypeError, "the engine has no value for an object of class %s", class_of(object).c_str());
  throw nb::python_error();
}

nb::object to_python(const Value& value, const std::string& enum_name) {
  if (value.is_int()) {
    if (enum_name == "ScalarType") return constant_object(ConstantKind::kDType, value.to_int());
    if (enum_name == "MemoryFormat") return constant_object(ConstantKind::kMemoryFormat, value.to_int());
    if (enum_name == "Layout") return constant_object(ConstantKind::kLayout, value.to_int());
    return nb::int_(value.to_int());
  }
  switch (value.tag()) {
    case Value::Tag::kNone: return nb::none();
    case Value::Tag::kTensor: return wrap(value.to_tensor());
    case Value::Tag::kBool: return nb::bool_(value.to_bool());
    case Value::Tag::kFloat: return nb::float_(value.to_float());
    case Value::Tag::kString: return nb::str(value.to_string().c_str(), value.to_string().size());
    case Value::Tag::kDevice: return nb::cast(value.to_device());
    case Value::Tag::kComplex: {
      const auto number = value.to_complex();
      return nb::steal(PyComplex_FromDoubles(number.real(), number.imag()));
    }
    case Value::Tag::kList: {
      nb::list out;
      for (const Value& item : value.to_list()->items) out.append(to_python(item, enum_name));
      return out;
    }
    case Value::Tag::kTuple: {
      const auto& items = value.to_tuple()->items;
      nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
      for (size_t i = 0; i < items.size(); ++i) {
        set_tuple_item(out.ptr(), i, to_python(items[i], enum_name).release().ptr());
      }
      return out;
    }
    case Value::Tag::kDict: {
      nb::dict out;
      for (const auto& [key, item] : value.to_dict()->items()) out[to_python(key)] = to_python(item, enum_name);
      return out;
    }
    case Value::Tag::kOpaque:
      if (const auto* held = dynamic_cast<HeldObject*>(value.to_opaque().get())) return nb::borrow(held->held.get());
      break;
    default: break;
  }
  PyErr_Format(PyExc_TypeError, "Python has no object for a value of type %s", ops::type_of(value)->str().c_str());
  throw nb::python_error();
}

nb::object to_python(const Value& value, const ops::Argument* argument) {
  static const std::string kNoName;
  return to_python(value, argument ? argument->enum_name : kNoName);
}

int64_t read_int(PyObject* object) {
  if (!PyLong_CheckExact(object)) {
    const nb::object number = nb::steal(PyNumber_Index(object));
    if (!number.is_valid()) throw nb::python_error();
    return read_int(number.ptr());
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) {
    PyErr_SetString(PyExc_OverflowError, "an integer does not fit into int64");
    throw nb::python_error();
  }
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

bool is_index(PyObject* object) {
  if (PyLong_Check(object)) return !PyBool_Check(object);
  if (is_tensor(object)) {
    const Tensor& tensor = tensor_in(object);
    return tensor.numel() == 1 && tensor.ndim() == 0 && is_integral(tensor.dtype(), false);
  }
  return PyIndex_Check(object) && !PyObject_HasAttrString(object, "__len__");
}

nb::object int_tuple(std::span<const int64_t> values) {
  PyObject* out = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
  if (!out) throw nb::python_error();
  for (size_t i = 0; i < values.size(); ++i) set_tuple_item(out, i, PyLong_FromLongLong(values[i]));
  return nb::steal(out);
}

Dims read_dims(PyObject* object) {
  Dims out;
  if (is_index(object)) {
    out.push_back(read_int(object));
    return out;
  }
  const nb::object items = nb::steal(PySequence_Fast(object, "expected a list or tuple of integers"));
  if (!items.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < sequence_size(items.ptr()); ++i) {
    out.push_back(read_int(sequence_item(items.ptr(), i)));
  }
  return out;
}

}  // namespace tensord::python
