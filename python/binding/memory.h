#pragma once

#include <optional>

#include "python/binding/python.h"

namespace tensord::python {

// Makes a tensor from nested lists and tuples, an array, a tensor or a number, and copies the values. The default dtype
// is bool, int64, the default floating dtype or complex64 for Python numbers, or that of the array.
Tensor make_tensor(nb::handle data, std::optional<DType> dtype);
// Makes a tensor over the memory of an object with Python's buffer protocol (a NumPy array) and keeps the object alive.
// If the memory is read-only, operators refuse to write to the tensor. Throws Error for dtypes and strides that the
// engine does not support.
Tensor tensor_over_buffer(nb::handle object);
bool has_buffer(nb::handle object);

// The dtype of Python floats: torch.set_default_dtype.
DType default_dtype();

}  // namespace tensord::python
