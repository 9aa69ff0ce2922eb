#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/tensor.h"

// Functions that give a tensor other memory, or another shape over its memory, while it stays the same tensor for all
// its handles. Autograd has no gradient for that, so tensors that take part in a gradient are refused with
// Error{kInvalidArgument}; so are inference tensors, because the runs of a loaded model remember where its tensors are.
// No other thread may use the tensor in the meantime.
namespace tensord::autograd {

// Makes the tensor row-major with these sizes, from its offset in the storage; does nothing if it has them. A storage
// that is too small is replaced by a larger one with the same bytes at its start; the rest is uninitialized. Throws
// Error{kFailedPrecondition} if the storage has other holders (views), which would keep the small one.
void resize_(const Tensor& tensor, const Dims& sizes);

// Gives it the memory, sizes and strides of `source`, of the same dtype and device; both share the memory from then on.
void set_(const Tensor& tensor, const Tensor& source);
// The same over a storage; strides and offset in elements. Throws Error if an element would lie outside of it.
void set_(const Tensor& tensor, const Storage& storage, int64_t offset, const Dims& sizes, const Dims& strides);

// Resizes the tensor's storage to this many bytes and keeps the first ones. Throws Error{kFailedPrecondition} if it has
// other holders, Error{kInvalidArgument} if the tensor's elements would lie outside.
void resize_storage_(const Tensor& tensor, size_t size_bytes);

// Gives it the memory and shape of `source` without checks and without notice to autograd: x.data = y.
void take_memory(const Tensor& tensor, const Tensor& source);

}  // namespace tensord::autograd
