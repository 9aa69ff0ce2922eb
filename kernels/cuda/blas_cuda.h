#pragma once

#include "core/ops/op.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/blas_job.h"
#include "kernels/cuda/product_job.h"

namespace tensord::kernels {

// Queues the product by cuBLASLt, with `bias` added to each row of c unless it is undefined, and the epilogue. Returns
// false, and does nothing, where there is no such library or it takes no such matrices: of other dtypes, without terms,
// or without neighboring elements in a row or a column.
bool product_by_library(const ops::KernelContext& context, const ProductJob& product, const Tensor& bias,
                        BlasEpilogue epilogue);

}  // namespace tensord::kernels
