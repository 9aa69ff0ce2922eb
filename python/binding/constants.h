#pragma once

#include "python/binding/python.h"

// dtypes, layouts and memory formats: numbers to the engine, objects with a name to Python. There is one object of each.
namespace tensord::python {

enum class ConstantKind : int8_t { kDType, kLayout, kMemoryFormat };

struct Constant {
  ConstantKind kind;
  int64_t number;
  const char* name;
};

// Null when it is none of this kind.
const Constant* constant_in(PyObject* object, ConstantKind kind);
// Of any kind.
const Constant* constant_in(PyObject* object);
nb::object dtype_object(DType dtype);
nb::object constant_object(ConstantKind kind, int64_t number);
// A dtype object, or Python's bool, int, float or complex type. False when it is neither.
bool read_dtype(PyObject* object, DType* dtype);

}  // namespace tensord::python
