#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Copies every element of `source` to `target` and converts it to its dtype. Both have the same sizes, any strides and
// any devices; they overlap wholly or not at all. A copy on the host is complete when the call returns. Any other copy
// is queued on the current stream of each device that takes part, and `source` may be dropped, or written in that
// stream, at once. Data crosses between devices as one block.
void copy_elements(const Tensor& target, const Tensor& source);

// Fills a dense tensor with zeros; on a device, the fill is queued as above.
void zero_elements(const Tensor& dense);

// The tensor in host memory; the tensor itself if it is there already.
inline Tensor host_copy(const Tensor& tensor) { return tensor.to(Device{}); }

// source.to(device), for whoever keeps the source as it is until the current stream of the device was synchronized:
// pinned memory is copied once.
Tensor send_to(const Tensor& source, Device device);

}  // namespace tensord
