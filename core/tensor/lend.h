#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Returns a tensor that reads the bytes of `tensor` and copies them before the first write through it or a view of it,
// so that no other reader sees the write. It is for tensors with several readers: results that are passed to other
// models, weights, cached responses. The new tensor keeps the bytes alive; they must not change in the meantime. Throws
// Error for an undefined or meta tensor.
Tensor lend(const Tensor& tensor);
// The same, but writes through the new tensor are refused.
Tensor read_only(const Tensor& tensor);

}  // namespace tensord
