#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Copies every element of `source` to `target`, converted to its dtype: same sizes, any strides, any devices. They
// overlap wholly or not at all. On the host it is done when the call returns; else it is queued on the current stream
// of each device that takes part, and `source` may be dropped or written, in that stream, at once. What crosses between
// devices crosses as one block.
void copy_elements(const Tensor& target, const Tensor& source);

// Writes zeros all over a tensor without gaps; on a device queued as above.
void zero_elements(const Tensor& dense);

// The tensor where the host may read its elements: itself when it lies there.
inline Tensor host_copy(const Tensor& tensor) { return tensor.to(Device{}); }

}  // namespace tensord
