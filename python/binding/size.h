#pragma once

#include <span>

#include "python/binding/python.h"

namespace tensord::python {

// Shapes: tuples with numel().
nb::object size_object(std::span<const int64_t> values);
void bind_size(nb::module_& module);

}  // namespace tensord::python
