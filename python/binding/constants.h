#pragma once

#include "python/binding/python.h"

// dtypes, layouts and memory formats are numbers in the engine and named objects in Python. Each exists once.
namespace tensord::python {

enum class ConstantKind : int8_t { kDType, kLayout, kMemoryFormat };

struct Constant {
  ConstantKind kind;
  int64_t number;
  const char* name;
};

// Null if the object is not a constant of this kind.
const Constant* constant_in(PyObject* object, ConstantKind kind);
// A constant of any kind.
const Constant* constant_in(PyObject* object);
nb::object dtype_object(DType dtype);
nb::object constant_object(ConstantKind kind, int64_t number);
// Reads a dtype object, or Python's type bool, int, float or complex. Returns false for anything else.
bool read_dtype(PyObject* object, DType* dtype);

}  // namespace tensord::python
