#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Copies every element of `source` to `target`, converting the dtype. Both are CPU
// tensors of the same sizes with any strides; memory that is dense in both is
// copied as blocks. Runs on the caller's thread team.
void strided_copy(const Tensor& target, const Tensor& source);

}  // namespace tensord
