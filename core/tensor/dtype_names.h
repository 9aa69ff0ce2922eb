#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/dtype.h"

namespace tensord {

// PyTorch's names without "torch.": "float32", "half" → the dtype; nothing when there is no such dtype, or tensors
// cannot have it.
std::optional<DType> dtype_of_torch_name(std::string_view name);

}  // namespace tensord
