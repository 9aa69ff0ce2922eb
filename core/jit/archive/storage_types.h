#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/dtype.h"

namespace tensord::jit {

// "FloatStorage" → kFloat32. Empty if torch has no such storage class. Throws Error{kUnimplemented} naming the dtype of
// a quantized storage.
std::optional<DType> dtype_of_storage_class(std::string_view name);
// The inverse function. REQUIRES: a dtype that tensors support.
const char* storage_class_of(DType dtype);

}  // namespace tensord::jit
