#pragma once

#include "python/binding/python.h"
#include "core/ops/schema.h"

// Values between Python and the engine, by the types that schemas have.
namespace tensord::python {

enum class ParamKind : uint8_t {
  kTensor, kNumber, kInt, kFloat, kBool, kComplex, kString, kDType, kLayout, kMemoryFormat, kDevice, kGenerator, kList, kAny,
  kUnsupported
};

// A parameter's type, so that a call asks no shared pointers.
struct ParamType {
  ParamKind kind = ParamKind::kUnsupported;
  bool is_optional = false;
  ParamKind element = ParamKind::kUnsupported;  // of a list
  bool is_element_optional = false;
  int64_t fixed_size = 0;      // of int[N]: one number stands for N of them
  ops::TypePtr element_type;  // of a list, for the engine
};
ParamType param_type(const ops::Argument& argument);

// How well a Python object fits: not at all; by a conversion (a 0-d tensor for a number, int for float); as it is.
enum class Fit : int8_t { kNo, kConverted, kExact };
Fit fit(const ParamType& type, PyObject* object);
// REQUIRES: fit() is not kNo. Throws Error or python_error for numbers that are too large.
Value to_value(const ParamType& type, PyObject* object);

// Whatever Python object the engine has a value for: None, numbers, str, tensors, dtypes, devices, lists, tuples, dicts.
// Throws TypeError naming the class of another.
Value to_value(PyObject* object);
// `argument`: what the schema says of a return; may be null.
nb::object to_python(const Value& value, const ops::Argument* argument = nullptr);
nb::object to_python(const Value& value, const std::string& enum_name);

// An integer as Python's operator.index gives it; throws python_error.
int64_t read_int(PyObject* object);
inline bool is_plain_int(PyObject* object) { return PyLong_Check(object) && !PyBool_Check(object); }
// int, or something with __index__ that is no bool and no tensor of floats.
bool is_index(PyObject* object);
nb::object int_tuple(std::span<const int64_t> values);
// A list or tuple (or Size) of integers.
Dims read_dims(PyObject* object);

}  // namespace tensord::python
