#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// A tensor that reads the bytes of `tensor`, and copies them before the first write through it or a view of it, so
// that nobody else sees what is written. For what several may read: results of a model that go to other models,
// weights, cached answers. The bytes are held until the new tensor goes; they must not change meanwhile.
// Throws Error of an undefined or meta tensor.
Tensor lend(const Tensor& tensor);
// The same, but what writes through it is refused.
Tensor read_only(const Tensor& tensor);

}  // namespace tensord
