#pragma once

#include <optional>

#include "core/ops/op.h"
#include "core/tensor/tensor.h"
#include "kernels/cuda/blas_job.h"

namespace tensord::kernels {

// out = epilogue(input @ weight^T + bias), the epilogue as part of the product where cuBLASLt does it. Of tensors of
// one CUDA device and floating dtype; the weight is of one or two dimensions.
void linear_on_cuda(const ops::KernelContext& context, const Tensor& input, const Tensor& weight,
                    const std::optional<Tensor>& bias, BlasEpilogue epilogue, Tensor& out);

}  // namespace tensord::kernels
