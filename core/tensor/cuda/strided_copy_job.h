#pragma once

#include "core/tensor/cuda/copy_job.h"
#include "core/tensor/tensor.h"

namespace tensord::cuda {

// Of tensors of one device and the same sizes, with elements. Throws Error{kUnimplemented} where more than kCopyDims
// dimensions cannot be merged, or for a dtype that no tensor has.
StridedCopyJob strided_copy_job(const Tensor& target, const Tensor& source);

}  // namespace tensord::cuda
