#pragma once

#include <optional>

#include "python/binding/python.h"

namespace tensord::python {

// A new tensor with copies of the numbers in nested lists and tuples, of an array, a tensor or a number. Without a dtype:
// bool, int64, the default float or complex64 for Python's numbers, an array's own.
Tensor make_tensor(nb::handle data, std::optional<DType> dtype);
// A tensor over the memory of an object with Python's buffer protocol (a NumPy array), which it keeps alive. Read-only
// memory gives a tensor that operators do not write. Throws Error for what the engine has no dtype or strides for.
Tensor tensor_over_buffer(nb::handle object);
bool has_buffer(nb::handle object);

// Of floating numbers from Python: torch.set_default_dtype.
DType default_dtype();

}  // namespace tensord::python
