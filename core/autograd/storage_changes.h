#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/tensor.h"

// A tensor gets other memory, or another shape over it, and stays the same tensor for all its handles. Autograd has no
// gradient of that, so what takes part in a gradient is refused with Error{kInvalidArgument}; so are tensors made in
// inference mode, for the runs of a loaded model remember where its tensors are. No other thread uses the tensor
// meanwhile.
namespace tensord::autograd {

// Row-major with these sizes, from where it begins in its storage; nothing when it has them. A storage that is too
// small makes room for a larger one, with the same bytes at its beginning and the rest uninitialized. Throws
// Error{kFailedPrecondition} when that storage has other holders (views), who would stay with the small one.
void resize_(const Tensor& tensor, const Dims& sizes);

// The memory, sizes and strides of `source`, of the same dtype and device, from now on shared with it.
void set_(const Tensor& tensor, const Tensor& source);
// These over a storage; strides and offset in elements. Throws Error when an element would lie outside of it.
void set_(const Tensor& tensor, const Storage& storage, int64_t offset, const Dims& sizes, const Dims& strides);

// The tensor's storage gets this many bytes, the first ones with what is there. Throws Error{kFailedPrecondition} when
// it has other holders, Error{kInvalidArgument} when the tensor's elements would lie outside.
void resize_storage_(const Tensor& tensor, size_t size_bytes);

// Memory and shape of `source`, without a look at either and without a word to autograd: x.data = y.
void take_memory(const Tensor& tensor, const Tensor& source);

}  // namespace tensord::autograd
