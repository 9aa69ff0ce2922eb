#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// PyTorch's numbers for the reduction of elementwise losses.
enum LossReduction : int64_t { kLossNone = 0, kLossMean = 1, kLossSum = 2 };

// Throws Error for another number.
void check_reduction(int64_t reduction);
// By the operators sum and mean. Throws Error for another number.
Tensor reduce_loss(const Tensor& losses, int64_t reduction);

// Row-major and of type T; returned as it is if it has both.
template <class T>
Tensor dense(const Tensor& x) {
  return x.to(dtype_of<T>).contiguous();
}

}  // namespace tensord::kernels
