#pragma once

#include <vector>

#include "core/ops/op.h"
#include "core/tensor/cuda/error_word.h"
#include "kernels/cuda/index_job.h"

namespace tensord::kernels {

// A tensor of int32 or int64 indices that stand for a dimension of x.
struct IndexTensor {
  Tensor tensor;
  Dims strides;                         // over the positions of the access
  int64_t size = 0, step = 0, dim = 0;  // of the dimension in x
};
// What an access touches: for each position of `sizes` one element of x and one of `other`.
struct IndexedAccess {
  Dims sizes, x_strides, other_strides;
  std::vector<IndexTensor> indices;
  bool takes_negative = false;
  int64_t skipped = INT64_MIN;  // positions with this index are left out
  ops::Scalar factor = 1;       // of kAdd
  cuda::KernelError error = cuda::KernelError::kIndexOutOfRange;
};

// Of tensors of one CUDA device. Indices out of range are an error of the stream.
void run_indexed_cuda(IndexUse use, const Tensor& x, const IndexedAccess& access, const Tensor& other);

}  // namespace tensord::kernels
