#pragma once

#include <vector>

#include "python/binding/python.h"

namespace tensord::python {

// The type slots of Tensor.
void add_operator_slots(std::vector<PyType_Slot>& slots);  // tensor_operators.cpp
void add_index_slots(std::vector<PyType_Slot>& slots);     // indexing.cpp
void add_buffer_slots(std::vector<PyType_Slot>& slots);    // memory.cpp

}  // namespace tensord::python
