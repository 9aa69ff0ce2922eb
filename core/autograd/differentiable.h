#pragma once

#include "core/tensor/dtype.h"

namespace tensord::autograd {

// Whether tensors of this dtype can have gradients.
inline bool is_differentiable(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

}  // namespace tensord::autograd
