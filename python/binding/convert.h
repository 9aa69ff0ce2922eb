#pragma once

#include "python/binding/python.h"
#include "core/ops/schema.h"

// Converts values between Python and the engine, by the types of schemas.
namespace tensord::python {

enum class ParamKind : uint8_t {
  kTensor, kNumber, kInt, kFloat, kBool, kComplex, kString, kDType, kLayout, kMemoryFormat, kDevice, kGenerator, kList, kAny,
  kUnsupported
};

// The type of a parameter, without shared pointers for fast calls.
struct ParamType {
  ParamKind kind = ParamKind::kUnsupported;
  bool is_optional = false;
  ParamKind element = ParamKind::kUnsupported;  // for a list
  bool is_element_optional = false;
  int64_t fixed_size = 0;      // for int[N]: one number stands for N equal ones
  ops::TypePtr element_type;  // element type of a list, for the engine
};
ParamType param_type(const ops::Argument& argument);

// How a Python object matches a parameter: not at all, by a conversion (a 0-D tensor for a number, int for float), or
// exactly.
enum class Fit : int8_t { kNo, kConverted, kExact };
Fit fit(const ParamType& type, PyObject* object);
// REQUIRES: fit() is not kNo. Throws Error or python_error if a number is too large.
Value to_value(const ParamType& type, PyObject* object);

// Converts any Python object that the engine has a value for: None, numbers, str, tensors, dtypes, devices, lists,
// tuples, dicts. Throws TypeError naming any other class.
Value to_value(PyObject* object);
// `argument`: the return in the schema; may be null.
nb::object to_python(const Value& value, const ops::Argument* argument = nullptr);
nb::object to_python(const Value& value, const std::string& enum_name);

// Converts an integer as Python's operator.index does. Throws python_error.
int64_t read_int(PyObject* object);
inline bool is_plain_int(PyObject* object) { return PyLong_Check(object) && !PyBool_Check(object); }
// Whether the object is an int, or has __index__ and is neither a bool nor a floating-point tensor.
bool is_index(PyObject* object);
nb::object int_tuple(std::span<const int64_t> values);
// Reads a list or tuple (or Size) of integers.
Dims read_dims(PyObject* object);

}  // namespace tensord::python
