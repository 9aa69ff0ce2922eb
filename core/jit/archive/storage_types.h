#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/dtype.h"

namespace tensord::jit {

// "FloatStorage" → kFloat32; nothing when torch has no such storage class. Throws Error{kUnimplemented} naming the
// dtype of quantized storages.
std::optional<DType> dtype_of_storage_class(std::string_view name);
// The reverse. REQUIRES: a dtype that tensors can have.
const char* storage_class_of(DType dtype);

}  // namespace tensord::jit
