#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace tensord::server {

// The tensor that "1,3,224,224:float32" asks for; float32 when no dtype is given, and its
// first size replaced when batch > 0. Floats are spread over -1 … 1, integers over 0 … 15,
// the same on every run. Throws Error{kInvalidArgument} naming the text.
Tensor make_input(const std::string& text, int64_t batch);

}  // namespace tensord::server
