#pragma once

#include "python/binding/python.h"
#include "core/ops/generator.h"

namespace tensord::python {

// The generator in a Python object; null if it has none.
ops::Generator* generator_in(PyObject* object);

}  // namespace tensord::python
